"""A small real record, made by the fake agent, from which targets take their seeds."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from unittest import mock

import fake
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.runs import pipeline


@cache
def run(place: Path) -> Path:
    """A finished run of one cell."""
    cells = [CellSpec("null", "busy", regime="one-core")]
    with fake.in_place(place, "--effect 0.02 --sd 0.01"), mock.patch.dict(os.environ, {"CIPHERCOST_PAGE": "off"}):
        pipeline.run(Spec(cells=cells, seed=7, mode="quick", sessions=1, time=4.0), place / "recorded")
    return place / "recorded"


def lines(path: Path, most: int) -> bytes:
    """The first lines of a file."""
    return b"".join(path.read_bytes().splitlines(keepends=True)[:most])
