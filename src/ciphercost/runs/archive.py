"""Packed records: `.tar.xz`, `.tar.gz` or `.zip`. Reads only the files of a record, and never what an archive says about paths.

Whoever sent an archive is not trusted: this module writes nothing outside the given directory, follows no links, and
stops at a size.
"""

from __future__ import annotations

import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from ciphercost.model.errors import UsageError

SUFFIXES = (".tar.xz", ".tar.gz", ".tgz", ".zip")
FILES = (
    "plan.json",
    "slices.jsonl",
    "proofs.json",
    "storage.jsonl",
    "profile.jsonl",
    "study.json",
    "imported.json",
    "result.json",
)
"""Files of a record that are read from an archive. Others, such as logs, are skipped."""
LARGEST = 1 << 30
"""Most bytes of a record, unpacked."""
MOST_MEMBERS = 1000
CHUNK = 1 << 20


def is_packed(path: Path) -> bool:
    """Whether the name is that of a packed record. Pure."""
    return path.name.endswith(SUFFIXES)


def unpack(path: Path, into: Path, largest: int = LARGEST) -> Path:
    """Unpack a record into `into`, which must be empty. Returns `into`.

    Raises UsageError for a damaged archive, one that holds links or paths out of its directory, several runs, or too much.
    """
    left, seen = largest, dict[str, str]()
    try:
        for number, (name, content) in enumerate(_members(path)):
            if number >= MOST_MEMBERS:
                raise UsageError(f"{path}: holds more than {MOST_MEMBERS} files, so it is no packed run")
            place = _checked(path, name)
            if place.name not in FILES or len(place.parts) > 2 or "logs" in place.parts:
                continue
            if place.name in seen:
                raise UsageError(f"{path}: holds {seen[place.name]} and {name}; pack each run on its own")
            seen[place.name] = name
            left -= _copy(content, into / place.name, left, path, largest)
    except (OSError, tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError, RuntimeError) as error:
        raise UsageError(f"{path}: can't be unpacked: {error or 'it is cut off'}") from None
    if "plan.json" not in seen:
        raise UsageError(f"{path}: has no plan.json, so it is no packed run; `ciphercost gallery --pack RUN` makes one")
    return into


def _members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """(name, content) of each file. Raises UsageError for anything that is neither file nor directory."""
    if path.name.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                # The upper 16 bits are the Unix mode, if the archive has one.
                if (info.external_attr >> 28) not in (0, 0o10, 0o4):
                    raise UsageError(f"{path}: {info.filename!r} is a link or device; a record has only files")
                if not info.is_dir():
                    with archive.open(info) as content:
                        yield info.filename, content
        return
    with tarfile.open(path, "r|*") as tar:
        for member in tar:
            if not member.isreg() and not member.isdir():
                raise UsageError(f"{path}: {member.name!r} is a link or device; a record has only files")
            if member.isreg() and (opened := tar.extractfile(member)) is not None:
                yield member.name, opened
            else:
                _checked(path, member.name)


def _checked(path: Path, name: str) -> PurePosixPath:
    """The member's path. Raises UsageError if it leads out of the archive's directory."""
    place = PurePosixPath(name)
    if place.is_absolute() or ".." in place.parts or "\\" in name or "\0" in name:
        raise UsageError(f"{path}: {name!r} leads out of the archive's directory; nothing of it was read")
    return place


def _copy(content: IO[bytes], target: Path, most: int, path: Path, largest: int) -> int:
    """Copy at most that many bytes, and return how many there were. Archives lie about sizes, so bytes are counted."""
    done = 0
    with target.open("xb") as file:
        while chunk := content.read(CHUNK):
            done += len(chunk)
            if done > most:
                raise UsageError(f"{path}: holds more than {largest >> 20} MB unpacked, so it is refused")
            file.write(chunk)
    return done


def pack(files: dict[str, bytes], name: str, target: Path) -> None:
    """Write files as `.tar.xz`, in a directory of this name. The same files give the same bytes: no owner, no times."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for each, content in sorted(files.items()):
            member = tarfile.TarInfo(f"{name}/{each}")
            member.size, member.mode = len(content), 0o644
            tar.addfile(member, io.BytesIO(content))
    target.write_bytes(lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME))
