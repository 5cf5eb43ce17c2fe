"""Compare two directories of wheels byte by byte: `compare.py FIRST SECOND`.

Prints the SHA-256 of each file and, for wheels that differ, which member does and in what. Exit status 1 if anything differs.
"""

from __future__ import annotations

import hashlib
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

FIELDS = ("date_time", "external_attr", "compress_type", "create_version", "create_system", "extra", "CRC", "file_size")
"""What a zip file says of each member."""


def differences(first: Path, second: Path) -> Iterator[str]:
    """A line for each file that only one directory has, and for each difference of two files."""
    names = [{each.name for each in directory.iterdir()} for directory in (first, second)]
    for name in sorted(names[0] ^ names[1]):
        yield f"{name}: only in {first if name in names[0] else second}"
    for name in sorted(names[0] & names[1]):
        if (first / name).read_bytes() != (second / name).read_bytes():
            members = list(_members(first / name, second / name)) if name.endswith(".whl") else []
            yield from (f"{name}: {line}" for line in members or ["differs"])


def _members(first: Path, second: Path) -> Iterator[str]:
    with zipfile.ZipFile(first) as one, zipfile.ZipFile(second) as other:
        listed = [{each.filename: each for each in archive.infolist()} for archive in (one, other)]
        for name in sorted(listed[0].keys() ^ listed[1].keys()):
            yield f"{name} is only in {'the first' if name in listed[0] else 'the second'}"
        common = [name for name in listed[0] if name in listed[1]]
        if common != [name for name in listed[1] if name in listed[0]]:
            yield "members are in another order"
        for name in common:
            a, b = listed[0][name], listed[1][name]
            yield from (
                f"{name}: {field} {getattr(a, field)!r} and {getattr(b, field)!r}"
                for field in FIELDS
                if getattr(a, field) != getattr(b, field)
            )
            place = _first_difference(one.read(name), other.read(name))
            if place is not None:
                yield f"{name}: contents differ from byte {place} on"


def _first_difference(a: bytes, b: bytes) -> int | None:
    if a == b:
        return None
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def main(first: Path, second: Path) -> int:
    for path in sorted(first.iterdir()):
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}")
    found = list(differences(first, second))
    if not any(first.iterdir()):
        found = [f"{first} is empty"]
    for line in found:
        print(line, file=sys.stderr)
    print("They differ." if found else "Both builds are the same.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
