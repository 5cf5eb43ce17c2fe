"""What an agent answers: the line of a slice with its histogram, and the greeting of a MySQL server."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ciphercost.engines._mysql import greeting
from ciphercost.estimate import histogram
from ciphercost.model import histogram as codec
from ciphercost.model.slices import AgentSlice
from fuzz import recorded


def parse(data: bytes, place: Path) -> None:
    try:
        answer = msgspec.json.decode(data, type=AgentSlice)
    except (msgspec.DecodeError, UnicodeDecodeError):
        answer = None
    with contextlib.suppress(ValueError):
        histogram.quantiles(codec.decode(answer.histogram if answer else data), [0.5, 0.99])
    with contextlib.suppress(ValueError):
        greeting.parse(data)


def seeds(place: Path) -> Iterator[bytes]:
    for line in (recorded.run(place) / "slices.jsonl").read_bytes().splitlines()[:3]:
        answer = json.loads(line)["agent"]
        yield json.dumps(answer).encode()
        yield answer["histogram"].encode()
    yield b"\x4a\0\0\0\x0a8.4.0\0" + bytes(60) + b"caching_sha2_password\0"
