"""disk: finds the physical disks that hold a directory's bytes, and what the kernel reports about them. Reads /proc and
/sys, calls no tool.

Follows loop devices, device mapper, RAID and partitions down. A virtual machine's disks are what its hypervisor
reports.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ciphercost.host import mounts
from ciphercost.host.mounts import Mount
from ciphercost.model.errors import RunError

UNKNOWN = "unknown"
DEPTH = 8
"""Maximum number of layers that are followed."""
TRANSPORTS = {
    # part of the device's path in sysfs: transport
    "/usb": "usb",
    "/virtio": "virtio",
    "/ata": "sata",
    "/nvme": "nvme",
    "/mmc_host": "mmc",
    "/end_device-": "sas",
    "/vbd-": "xen",
    "/VMBUS:": "hyper-v",
    "/session": "iscsi",
}
"""The first match counts: a bridge (USB) comes before what is behind it."""
ELSEWHERE = {
    "tmpfs": "memory",
    "ramfs": "memory",
    "nfs": "network",
    "nfs4": "network",
    "cifs": "network",
    "smb3": "network",
    "9p": "host",
    "virtiofs": "host",
}
"""File systems that are on no disk of this machine, and where they are."""


class Disk(msgspec.Struct, frozen=True):
    """One disk. What the kernel does not report is `unknown`."""

    name: str = UNKNOWN
    """The kernel's name: `sda`, `nvme0n1`; for what is on no disk, the file system's kind."""
    rotational: str = UNKNOWN
    """yes, no."""
    model: str = UNKNOWN
    transport: str = UNKNOWN


def under(directory: Path, sys: Path = Path("/sys")) -> list[Disk]:
    """The disks below a directory, or below its first existing parent. Never fails: returns at least one, which may be
    unknown.
    """
    try:
        disks = list(_under(directory, sys, DEPTH))
    except (OSError, RunError, ValueError):
        disks = []
    return list(dict.fromkeys(disks)) or [Disk()]


def record(directory: Path) -> dict[str, object]:
    """The same as fields of the machine's record; several disks are joined by commas."""
    disks = under(directory)
    fields = {"disk": "name", "disk_rotational": "rotational", "disk_model": "model", "disk_transport": "transport"}
    return {ours: ", ".join(dict.fromkeys(getattr(disk, theirs) for disk in disks)) for ours, theirs in fields.items()}


def words(machine: Mapping[str, object]) -> str:
    """`disk vda: rotational, model unknown, virtio`; empty if the record is from an earlier version. Pure."""
    if "disk" not in machine:
        return ""
    turning = {"yes": "rotational", "no": "not rotational"}.get(str(machine.get("disk_rotational")), "")
    rotates = turning or f"rotation {machine.get('disk_rotational', UNKNOWN)}"
    model = str(machine.get("disk_model", UNKNOWN))
    parts = [rotates, f"model {model}", f"transport {machine.get('disk_transport', UNKNOWN)}"]
    virtual = " (as reported to the virtual machine)" if machine.get("virtual") else ""
    return f"disk {machine['disk']}: {', '.join(parts)}{virtual}"


def _under(directory: Path, sys: Path, depth: int) -> Iterator[Disk]:
    if not depth:
        return
    mount = mounts.mount_of(directory)
    if mount.kind in ELSEWHERE:
        yield Disk(name=mount.kind, transport=ELSEWHERE[mount.kind])
        return
    if mount.kind == "overlay" and (upper := _upper(mount.options)):
        # A container's own layer. Its path is the host's, and may not exist inside.
        if upper.exists() and mounts.mount_of(upper) != mount:
            yield from _under(upper, sys, depth - 1)
        return
    if number := _number(mount):
        yield from below(number, sys, depth)


def _upper(options: str) -> Path | None:
    named = dict(option.partition("=")[::2] for option in options.split(","))
    return Path(named["upperdir"]) if "upperdir" in named else None


def _number(mount: Mount) -> str:
    """`major:minor` of the block device; empty: there is none. Btrfs mounts have their own numbers, so the source comes
    first.
    """
    if mount.source.startswith("/dev/"):
        try:
            if device := Path(mount.source).stat().st_rdev:
                return f"{os.major(device)}:{os.minor(device)}"
        except OSError:
            pass  # `/dev/root`, or a container without this node
    return "" if mount.device.startswith("0:") else mount.device


def below(number: str, sys: Path = Path("/sys"), depth: int = DEPTH) -> Iterator[Disk]:
    """The disks that a block device, given as `major:minor`, consists of."""
    place = (sys / "dev" / "block" / number).resolve()
    if not depth or not place.is_dir():
        return
    if (place / "partition").exists():
        place = place.parent
    if file := _text(place / "loop" / "backing_file"):
        yield from _under(Path(file), sys, depth - 1)
        return
    parts = [_text(slave / "dev") for slave in sorted((place / "slaves").glob("*"))]
    if parts:
        for part in parts:
            yield from below(part, sys, depth - 1)
        return
    yield _disk(place)


def _disk(place: Path) -> Disk:
    device = (place / "device").resolve()
    vendor, model = _text(place / "device" / "vendor"), _text(place / "device" / "model")
    if model and vendor not in ("", "ATA") and not vendor.startswith("0x"):
        model = f"{vendor} {model}"
    path = f"{place}/{device}"
    return Disk(
        name=place.name,
        rotational={"1": "yes", "0": "no"}.get(_text(place / "queue" / "rotational"), UNKNOWN),
        model=" ".join((model or _text(place / "device" / "name")).split()) or UNKNOWN,
        transport=next((name for part, name in TRANSPORTS.items() if part in path), UNKNOWN),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
