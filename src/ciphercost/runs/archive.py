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

from ciphercost.model import bounds
from ciphercost.model.bounds import Bound
from ciphercost.model.errors import UsageError
from ciphercost.runs.unpacked import Unpacked, check_directory

SUFFIXES = (".tar.xz", ".tar.gz", ".tgz", ".zip")
FILES = (
    "plan.json",
    "slices.jsonl",
    "proofs.json",
    "storage.jsonl",
    "profile.jsonl",
    "storm.jsonl",
    "memory.jsonl",
    "rotation.jsonl",
    "study.json",
    "imported.json",
    "result.json",
)
"""Files of a record that are read from an archive. Others, such as logs, are skipped."""
CHUNK = 1 << 18


def is_packed(path: Path) -> bool:
    """Whether the name is that of a packed record. Pure."""
    return path.name.endswith(SUFFIXES)


def unpack(path: Path, into: Path, unpacked: Bound = bounds.UNPACKED) -> Path:
    """Unpack a record into `into`, which must be empty. Returns `into`.

    Raises UsageError for a damaged archive, one that holds links or paths out of its directory, several runs, or too much.
    """
    seen = dict[str, str]()
    try:
        if (size := path.stat().st_size) > bounds.PACKED.most:
            raise bounds.too_large(str(path), bounds.PACKED, size)
        if not path.is_file():
            raise UsageError(f"{path}: not a regular file; save it to one")
        for name, content in _members(path, unpacked):
            place = _checked(path, name)
            if place.name not in FILES or len(place.parts) > 2 or "logs" in place.parts:
                continue
            if place.name in seen:
                raise UsageError(f"{path}: holds {seen[place.name]} and {name}; pack each run on its own")
            seen[place.name] = name
            _copy(content, into / place.name, path, unpacked)
    except MemoryError:
        raise UsageError(f"{path}: can't be unpacked: it needs more memory than is allowed") from None
    except (OSError, tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError, RuntimeError) as error:
        raise UsageError(f"{path}: can't be unpacked: {error or 'it is cut off'}") from None
    if "plan.json" not in seen:
        raise UsageError(f"{path}: has no plan.json, so it is no packed run; `ciphercost book --pack RUN` makes one")
    return into


def _members(path: Path, unpacked: Bound) -> Iterator[tuple[str, IO[bytes]]]:
    """(name, content) of each file. Raises UsageError for anything that is neither file nor directory, and for too many or too much.

    What is skipped counts too: in a tar archive it is unpacked all the same.
    """
    if path.name.endswith(".zip"):
        check_directory(path)
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
            for number, info in enumerate(infos):
                _count(path, number)
                # The upper 16 bits are the Unix mode, if the archive has one.
                if (info.external_attr >> 28) not in (0, 0o10, 0o4):
                    raise UsageError(f"{path}: {info.filename!r} is a link or device; a record has only files")
            _allow(path, sum(info.file_size for info in infos), unpacked)
            for info in infos:
                if not info.is_dir():
                    with archive.open(info) as content:
                        yield info.filename, content
        return
    total = 0
    with Unpacked(path, unpacked) as stream, tarfile.open(fileobj=stream, mode="r:") as tar:
        for number, member in enumerate(tar):
            _count(path, number)
            if not member.isreg() and not member.isdir():
                raise UsageError(f"{path}: {member.name!r} is a link or device; a record has only files")
            total += member.size
            _allow(path, total, unpacked)  # before any of it is unpacked
            if member.isreg() and (opened := tar.extractfile(member)) is not None:
                yield member.name, opened
            else:
                _checked(path, member.name)


def _count(path: Path, number: int) -> None:
    if number >= bounds.ARCHIVE_MEMBERS:
        raise UsageError(f"{path}: holds more than {bounds.ARCHIVE_MEMBERS} files, so it is no packed run")


def _allow(path: Path, total: int, unpacked: Bound) -> None:
    if total > unpacked.most:
        raise bounds.too_large(str(path), unpacked, total)


def _checked(path: Path, name: str) -> PurePosixPath:
    """The member's path. Raises UsageError if it leads out of the archive's directory."""
    place = PurePosixPath(name)
    if place.is_absolute() or ".." in place.parts or "\\" in name or "\0" in name:
        raise UsageError(f"{path}: {name!r} leads out of the archive's directory; nothing of it was read")
    return place


def _copy(content: IO[bytes], target: Path, path: Path, unpacked: Bound) -> None:
    """Copy a member. Archives lie about sizes, so bytes are counted."""
    done = 0
    with target.open("xb") as file:
        while chunk := content.read(CHUNK):
            done += len(chunk)
            if done > unpacked.most:
                raise bounds.too_large(str(path), unpacked)
            file.write(chunk)


def pack(files: dict[str, bytes], name: str, target: Path) -> None:
    """Write files as `.tar.xz`, in a directory of this name. The same files give the same bytes: no owner, no times."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for file_name, content in sorted(files.items()):
            member = tarfile.TarInfo(f"{name}/{file_name}")
            member.size, member.mode = len(content), 0o644
            tar.addfile(member, io.BytesIO(content))
    target.write_bytes(lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME))
