"""raw: copies the blocks of a directory's files, read from the device below every encrypting layer, into one file. I/O.

The file system reports where the blocks are (FIEMAP); the device mapper's tables map them to the device below.
"""

from __future__ import annotations

import array
import errno
import fcntl
import os
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ciphercost.host.environment import child_environment
from ciphercost.host.volumes.policy import NOT_ENCRYPTED
from ciphercost.model.errors import RunError

FIEMAP, SYNC, AT_ONCE = 0xC020660B, 1, 256
EXTENT = struct.Struct("<QQQ16xI12x")
LAST, NOWHERE = 0x1, 0x2 | 0x4 | 0x8 | 0x100 | 0x200
"""Flags of extents that can't be read: not known yet, not written yet, packed, not aligned, within the inode."""
UNWRITTEN = 0x800
SECTOR, CHUNK = 512, 4 << 20


class Segment(msgspec.Struct, frozen=True):
    """Maps bytes `start` to `end` of a device of the device mapper to another device, from `offset` on."""

    start: int
    end: int
    device: int
    offset: int


def extents(path: Path) -> Iterator[tuple[int, int]]:
    """(offset on the device, length) of everything in a file. Raises RunError if its file system doesn't report it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        begin = 0
        while True:
            asked = array.array("B", struct.pack("<QQIIII", begin, 2**64 - 1 - begin, SYNC, 0, AT_ONCE, 0))
            asked.frombytes(bytes(AT_ONCE * EXTENT.size))
            try:
                fcntl.ioctl(descriptor, FIEMAP, asked)
            except OSError as error:
                if error.errno in (*NOT_ENCRYPTED, errno.EINVAL):
                    raise RunError(f"the file system of {path} does not report where a file is on disk") from None
                raise
            count = struct.unpack_from("<I", asked, 20)[0]
            for number in range(count):
                logical, physical, length, flags = EXTENT.unpack_from(asked, 32 + number * EXTENT.size)
                begin = logical + length
                if not flags & (NOWHERE | UNWRITTEN):
                    yield physical, length
                if flags & LAST:
                    return
            if not count:
                return
    finally:
        os.close(descriptor)


def parse_table(text: str) -> list[Segment]:
    """Parse `dmsetup table`'s output for one device. Pure. Raises RunError for a target that relocates bytes in another
    way.
    """
    segments = []
    for line in text.splitlines():
        start, length, target, *rest = line.split()
        if target == "linear":
            device, offset = rest[0], rest[1]
        elif target == "crypt":
            device, offset = rest[3], rest[4]  # cipher, key, offset of the IV come first
        else:
            raise RunError(f"can't look below the device mapper's target '{target}'")
        major, _, minor = device.partition(":")
        begin = int(start) * SECTOR
        number = os.makedev(int(major), int(minor))
        segments.append(Segment(begin, begin + int(length) * SECTOR, number, int(offset) * SECTOR))
    return segments


def below(device: int, tables: dict[int, list[Segment]], start: int, length: int) -> Iterator[tuple[int, int, int]]:
    """(device, offset, length) of these bytes below the device mapper. Pure. Raises RunError if they aren't mapped."""
    if device not in tables:
        yield device, start, length
        return
    end = start + length
    for segment in tables[device]:
        begin, stop = max(start, segment.start), min(end, segment.end)
        if begin < stop:
            length -= stop - begin
            yield from below(segment.device, tables, begin - segment.start + segment.offset, stop - begin)
    if length:
        raise RunError("the device mapper's table does not cover all blocks of the files")


def tables_of(device: int) -> dict[int, list[Segment]]:
    """The tables of a device and of all devices below it that have one. Raises RunError."""
    place = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if not (place / "dm").is_dir():
        return {}
    try:
        name = (place / "dm" / "name").read_text().strip()
        text = subprocess.run(
            ["dmsetup", "table", name], capture_output=True, text=True, check=True, timeout=30, env=child_environment()
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        detail = str(getattr(error, "stderr", "") or error).strip()
        raise RunError(f"dmsetup can't show what is below: {detail} (Debian: apt-get install dmsetup)") from None
    tables = {device: parse_table(text)}
    for segment in tables[device]:
        tables |= tables_of(segment.device)
    return tables


def copy(files: Iterator[Path], device: int, target: Path) -> int:
    """Write the blocks of these files, as they are below `device`, one after the other into `target`. Returns their
    size in bytes. Raises RunError.
    """
    tables = tables_of(device)
    open_devices: dict[int, int] = {}
    written = 0
    try:
        with target.open("wb") as out:
            for path in files:
                try:
                    places = list(extents(path))
                except FileNotFoundError:
                    continue
                for start, length in places:
                    for number, offset, size in below(device, tables, start, length):
                        if number not in open_devices:
                            open_devices[number] = _open(number)
                        for at in range(offset, offset + size, CHUNK):
                            wanted = min(CHUNK, offset + size - at)
                            # Drop cached pages: they may be older than what the file system has written since.
                            os.posix_fadvise(open_devices[number], at, wanted, os.POSIX_FADV_DONTNEED)
                            written += out.write(os.pread(open_devices[number], wanted, at))
    finally:
        for descriptor in open_devices.values():
            os.close(descriptor)
    return written


def _open(number: int) -> int:
    place = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/uevent")
    try:
        names = dict(line.split("=", 1) for line in place.read_text().splitlines() if "=" in line)
        return os.open(f"/dev/{names['DEVNAME']}", os.O_RDONLY)
    except (OSError, KeyError) as error:
        raise RunError(f"the block device {os.major(number)}:{os.minor(number)} can't be read: {error}") from None
