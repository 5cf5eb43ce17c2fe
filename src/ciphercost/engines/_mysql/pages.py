"""pages: a server's file -> its first bytes, or those of each of its pages. Read only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def heads(path: Path, page: int, size: int) -> Iterator[bytes]:
    """The first `size` bytes of every whole page of `page` bytes. A file that is gone has none."""
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
    """The first `size` bytes of a file."""
    with path.open("rb") as file:
        return file.read(size)
