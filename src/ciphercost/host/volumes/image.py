"""image: an ext4 file system in a sparse file, mounted through a loop device, for the length of a session."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ciphercost.host import mounts, volumes
from ciphercost.host.journal import Entry
from ciphercost.host.supervisor import Supervisor
from ciphercost.model.errors import RunError, UsageError

OPTIONS = ("-O", "encrypt", "-m", "0", "-i", "65536", "-E", "lazy_itable_init=0,lazy_journal_init=0")
"""Leaves nothing for the kernel to write later, during the measurement."""
LEAST, ROOM = 64 << 20, 2 << 30
FEATURE = Path("/sys/fs/ext4/features/encryption")
PROGRAMS = {"mkfs.ext4": "e2fsprogs", "mount": "mount", "umount": "mount"}


def check_rights() -> None:
    """Raises UsageError before anything is made if such an image can't be mounted here."""
    if not volumes.may_mount():
        raise UsageError(
            "mounting an image needs root (CAP_SYS_ADMIN). Run it as root, or give two directories: `path`"
        )
    for program, package in PROGRAMS.items():
        if _found(program) is None:
            raise UsageError(f"'{program}' was not found (Debian: apt-get install {package})")
    if not FEATURE.exists():
        raise UsageError("this kernel's ext4 has no encryption (CONFIG_FS_ENCRYPTION), so there is nothing to measure")


def room(size: int, free: int) -> int:
    """Size of an image for `size` bytes of data: generous, because it is sparse, but never more than the disk has.
    Pure.

    One arm may use half of the free space, so that both have the same. 0: too little space.
    """
    wanted = min(4 * size + ROOM, free // 2)
    return wanted if wanted >= size + size // 4 + LEAST else 0


@contextmanager
def mounted(supervisor: Supervisor, place: Path, size: int) -> Iterator[Path]:
    """A file system with room for `size` bytes at `place`, in the image that is yielded. Both are removed afterwards.
    Raises RunError.
    """
    image = place.with_name(f"{place.name}.ext4")
    free = volumes.free(place.parent)
    large = room(size, free)
    if not large:
        raise RunError(
            f"no room for two file systems with {size / 1e6:.0f} MB of data each: {free / 1e6:.0f} MB are free in "
            f"{place.parent}; use fewer --rows, or set CIPHERCOST_SCRATCH to a directory on a larger disk"
        )
    try:
        with image.open("xb") as file:
            file.truncate(large)
        image.chmod(0o600)
        place.mkdir(mode=0o755)
        supervisor.run([_found("mkfs.ext4") or "mkfs.ext4", "-q", "-F", *OPTIONS, image])
        with attached(supervisor, image, place):
            yield image
    finally:
        image.unlink(missing_ok=True)
        if place.is_dir() and not mounts.is_mounted(place):
            shutil.rmtree(place, ignore_errors=True)


@contextmanager
def attached(supervisor: Supervisor, image: Path, place: Path) -> Iterator[None]:
    """Mount an existing image. The loop device goes with the mount (autoclear). Raises RunError."""

    def mount() -> None:
        try:
            supervisor.run(["mount", "-t", "ext4", "-o", "loop,nodev,nosuid", image, place])
        except RunError as error:
            raise RunError(
                f"the image {image} can't be mounted: {error}. Are loop devices there (/dev/loop*)?"
            ) from None

    with volumes.mounted(supervisor, place, mount, Entry("loop device", str(image))):
        yield


def backing(device: int) -> str:
    """The file behind the loop device of this number (st_dev); empty: it is no loop device. Pure but for /sys."""
    file = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/loop/backing_file")
    return file.read_text().rstrip("\n") if file.exists() else ""


def _found(program: str) -> str | None:
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
