"""process_sockets: the TCP connections that processes have. Reads /proc."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Self

from ciphercost.host.ports import open_sockets, written
from ciphercost.host.procfs import tree

LISTENING = "0A"
EVERY_SECONDS = 0.05


class Tcp(NamedTuple):
    """One connection."""

    local_port: int
    address: str
    """Of the other end; of IPv4 in IPv6 the former."""
    port: int


def connections(root: int) -> set[Tcp]:
    """The TCP connections of the processes below `root`, as far as they may be seen."""
    inodes: set[str] = set()
    for pid in tree(root)[1:]:
        with contextlib.suppress(OSError):
            inodes |= open_sockets(pid)
    if not inodes:
        return set()
    found = set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path("/proc/net", table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] != LISTENING and fields[9] in inodes:
                    address, port = end(fields[2])
                    found.add(Tcp(end(fields[1])[1], address, port))
    return found


def end(text: str) -> tuple[str, int]:
    """`0100007F:1538` as an address and a port. Pure."""
    words, _, port = text.partition(":")
    parts = [int(words[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(words), 8)]
    return written(b"".join(parts)), int(port, 16)


class Lookout:
    """Looks again and again, in a thread, which connections the processes below `root` have. One that is shorter than EVERY_SECONDS may
    be missed.
    """

    def __init__(self, root: int, look: Callable[[int], set[Tcp]] = connections) -> None:
        self.found: set[Tcp] = set()
        self._root, self._look = root, look
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(EVERY_SECONDS):
            self.found |= self._look(self._root)
