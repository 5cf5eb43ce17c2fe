"""file_stamp: what changes when a file does. I/O."""

from __future__ import annotations

from pathlib import Path

Stamp = tuple[int, ...]


def of(path: Path) -> Stamp:
    """The file's identity, size and time. Raises OSError."""
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
