"""A pseudo-terminal, for output and prompts that appear only on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
import time
from collections.abc import Mapping, Sequence


def on_a_terminal(
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    sizes: Sequence[tuple[int, int]] = (),
    asked: str = "",
    typed: str = "",
) -> tuple[int, str]:
    """Run a command on it, with resizes; type a text when it shows `asked`. Returns its status and output."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(argv[0], list(argv), dict(env))
    turns = iter(sizes)
    if first := next(turns, None):
        resize(terminal, first)
    shown, answered, next_size = "", False, time.monotonic() + 2
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # its other end is closed
            break
        if not data:
            break
        shown += data.decode(errors="replace")
        if typed and not answered and asked in shown:
            os.write(terminal, typed.encode())
            answered = True
        if time.monotonic() > next_size and (size := next(turns, None)):
            resize(terminal, size)
            next_size += 1
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown


def resize(terminal: int, size: tuple[int, int]) -> None:
    """(columns, lines)."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
