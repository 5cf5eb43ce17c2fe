"""volume: where an arm's data is stored, and the directories that a witness scans."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Volume(msgspec.Struct, frozen=True):
    """Where an arm's data is stored."""

    path: Path
    """The future data directory: it doesn't exist yet, its parent does."""
    backing: tuple[Path, ...]
    """Files and directories that hold what is written below `path` in the form it has on disk; they are scanned for the
    canary.
    """
    pids: tuple[int, ...] = ()
    """Helper processes (a FUSE daemon): their CPU time and their bytes count as the server's."""
