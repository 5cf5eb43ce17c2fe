"""path: two directories of the user's, one plain and one encrypted by whatever lies below it (LUKS, ZFS, …). For any server that keeps files.

A directory of ours is made in each, and removed at the end. What encrypts is read from the kernel: the mount and the devices below
it, down to a disk or a file; a policy of fscrypt; a FUSE file system that is known to encrypt. Where nothing of that is seen below the
encrypted directory, or something is below the plain one, nothing is proven.

The disk is searched below what encrypts. A FUSE file system's own directory is searched as it is, and so is an image behind a loop
device. Else the blocks that hold the arm's files are read from the block device (as root) and searched: for file systems that say
where they lie (ext4, XFS; not Btrfs, not ZFS), through dm-crypt and LVM. Where that can't be done the arm is not proven. Blocks of
files that were deleted meanwhile are not among them. The two directories may differ in more than encryption (file system, disk): what
is seen of that is a finding.
"""

from __future__ import annotations

import os
import secrets as randomness
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ciphercost.engines import Engine
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.host import marks, package_cache, volumes
from ciphercost.host.volumes import image, raw, stack
from ciphercost.host.volumes.volume import Volume
from ciphercost.mechanisms import Factor
from ciphercost.mechanisms._rest import AtRest, Look, Rest
from ciphercost.mechanisms.fscrypt import below as files_below
from ciphercost.mechanisms.fscrypt import data_of
from ciphercost.model import owned
from ciphercost.model.errors import RunError, Unproven, UsageError
from ciphercost.model.slices import Finding
from ciphercost.model.spec import ARMS, Arm

if TYPE_CHECKING:
    from ciphercost.host.installation import Installation

CLUSTER = "cluster"
LEAST = 64 << 20
BLOCKS = ".blocks"
"""Ends the name of a file of ours that what lies on a block device is read into."""


class TwoPaths(AtRest):
    name = "path"
    title = "path: two directories of yours"
    protects = "what the encryption below the directory protects against"
    loaded_once = True
    direct_io = False
    factors = (
        Factor("plain", (), "directory on a file system that is not encrypted"),
        Factor("encrypted", (), "directory on one that is, otherwise alike"),
    )

    def serves(self, engine: Engine) -> bool:
        return isinstance(engine, StoresData)

    def fits(self, engine: Engine, factors: Mapping[str, str]) -> None:  # noqa: ARG002
        for arm in ARMS:
            if not factors.get(arm):
                raise UsageError("path needs two directories: --set plain=DIRECTORY --set encrypted=DIRECTORY")
            _check(arm, Path(factors[arm]))
        plain, encrypted = (Path(factors[arm]).resolve() for arm in ARMS)
        if plain == encrypted:
            raise UsageError(f"path: both directories are {plain}")
        if plain.stat().st_dev == encrypted.stat().st_dev and not stack.of(encrypted).signs:
            raise UsageError(
                f"path: {plain} and {encrypted} are on one file system ({stack.of(encrypted)}), and nothing encrypts the second"
            )

    def prepare(self, rest: Rest) -> Installation:
        return rest.installation

    @contextmanager
    def volume(self, arm: Arm, place: Path, rest: Rest, size: int) -> Iterator[Volume]:
        given = Path(rest.factors[arm]).resolve()
        if (free := volumes.free(given)) < 2 * size + LEAST:
            raise RunError(
                f"{free / 1e6:.0f} MB are free in {given}, and the data has {size / 1e6:.0f} MB; is the disk full?"
            )
        ours = given / f"ciphercost-{rest.supervisor.run_id}-{randomness.token_hex(4)}"
        _remember(rest, ours)
        rest.supervisor.remove(ours)
        try:
            ours.mkdir(mode=0o700)
            marks.hand_over(ours)
            path = ours / CLUSTER
            below = ours if arm == "plain" else _searchable(ours) or place.with_name(f"{place.name}{BLOCKS}")
            try:
                if below.name.endswith(BLOCKS):
                    _try_blocks(ours, below)
                yield Volume(path, (below,))
            finally:
                if below.name.endswith(BLOCKS):
                    below.unlink(missing_ok=True)
        finally:
            shutil.rmtree(ours, ignore_errors=True)

    def flush(self, volume: Volume) -> None:
        """Where blocks are searched they are read anew."""
        volumes.sync(volume.path.parent)
        below = volume.backing[0]
        if below.name.endswith(BLOCKS):
            raw.copy(files_below(volume.path), stack.of(volume.path).device, below)

    def searched(self, volume: Volume) -> str:
        """Blocks of a device belong to a file as long as there is one."""
        if not volume.backing[0].name.endswith(BLOCKS):
            return ""
        return (
            "read from the block device: the blocks of every file of the arm, and not those of files that were deleted"
        )

    def status(self, look: Look) -> tuple[bool, str]:
        """The server says where its data lies; the kernel says what is below."""
        home = data_of(look)
        if not home.is_absolute() or not home.is_relative_to(look.volume.path):
            return False, f"the server says that its data lies in '{home}', and not in {look.volume.path}"
        found = stack.of(home if home.is_dir() else home.parent)
        if look.arm == "plain":
            return not found.signs, f"on {found}: " + (", ".join(found.signs) or "nothing encrypts it")
        return bool(found.signs), f"on {found}: " + (", ".join(found.signs) or "nothing that encrypts is seen below it")

    def implementation(self, look: Look) -> dict[str, str]:
        found = stack.of(look.volume.path)
        return {"cipher": ", ".join(found.signs), "implementation": str(found)}

    def findings(self, rest: Rest) -> list[Finding]:
        plain, encrypted = (stack.of(Path(rest.factors[arm])) for arm in ARMS)
        if plain.kind == encrypted.kind and plain.layers[-1] == encrypted.layers[-1]:
            return []
        text = f"the two directories differ in more than encryption: {plain} | {encrypted}"
        return [Finding("directories-differ", "info", text, "name two directories on equal file systems of one disk")]


def _check(arm: str, directory: Path) -> None:
    """Raises UsageError where an arm can't have its data there."""
    if not directory.is_dir():
        raise UsageError(f"path: {arm}={directory} is no directory")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise UsageError(f"path: {arm}={directory} can't be written to")
    if not package_cache.reachable(directory.resolve()):
        raise UsageError(
            f"path: servers run as 'nobody' when you are root, and nobody can't reach {arm}={directory}: it, or a directory "
            "above it, is closed to others (chmod o+x)"
        )
    if volumes.free(directory) < LEAST:
        raise UsageError(f"path: {arm}={directory} has less than {LEAST >> 20} MiB free")


def _searchable(ours: Path) -> Path | None:
    """What a directory's encrypted form lies in, where that is a directory or a file; None: on a block device."""
    found = stack.of(ours)
    if not found.device:
        source = Path(found.source)
        if not source.is_absolute() or not source.is_dir():
            raise Unproven(
                f"disk witness, encrypted arm: {found}: what it rests in is not seen, so it can't be searched"
            )
        return source
    file = image.backing(found.device)
    return Path(file) if file and Path(file).is_file() else None


def _try_blocks(ours: Path, below: Path) -> None:
    """Raises Unproven where the blocks of a file can't be read below what encrypts it."""
    trial = ours / "a file to try"
    try:
        trial.write_bytes(os.urandom(4096))
        volumes.sync(ours)
        if not raw.copy(iter([trial]), stack.of(ours).device, below):
            raise RunError(f"no block of a file in {ours} is found on its device")
    except RunError as error:
        raise Unproven(f"disk witness, encrypted arm: what it rests in can't be searched: {error}") from None
    finally:
        trial.unlink(missing_ok=True)


def _remember(rest: Rest, ours: Path) -> None:
    """For `ciphercost clean`, should even the supervisor be killed: it lies outside of the run's scratch."""
    notes = marks.scratch_base() / rest.supervisor.run_id
    if notes.is_dir():
        owned.add_line(notes / marks.OUTSIDE_FILE, str(ours))


MECHANISM = TwoPaths()
