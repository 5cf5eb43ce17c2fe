"""volume: Where an arm's data lies, and the directories that a witness looks at."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Volume(msgspec.Struct, frozen=True):
    """Where an arm's data lies."""

    path: Path
    """The data directory to be: it isn't there yet, its parent is."""
    backing: tuple[Path, ...]
    """Files and directories that hold what is written below `path` as it rests on the disk; they are searched for the canary."""
    pids: tuple[int, ...] = ()
    """Processes of ours that do the work (a FUSE daemon): their CPU time and their bytes count as the server's."""
