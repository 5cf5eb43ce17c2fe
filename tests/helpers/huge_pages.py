"""A test process in huge pages, where the kernel has them: a fork of it then costs a fifth.

A worker holds half a gigabyte once it has collected all tests. Whatever it starts by a fork (each agent, since a program may only be
confined between fork and exec) first gets a copy of its page tables: 130,000 entries, or 250 with pages of 2 MB.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

COLLAPSE = 25
"""MADV_COLLAPSE, since Linux 6.1. An older kernel refuses it, and nothing changes."""
SIZE = 2 << 20
"""Bytes of a huge page."""


def use() -> None:
    """Put what this process has in memory now into huge pages."""
    madvise = ctypes.CDLL(None).madvise
    for start, end in _anonymous(Path("/proc/self/maps").read_text()):
        first, last = -(-start // SIZE) * SIZE, end // SIZE * SIZE
        if first < last:
            madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), COLLAPSE)


def _anonymous(maps: str) -> list[tuple[int, int]]:
    """Start and end of each area of private memory without a file."""
    found = []
    for line in maps.splitlines():
        area, rights, _, _, inode, *path = line.split(maxsplit=5)
        if rights == "rw-p" and inode == "0" and path in ([], ["[heap]"]):
            start, _, end = area.partition("-")
            found.append((int(start, 16), int(end, 16)))
    return found
