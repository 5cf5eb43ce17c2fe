"""A run's spec in TOML, as far as it is checked before anything starts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ciphercost.plan import specs, toml

GRID = Path(__file__).parents[3] / "book" / "grid"


def parse(data: bytes, place: Path) -> None:
    path = place / "spec.toml"
    path.write_bytes(data)
    spec = toml.load(path)
    specs.plan(spec)
    path.write_text(toml.dump(spec))
    assert toml.load(path) == spec, "a spec that is written again is another one"


def seeds(place: Path) -> Iterator[bytes]:
    for path in sorted(GRID.glob("*.toml")):
        yield path.read_bytes()
