"""command_process: the process that runs commands one at a time and ends with each whatever it has started (`host/command_runner.py`)."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ciphercost.host import command_runner
from ciphercost.host.command_runner import Ended, Request
from ciphercost.host.deferred_signals import signals_delayed
from ciphercost.host.readable_files import own_umask
from ciphercost.model.errors import RunError

LOOK_SECONDS = 1.0
MARGIN = 30.0
"""Seconds that the process gets to report that a command took too long."""


class CommandProcess:
    """The process. `close` ends it, with whatever the commands have started; so does the end of this one."""

    look: Callable[[], None] = staticmethod(lambda: None)
    """Called about once a second while a command runs. It raises RunError if its result can be of no use any more."""

    def __init__(self, env: Mapping[str, str], log: Path | None = None) -> None:
        """`env`: what commands inherit. `log`: file for its own errors."""
        self._buffer = b""
        with contextlib.ExitStack() as stack:
            stderr = stack.enter_context(log.open("ab")) if log else subprocess.DEVNULL
            stack.enter_context(signals_delayed())
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", command_runner.__file__],
                umask=own_umask(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=env,
                bufsize=0,
                start_new_session=True,  # only the controller handles Ctrl-C at the terminal
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._stdin.close()
        try:
            self._process.wait(timeout=2 * command_runner.PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stdout.close()

    def run(self, request: Request) -> Ended:
        """Run one command to its end. Raises RunError if the process is gone or silent."""
        try:
            self._stdin.write(json.dumps(request).encode() + b"\n")
        except (BrokenPipeError, ValueError):
            raise RunError(self._gone()) from None
        answer: Ended = json.loads(self._line(request["timeout"] + MARGIN))
        return answer

    def _line(self, timeout: float) -> bytes:
        deadline = time.monotonic() + timeout
        pieces = [self._buffer]
        while b"\n" not in pieces[-1]:
            if time.monotonic() > deadline:
                raise RunError(f"the process that runs the commands did not answer (process {self.pid})")
            if not select.select([self._stdout], [], [], LOOK_SECONDS)[0]:
                self.look()
                continue
            piece = os.read(self._stdout.fileno(), 1 << 20)
            if not piece:
                raise RunError(self._gone())
            pieces.append(piece)
        line, _, self._buffer = b"".join(pieces).partition(b"\n")
        return line

    def _gone(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        return f"the process that runs the commands ended in the middle of the run (status {self._process.poll()})"
