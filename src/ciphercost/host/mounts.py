"""mounts: what is mounted where. Reads /proc/self/mountinfo."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from ciphercost.model.errors import RunError

UNMOUNT = """
timeout -k 1 "$3" umount "$1" 2>/dev/null
case $? in
0) ;;
124 | 137) umount --force "$1" 2>/dev/null || umount --lazy "$1" 2>/dev/null ;;
*) umount --lazy "$1" 2>/dev/null ;;
esac
! grep -qF " $2 " /proc/mounts
"""
"""Also works if nothing was mounted yet, if some process is still inside, or if its FUSE daemon is dead or answers no more. The last happens
too where a daemon is killed that has just opened a file of its own mount: it waits for itself, for ever, unless the kernel ends the connection
(`--force`).
"""
UNMOUNT_SECONDS = 20.0
"""How long a file system may take to answer, before what it has not done is given up."""


class Mount(msgspec.Struct, frozen=True):
    """One line of /proc/self/mountinfo."""

    device: str
    """`major:minor`."""
    root: str
    """Which directory of the file system is mounted there."""
    point: str
    kind: str
    """`ext4`, `fuse.gocryptfs`, …"""
    source: str
    options: str


def mounts(text: str | None = None) -> list[Mount]:
    """What is mounted in our namespace, in the order of mounting. Pure with `text`."""
    text = Path("/proc/self/mountinfo").read_text() if text is None else text
    entries = []
    # The kernel escapes only ASCII's spaces and ends of lines in names.
    for line in filter(None, text.split("\n")):
        before, _, after = line.partition(" - ")
        _, _, device, root, point, *_ = before.split(" ")
        kind, source, options, *_ = [*after.split(" "), "", ""]
        entries.append(Mount(device, plain(root), plain(point), kind, plain(source), options))
    return entries


def mount_of(path: Path) -> Mount:
    """The mount that contains `path`. Raises RunError, which can't happen below `/`."""
    place = path.resolve()
    over = [mount for mount in mounts() if place.is_relative_to(mount.point)]
    if not over:
        raise RunError(f"{path} is on no file system that is mounted here")
    longest = max(len(mount.point) for mount in over)
    return [mount for mount in over if len(mount.point) == longest][-1]  # the last one hides the others


def plain(text: str) -> str:
    r"""A path as it is, from the form in /proc/mounts (where a space is \040). Pure."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def escaped(path: Path) -> str:
    """A path in the form of /proc/mounts. Pure."""
    return "".join(f"\\{ord(sign):03o}" if sign in " \t\n\\" else sign for sign in str(path))


def unmounting(path: Path | str) -> list[str]:
    """The command that unmounts `path` in whatever state it is. It fails only if it stays mounted."""
    return ["sh", "-c", UNMOUNT, "unmount", str(path), escaped(Path(path)), str(UNMOUNT_SECONDS)]


def is_mounted(path: Path) -> bool:
    return any(mount.point == str(path) for mount in mounts())
