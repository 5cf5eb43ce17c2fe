"""disk: finds a directory's disks, in trees like the kernel's /sys and on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ciphercost.host import mounts, procfs, run_ownership, supervisor
from ciphercost.host.mounts import Mount
from ciphercost.host.volumes import disk, image
from ciphercost.host.volumes.disk import Disk
from ciphercost.model import run_directory
from ciphercost.report.formats import md, terminal
from conftest import RequirePossible
from results import result

SATA = "devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0"
NVME = "devices/pci0000:00/0000:00:1d.0/0000:01:00.0/nvme/nvme0"
VIRTIO = "devices/pci0000:00/0000:00:02.0/virtio1"
USB = "devices/pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0/host6/target6:0:0/6:0:0:0"


class Sys:
    """A /sys that is built file by file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "dev/block").mkdir(parents=True)

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")

    def block(self, path: str, number: str, **files: str) -> Path:
        place = self.root / path
        place.mkdir(parents=True, exist_ok=True)
        self.write(f"{path}/dev", number)
        for name, text in files.items():
            self.write(f"{path}/{name.replace('__', '/')}", text)
        (self.root / "dev/block" / number).symlink_to(place)
        return place

    def disk(self, device: str, name: str, number: str, rotational: str, **files: str) -> Path:
        """A whole disk of a device, with these files."""
        for file, text in files.items():
            self.write(f"{device}/{file}", text)
        block = "" if name.startswith("nvme") else "block/"
        place = self.block(f"{device}/{block}{name}", number, queue__rotational=rotational)
        (place / "device").symlink_to(self.root / device)
        return place

    def over(self, path: str, number: str, *below: Path, **files: str) -> Path:
        """A device that consists of others."""
        place = self.block(path, number, queue__rotational="0", **files)
        (place / "slaves").mkdir()
        for device in below:
            (place / "slaves" / device.name).symlink_to(device)
        return place


@pytest.fixture
def tree(tmp_path: Path) -> Sys:
    return Sys(tmp_path / "sys")


def test_a_partition_belongs_to_its_disk(tree: Sys) -> None:
    place = tree.disk(SATA, "sda", "8:0", "1", vendor="ATA     ", model="WDC WD5000AAKX-0")
    tree.block(f"{place.relative_to(tree.root)}/sda2", "8:2", partition="2")
    assert list(disk.below("8:2", tree.root)) == [Disk("sda", "yes", "WDC WD5000AAKX-0", "sata")]


@pytest.mark.parametrize(
    ("device", "name", "rotational", "files", "expected"),
    [
        (
            NVME,
            "nvme0n1",
            "0",
            {"model": "Samsung SSD 980 1TB   "},
            Disk("nvme0n1", "no", "Samsung SSD 980 1TB", "nvme"),
        ),
        (VIRTIO, "vda", "1", {"vendor": "0x1af4"}, Disk("vda", "yes", "unknown", "virtio")),
        (USB, "sdb", "1", {"vendor": "SanDisk", "model": "Ultra"}, Disk("sdb", "yes", "SanDisk Ultra", "usb")),
        ("devices/platform/soc/disk", "xyz", "", {}, Disk("xyz", "unknown", "unknown", "unknown")),
    ],
    ids=["nvme", "virtio", "usb", "unknown"],
)
def test_what_the_kernel_reports_about_a_disk(
    tree: Sys, device: str, name: str, rotational: str, files: dict[str, str], expected: Disk
) -> None:
    tree.disk(device, name, "9:9", rotational, **files)
    assert list(disk.below("9:9", tree.root)) == [expected]


def test_stacked_devices_are_followed_to_all_their_disks(tree: Sys) -> None:
    """dm-crypt on RAID on a partition of one disk and on another disk."""
    first = tree.disk(SATA, "sda", "8:0", "1", model="Old")
    part = tree.block(f"{first.relative_to(tree.root)}/sda1", "8:1", partition="1")
    second = tree.disk(NVME, "nvme0n1", "259:0", "0", model="New")
    raid = tree.over("devices/virtual/block/md0", "9:0", part, second)
    tree.over("devices/virtual/block/dm-0", "253:0", raid, dm__uuid="CRYPT-LUKS2-0-x")
    assert [device.name for device in disk.below("253:0", tree.root)] == ["nvme0n1", "sda"] or [
        device.name for device in disk.below("253:0", tree.root)
    ] == ["sda", "nvme0n1"]


def test_a_ring_of_devices_ends(tree: Sys) -> None:
    place = tree.over("devices/virtual/block/dm-0", "253:0")
    (place / "slaves" / "dm-0").symlink_to(place)
    assert list(disk.below("253:0", tree.root)) == []


def test_file_systems_on_no_disk_are_named_and_never_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lies_on(kind: str, source: str, options: str = "") -> list[Disk]:
        mount = Mount("0:99", "/", "/", kind, source, options)
        monkeypatch.setattr(mounts, "mount_of", lambda _: mount)
        return disk.under(tmp_path)

    assert lies_on("tmpfs", "tmpfs") == [Disk(name="tmpfs", transport="memory")]
    assert lies_on("nfs4", "server:/export") == [Disk(name="nfs4", transport="network")]
    assert lies_on("overlay", "overlay", "rw,lowerdir=/a,upperdir=/not/here,workdir=/b") == [Disk()]
    assert lies_on("fuse.sshfs", "me@there:") == [Disk()]
    assert lies_on("ext4", "/dev/not-here") == [Disk()]
    assert disk.under(tmp_path, tmp_path / "no-sys") == [Disk()]


def test_a_loop_device_belongs_to_the_disk_of_its_file(require_possible: RequirePossible) -> None:
    require_possible(image.check_rights)
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
        place = supervisor.scratch(run_supervisor.run_id, run_supervisor) / "image"
        with image.mounted(run_supervisor, place, 1 << 20):
            assert disk.under(place) == disk.under(run_ownership.scratch_base())


def test_the_machines_record_and_its_reports_name_the_disk() -> None:
    machine: dict[str, Any] = procfs.machine()
    for name in ("disk", "disk_rotational", "disk_model", "disk_transport"):
        assert machine[name]
    assert disk.words({}) == "", "records of earlier versions"
    told = {"disk": "sda", "disk_rotational": "yes", "disk_model": "WDC WD5000", "disk_transport": "sata"}
    assert disk.words(told) == "disk sda: rotational, model WDC WD5000, transport sata"
    assert disk.words(told | {"virtual": True}).endswith("(as reported to the virtual machine)")
    assert (
        disk.words(dict.fromkeys(told, "unknown")) == "disk unknown: rotation unknown, model unknown, transport unknown"
    )
    run_result = result()
    run_result.machine.update(told)
    assert "disk sda: rotational, model WDC WD5000" in terminal.footer(run_result)
    assert "disk sda: rotational, model WDC WD5000" in md.footer(run_result)


def test_another_name_of_the_same_disk_is_the_same_machine() -> None:
    assert procfs.alike("disk", "sda", "sdb")
    assert procfs.alike("disk_model", None, "WDC WD5000"), "a record of an earlier version"
    assert not procfs.alike("disk_model", "Old", "New")
