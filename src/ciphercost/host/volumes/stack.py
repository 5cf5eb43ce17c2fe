"""stack: the layers below a directory, down to a disk or a file, and which of them encrypt. Reads /proc and /sys, calls
no tool.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ciphercost.host import mounts
from ciphercost.host.environment import child_environment
from ciphercost.host.volumes import policy

ENCRYPTING = {
    "fuse.gocryptfs": "gocryptfs",
    "fuse.encfs": "EncFS",
    "fuse.cryfs": "CryFS",
    "fuse.securefs": "securefs",
    "ecryptfs": "eCryptfs",
}
"""File systems that encrypt everything in them."""
DEPTH = 8


class Stack(msgspec.Struct, frozen=True):
    """The layers below a directory."""

    layers: tuple[str, ...]
    """From the top, as text for messages: `ext4`, `dm-crypt (LUKS2)`, `sda2`."""
    signs: tuple[str, ...]
    """Layers that encrypt; empty: none that is visible."""
    kind: str
    """Kind of the file system."""
    source: str
    """What it is mounted from."""
    device: int
    """Number of the block device that holds the file system; 0: none."""

    def __str__(self) -> str:
        return " on ".join(self.layers)


def of(directory: Path) -> Stack:
    """The stack below an existing directory."""
    mount = mounts.mount_of(directory)
    layers, signs = [mount.kind], []
    if policy.get(directory) is not None:
        signs.append("fscrypt policy")
    if mount.kind in ENCRYPTING:
        signs.append(ENCRYPTING[mount.kind])
    if mount.kind == "zfs" and (cipher := _of_dataset(mount.source)):
        signs.append(f"ZFS {cipher}")
    device = _device(mount.source)
    for words, encrypts in _below(device, DEPTH):
        layers.append(words)
        if encrypts:
            signs.append(words)
    if not device and Path(mount.source).is_dir():
        layers.append(mount.source)
    return Stack(tuple(layers), tuple(signs), mount.kind, mount.source, device)


def _device(source: str) -> int:
    try:
        return Path(source).stat().st_rdev if source.startswith("/dev/") else 0
    except OSError:
        return 0


def _below(device: int, depth: int) -> Iterator[tuple[str, bool]]:
    """(description, whether it encrypts) of a block device and of everything it consists of."""
    if not device or not depth:
        return
    place = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    name = place.resolve().name
    kind = _text(place / "dm" / "uuid")
    if kind.startswith("CRYPT-"):
        yield f"dm-crypt ({kind.split('-')[1]})", True
    elif file := _text(place / "loop" / "backing_file"):
        yield f"loop device of {file}", False
        if Path(file).exists():
            beneath = of(Path(file).parent)
            yield from ((layer, False) for layer in beneath.layers if layer not in beneath.signs)
            yield from ((sign, True) for sign in beneath.signs)
    else:
        yield f"device mapper {_text(place / 'dm' / 'name')}" if kind else name, False
    for slave in sorted((place / "slaves").glob("*")):
        major, _, minor = _text(slave / "dev").partition(":")
        if minor:
            yield from _below(os.makedev(int(major), int(minor)), depth - 1)


def _of_dataset(name: str) -> str:
    """The cipher of a ZFS dataset; empty: none, or the zfs tool is missing."""
    if shutil.which("zfs") is None:
        return ""
    done = subprocess.run(
        ["zfs", "get", "-H", "-o", "value", "encryption", name],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        env=child_environment(),
    )
    cipher = done.stdout.strip()
    return "" if done.returncode or cipher in ("off", "-") else cipher


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
