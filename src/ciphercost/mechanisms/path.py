"""Two directories of yours, one plain and one encrypted by what lies below it (LUKS, ZFS, …). For any server that keeps
files.

ciphercost creates a directory in each and removes it at the end. It reads from the kernel what encrypts: the mount and
the devices below it, down to a disk or a file; an fscrypt policy; a FUSE file system known to encrypt. If it sees no
encryption below the encrypted directory, or some below the plain one, nothing is proven.

The disk witness searches below the encryption: a FUSE file system's own directory, or the image behind a loop device,
as it is. Otherwise it reads the blocks of the arm's files from the block device (as root). That works for file systems
that report where their files lie (ext4, XFS; not Btrfs, not ZFS), through dm-crypt and LVM. Where it can't, the arm is
not proven. Blocks of files deleted in the meantime are not searched. The two directories may differ in more than
encryption (file system, disk): visible differences are a finding.
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
from ciphercost.host import run_ownership, volumes
from ciphercost.host.volumes import image, raw, stack
from ciphercost.host.volumes.volume import Volume
from ciphercost.mechanisms import Factor
from ciphercost.mechanisms._rest import ArmAtRest, AtRest, AtRestContext
from ciphercost.mechanisms.fscrypt import below as files_below
from ciphercost.mechanisms.fscrypt import data_of
from ciphercost.model.errors import RunError, Unproven, UsageError
from ciphercost.model.slices import Finding
from ciphercost.model.spec import ARMS, Arm

if TYPE_CHECKING:
    from ciphercost.host.installation import Installation

CLUSTER = "cluster"
LEAST = 64 << 20
BLOCKS = ".blocks"
"""Suffix of the file that ciphercost copies a block device's blocks into."""


class TwoPaths(AtRest):
    name = "path"
    title = "path: two directories of yours"
    protects = "what the encryption below the directory protects against"
    loaded_once = True
    direct_io = False
    factors = (
        Factor("plain", (), "directory on a file system that is not encrypted", acts="operation"),
        Factor("encrypted", (), "directory on one that is encrypted, and otherwise the same", acts="operation"),
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
            raise UsageError(f"path: plain and encrypted are the same directory, {plain}; name two")
        if plain.stat().st_dev == encrypted.stat().st_dev and not stack.of(encrypted).signs:
            raise UsageError(
                f"path: {plain} and {encrypted} are on one file system ({stack.of(encrypted)}), and nothing encrypts the second"
            )

    def prepare(self, rest: AtRestContext) -> Installation:
        return rest.installation

    @contextmanager
    def volume(self, arm: Arm, place: Path, rest: AtRestContext, size: int) -> Iterator[Volume]:
        given = Path(rest.factors[arm]).resolve()
        if (free := volumes.free(given)) < 2 * size + LEAST:
            raise RunError(
                f"{free / 1e6:.0f} MB are free in {given}, but the data needs {size / 1e6:.0f} MB; use fewer --rows, or a directory on a larger disk"
            )
        ours = given / f"ciphercost-{rest.supervisor.run_id}-{randomness.token_hex(4)}"
        rest.supervisor.remove(ours)
        try:
            ours.mkdir(mode=0o700)
            run_ownership.hand_over(ours)
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
        """Flush the file system; if blocks are searched, read them again."""
        volumes.sync(volume.path.parent)
        below = volume.backing[0]
        if below.name.endswith(BLOCKS):
            raw.copy(files_below(volume.path), stack.of(volume.path).device, below)

    def searched(self, volume: Volume) -> str:
        """A block belongs to a file only as long as the file exists."""
        if not volume.backing[0].name.endswith(BLOCKS):
            return ""
        return "read from the block device: the blocks of every file of the arm, but not those of deleted files"

    def status(self, look: ArmAtRest) -> tuple[bool, str]:
        """Ask the server where its data lies, and the kernel what lies below."""
        home = data_of(look)
        if not home.is_absolute() or not home.is_relative_to(look.volume.path):
            return False, f"the server reports that its data lies in '{home}', not in {look.volume.path}"
        layers = stack.of(home if home.is_dir() else home.parent)
        if look.arm == "plain":
            return not layers.signs, f"on {layers}: " + (", ".join(layers.signs) or "nothing encrypts it")
        return bool(layers.signs), f"on {layers}: " + (", ".join(layers.signs) or "no encryption found below it")

    def implementation(self, look: ArmAtRest) -> dict[str, str]:
        layers = stack.of(look.volume.path)
        return {"cipher": ", ".join(layers.signs), "implementation": str(layers)}

    def findings(self, rest: AtRestContext) -> list[Finding]:
        plain, encrypted = (stack.of(Path(rest.factors[arm])) for arm in ARMS)
        if plain.kind == encrypted.kind and plain.layers[-1] == encrypted.layers[-1]:
            return []
        text = f"the two directories differ in more than encryption: {plain} | {encrypted}"
        return [Finding("directories-differ", "info", text, "name two directories on equal file systems of one disk")]


def _check(arm: str, directory: Path) -> None:
    """Raises UsageError if an arm can't have its data there."""
    if not directory.is_dir():
        raise UsageError(f"path: {arm}={directory} is not a directory")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise UsageError(f"path: {arm}={directory} is not writable")
    if why := run_ownership.out_of_reach(directory.resolve()):
        raise UsageError(f"path: {arm}={directory}: {why}")
    if volumes.free(directory) < LEAST:
        raise UsageError(f"path: {arm}={directory} has less than {LEAST >> 20} MiB free")


def _searchable(ours: Path) -> Path | None:
    """Return the directory or file that holds the encrypted form of a directory; None: a block device does."""
    layers = stack.of(ours)
    if not layers.device:
        source = Path(layers.source)
        if not source.is_absolute() or not source.is_dir():
            raise Unproven(
                f"disk witness, encrypted arm: {layers}: ciphercost can't see where it stores its data, so it can't search it"
            )
        return source
    file = image.backing(layers.device)
    return Path(file) if file and Path(file).is_file() else None


def _try_blocks(ours: Path, below: Path) -> None:
    """Raises Unproven if the blocks of a file can't be read below the encryption."""
    trial = ours / "a file to try"
    try:
        trial.write_bytes(os.urandom(4096))
        volumes.sync(ours)
        if not raw.copy(iter([trial]), stack.of(ours).device, below):
            raise RunError(f"found no block of a file in {ours} on its device")
    except RunError as error:
        raise Unproven(f"disk witness, encrypted arm: the storage below can't be searched: {error}") from None
    finally:
        trial.unlink(missing_ok=True)


MECHANISM = TwoPaths()
