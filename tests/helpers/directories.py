"""directories: lets the user that servers run as reach a test's own directory, and keeps making directories cheap."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path


def let_through(path: Path) -> None:
    """Let others pass through to it: pytest's own directories are closed."""
    for each in (path, *path.parents):
        if each.stat().st_uid == os.geteuid() and each.stat().st_mode & 0o005 != 0o005:
            each.chmod(each.stat().st_mode | 0o055)


def spread(base: Path) -> None:
    """Let ext4 put each new directory in `base` into another part of the disk, if it can.

    Where thousands of files were deleted within the last minute, ext4 looks at every one of them before it makes a new one: a new
    PostgreSQL cluster of a thousand files then takes ten times the CPU, and the tests make and delete hundreds.
    """
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    if program := shutil.which("chattr"):
        subprocess.run([program, "+T", base], capture_output=True, check=False)
