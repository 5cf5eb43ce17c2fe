"""A packed run, as `book` unpacks it."""

from __future__ import annotations

import io
import lzma
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ciphercost.model import bounds
from ciphercost.runs import archive
from fuzz import recorded

SMALL = msgspec.structs.replace(bounds.UNPACKED, most=8 << 20)


def parse(data: bytes, place: Path) -> None:
    """The bytes are the tar within: compressing them first lets the fuzzer reach it."""
    path, into = place / "run.tar.xz", place / "unpacked"
    path.write_bytes(lzma.compress(data, preset=0) if data[:1] != b"\xfd" else data)
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir()
    archive.unpack(path, into, SMALL)
    outside = [path for path in into.rglob("*") if not path.resolve().is_relative_to(into.resolve())]
    assert outside == [], f"it wrote or linked outside of its directory: {outside}"


def seeds(place: Path) -> Iterator[bytes]:
    run = recorded.run(place)
    for names in (["plan.json"], ["../plan.json"], ["plan.json", "slices.jsonl", "logs/x"]):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for name in names:
                content = (run / "plan.json").read_bytes()[:200]
                entry = tarfile.TarInfo(f"run/{name}")
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
        yield packed.getvalue()
