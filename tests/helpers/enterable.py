"""pytest's directories are private, and servers run as another user when we are root."""

from __future__ import annotations

import os
from pathlib import Path


def enterable(path: Path) -> Path:
    """Let others enter a directory and those of ours above it. Returns the directory."""
    for directory in (path, *path.parents):
        if directory.stat().st_uid == os.geteuid() and not directory.stat().st_mode & 0o001:
            directory.chmod(0o711)
    return path
