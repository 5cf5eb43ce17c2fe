"""Reads the first bytes of a server's file, or of each of its pages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def heads(path: Path, page: int, size: int) -> Iterator[bytes]:
    """Yield the first `size` bytes of every whole page of `page` bytes. Yields nothing if the file no longer exists."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        for at in range(0, os.fstat(descriptor).st_size - page + 1, page):
            yield os.pread(descriptor, size, at)
    finally:
        os.close(descriptor)


def beginning(path: Path, size: int) -> bytes:
    """Return the first `size` bytes of a file."""
    with path.open("rb") as file:
        return file.read(size)
