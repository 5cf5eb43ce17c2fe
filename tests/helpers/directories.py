"""directories: lets the user that servers run as reach a test's own directory."""

from __future__ import annotations

import os
from pathlib import Path


def let_through(path: Path) -> None:
    """Let others pass through to it: pytest's own directories are closed."""
    for each in (path, *path.parents):
        if each.stat().st_uid == os.geteuid() and each.stat().st_mode & 0o005 != 0o005:
            each.chmod(each.stat().st_mode | 0o055)
