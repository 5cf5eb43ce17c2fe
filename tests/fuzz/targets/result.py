"""A result in JSON, as `trend` reads it from a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ciphercost.report import trend_analysis, trend_formats
from ciphercost.runs import trend_input
from fuzz import recorded


def parse(data: bytes, place: Path) -> None:
    """The result and a later one that equals it otherwise, because a trend needs two."""
    paths = [place / "first.json", place / "second.json"]
    paths[0].write_bytes(data)
    paths[1].write_bytes(data.replace(b'"id": "20', b'"id": "19', 1).replace(b'"id":"20', b'"id":"19', 1))
    trend_formats.get("terminal")(trend_analysis.trend(trend_input.read([str(path) for path in paths])))


def seeds(place: Path) -> Iterator[bytes]:
    yield (recorded.run(place) / "result.json").read_bytes()
    yield b"{}"
