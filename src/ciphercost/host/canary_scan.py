"""canary_scan: scans files for a word in plaintext. I/O, no verdict."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

CHUNK = 4 << 20
GONE = (errno.ENOENT, errno.ESRCH, errno.ESTALE)


class Seen(msgspec.Struct):
    """What a scan read and found."""

    files: int = 0
    size: int = 0
    """Bytes read, without the holes of sparse files."""
    hits: dict[str, int] = {}
    """Number of occurrences by file, under the name shown to users; only files that contain the word."""

    def __str__(self) -> str:
        return f"{self.files} files, {self.size} bytes"


def canary() -> str:
    """A random word that occurs nowhere else. No letter repeats itself directly, because Firebird compresses such runs."""
    letters = [secrets.choice("0123456789abcdef")]
    while len(letters) < 32:
        if (letter := secrets.choice("0123456789abcdef")) != letters[-1]:
            letters.append(letter)
    return f"canary{''.join(letters)}"


def search(files: Iterable[tuple[str, Path]], word: str) -> Seen:
    """Scan every file (name, path) for the word. A file that vanishes before it is read counts as nothing."""
    seen = Seen()
    wanted = word.encode()
    for name, path in files:
        try:
            read, occurrences = _count(path, wanted)
        except OSError as error:
            if error.errno in GONE:
                continue
            raise
        seen.files += 1
        seen.size += read
        if occurrences:
            seen.hits[name] = seen.hits.get(name, 0) + occurrences
    return seen


def below(places: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """(name relative to its place, path) of every regular file: places that are files themselves, and all files below
    the others.

    Raises OSError if a directory can't be read: what was not scanned proves nothing.
    """

    def unread(error: OSError) -> None:
        if error.errno not in GONE:
            raise error

    for place in places:
        if place.is_file():
            yield place.name, place
            continue
        for directory, _, names in os.walk(place, onerror=unread):
            for name in sorted(names):
                path = Path(directory) / name
                if not path.is_symlink() and path.is_file():
                    yield str(path.relative_to(place)), path


def held_open(pids: Iterable[int], without: Iterable[Path] = ()) -> Iterator[tuple[str, Path]]:
    """(name, path below /proc) of every regular file that these processes can write to and that no directory scan would
    find.

    These are unlinked files, and files outside the places `without`. Each file is listed once. Raises OSError if a
    running process does not show its open files.
    """
    known = set()
    inside = [str(place) + "/" for place in without]
    for pid in pids:
        try:
            descriptors = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208
        except OSError as error:
            if error.errno in GONE:
                continue
            raise
        for number in descriptors:
            path = Path(f"/proc/{pid}/fd/{number}")
            try:
                target, status = os.readlink(path), path.stat()  # noqa: PTH115 - may be no path: "/x (deleted)"
                flags = int(Path(f"/proc/{pid}/fdinfo/{number}").read_text().split("flags:")[1].split()[0], 8)
            except (OSError, IndexError, ValueError):
                continue
            this = status.st_dev, status.st_ino
            unlinked = target.endswith(" (deleted)")
            if (
                not stat.S_ISREG(status.st_mode)
                or this in known
                or flags & os.O_ACCMODE == os.O_RDONLY
                or (not unlinked and any(target.startswith(prefix) for prefix in inside))
            ):
                continue
            known.add(this)
            yield target, path


def _count(path: Path, word: bytes) -> tuple[int, int]:
    """(bytes read, occurrences of the word) of one file. Skips holes."""
    read = occurrences = 0
    with path.open("rb", buffering=0) as file:
        descriptor = file.fileno()
        for start, end in _data(descriptor):
            at, tail = start, b""
            while at < end:
                piece = os.pread(descriptor, min(CHUNK, end - at), at)
                if not piece:
                    break
                occurrences += (tail + piece).count(word)
                # The next piece may complete the word; this is too short to contain it.
                tail = (tail + piece)[-(len(word) - 1) :] if len(word) > 1 else b""
                at += len(piece)
            read += at - start
    return read, occurrences


def _data(descriptor: int) -> Iterator[tuple[int, int]]:
    """The (begin, end) ranges of a file that hold data."""
    end = 0
    size = os.fstat(descriptor).st_size
    while end < size:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return  # only a hole is left
            if error.errno in (errno.EINVAL, errno.EOPNOTSUPP):
                yield end, size  # this file system doesn't report holes
                return
            raise
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, end
