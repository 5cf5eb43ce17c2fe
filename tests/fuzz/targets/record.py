"""A record that somebody else gives us: plan, slices and proofs, read and estimated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ciphercost.model import run_directory
from ciphercost.runs import conclude
from fuzz import recorded

NAMES = ("plan.json", "proofs.json", "slices.jsonl")
BETWEEN = b"\n%%\n"


def parse(data: bytes, place: Path) -> None:
    parts = data.split(BETWEEN, len(NAMES) - 1)
    for name, content in zip(NAMES, [*parts, b"", b""], strict=False):
        (place / name).write_bytes(content)
    list(run_directory.read_slices(place))
    conclude.result_of(place)


def seeds(place: Path) -> Iterator[bytes]:
    run = recorded.run(place)
    for most in (1, 12, 60):
        yield BETWEEN.join([recorded.lines(run / name, most if name.endswith("l") else 10**6) for name in NAMES])
