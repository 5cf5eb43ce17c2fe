"""volumes: what lies below a data directory: mounted images, FUSE daemons, the kernel's encryption policies, stacks of devices."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ciphercost.errors import RunError
from ciphercost.guard import Guard

CAP_SYS_ADMIN = 21
PATIENCE_SECONDS = 30.0
UNMOUNT = 'umount "$1" 2>/dev/null || umount --lazy "$1" 2>/dev/null; ! grep -qF " $2 " /proc/mounts'
"""Also where nothing was mounted yet, where somebody still stands in it, and where its FUSE daemon is dead."""


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
    found = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        _, _, device, root, point, *_ = before.split()
        kind, source, options, *_ = [*after.split(), "", ""]
        found.append(Mount(device, plain(root), plain(point), kind, plain(source), options))
    return found


def mount_of(path: Path) -> Mount:
    """What `path` lies on. Raises RunError, which can't happen below `/`."""
    place = path.resolve()
    over = [each for each in mounts() if place.is_relative_to(each.point)]
    if not over:
        raise RunError(f"{path} lies on no file system that is mounted here")
    longest = max(len(each.point) for each in over)
    return [each for each in over if len(each.point) == longest][-1]  # the last one hides those below it


def plain(text: str) -> str:
    r"""A path as /proc/mounts writes it (a space is \040) as it is. Pure."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def escaped(path: Path) -> str:
    """A path as /proc/mounts writes it. Pure."""
    return "".join(f"\\{ord(sign):03o}" if sign in " \t\n\\" else sign for sign in str(path))


def is_mounted(path: Path) -> bool:
    return any(each.point == str(path) for each in mounts())


def unmounting(path: Path) -> list[str]:
    """The command that unmounts it, whatever state it is in. It fails only where it stays mounted."""
    return ["sh", "-c", UNMOUNT, "unmount", str(path), escaped(path)]


@contextmanager
def mounted(guard: Guard, path: Path, mount: Callable[[], object]) -> Iterator[None]:
    """`mount` mounts something at `path`; afterwards, also of a killed run, nothing is mounted there. Raises RunError."""
    undo = unmounting(path)
    forget = guard.undo(undo)  # before it is mounted, so that no moment is left when nobody would unmount it
    try:
        mount()
        yield
    finally:
        guard.run(undo)
        forget()


def may_mount() -> bool:
    effective = int(Path("/proc/self/status").read_text().partition("CapEff:")[2].split()[0], 16)
    return os.geteuid() == 0 and bool(effective >> CAP_SYS_ADMIN & 1)


def sync(path: Path) -> None:
    """Write everything of the file system that `path` is on to what lies below it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syncfs(descriptor):
            error = ctypes.get_errno()
            raise RunError(f"{path} could not be written out: {os.strerror(error)}; is the disk full?")
    finally:
        os.close(descriptor)


def free(path: Path) -> int:
    """Bytes that anybody may still write there."""
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize
