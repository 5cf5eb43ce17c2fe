"""Two encrypted settings in one cell (`--versus`) beside the same comparison by two cells of one experiment (`--matrix`), with as much load for both;
and 40 runs of a setting against itself, in quick and in full mode.

    python benchmarks/versus.py [pairs] [a_a] [a_a_full] [SECONDS]

Each comparison has SECONDS of load: one cell of that length with --versus, two cells of half of it with --matrix. The ratio is the half-width of
the matrix's interval ÷ that of the pair, both of the log ratio of operations per second.
"""

from __future__ import annotations

import math
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import msgspec

from ciphercost.model.result import Cell, Estimate
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import matrix
from ciphercost.runs import pipeline
from run import Row

SECONDS = 90.0
RUNS, RUN_SECONDS, ALLOWED = 40, 5.0, 5


class Comparison(NamedTuple):
    """A cell, and the settings that both ways compare."""

    cell: CellSpec
    factor: str
    reference: str
    compared: str


COMPARISONS = (
    Comparison(CellSpec("postgresql", "tls"), "version", "1.2", "1.3"),
    Comparison(CellSpec("nginx", "tls", workload="connect"), "group", "x25519", "x25519mlkem768"),
    Comparison(CellSpec("mysql", "tls"), "cipher", "chacha20", "aes256-gcm"),
)


def rows() -> list[Row]:
    return [*map(pair, COMPARISONS), a_a(QUICK), a_a(FULL)]


def pair(of: Comparison, seconds: float = SECONDS) -> Row:
    """The half-widths of both ways, each with so many seconds of load."""
    versus = msgspec.structs.replace(of.cell, factors={of.factor: of.compared}, versus={of.factor: of.reference})
    cells = matrix.matrix(of.cell, [f"{of.factor}={of.reference},{of.compared}"])
    with tempfile.TemporaryDirectory() as place:
        alone = _measured([versus], seconds, Path(place) / "versus")[0]
        against = _measured(cells, seconds / 2, Path(place) / "matrix")[1]
    assert alone.pair is not None
    assert not alone.reason, alone.reason
    own = alone.overhead["throughput"]
    assert against.against_reference is not None
    theirs = against.against_reference
    name = f"{of.cell.engine} {of.factor} {of.reference} → {of.compared}"
    for way, each in (("--versus", own), ("--matrix", theirs)):
        print(
            f"  {name}, {way}: {each.ratio - 1:+.2%} ({each.low - 1:+.2%} to {each.high - 1:+.2%}), half-width {half(each):.2%}",
            flush=True,
        )
    ratio = half(theirs) / half(own)
    row = f"{name}: half-width {half(own):.2%}, by --matrix {half(theirs):.2%}"
    return {"bench": "versus", "row": row, "ratio": ratio, "low": ratio, "high": ratio, "aim": 1.0}


def half(of: Estimate) -> float:
    """Half the width of the interval of a log ratio."""
    return (math.log(of.high) - math.log(of.low)) / 2


QUICK = Spec(
    [CellSpec("postgresql", "tls", regime="one-core", factors={"version": "1.3"}, versus={"version": "1.3"})],
    mode="quick",
    sessions=1,
    time=RUN_SECONDS,
    latency=False,
)
FULL = Spec(
    [CellSpec("valkey", "tls", regime="one-core", factors={"version": "1.3"}, versus={"version": "1.3"})],
    sessions=8,
    time=8.0,
    slice_seconds=0.1,
    latency=False,
)


def a_a(of: Spec) -> Row:
    """How many intervals of a setting against itself miss 1."""
    missed = 0
    with tempfile.TemporaryDirectory() as place:
        for number in range(RUNS):
            spec = msgspec.structs.replace(of, seed=number + 1)
            found = pipeline.run(spec, Path(place) / str(number)).cells[0].overhead["throughput"]
            missed += not found.low <= 1 <= found.high
            print(f"  {number + 1}: {found.ratio - 1:+.3%} ({found.low - 1:+.3%} to {found.high - 1:+.3%})", flush=True)
    ratio = (ALLOWED + 1) / (missed + 1)
    what = f"{of.cells[0].engine}, {of.mode} mode"
    row = f"{RUNS} runs of TLS 1.3 against TLS 1.3 ({what}): {missed} intervals miss 1; at most {ALLOWED}"
    return {"bench": "versus", "row": row, "ratio": ratio, "low": ratio, "high": ratio, "aim": 1.0}


def _measured(cells: list[CellSpec], seconds: float, place: Path) -> list[Cell]:
    return pipeline.run(Spec(cells=cells, seed=1, time=seconds, latency=False), place).cells


if __name__ == "__main__":
    parts = {"a_a": QUICK, "a_a_full": FULL}
    wanted = [each for each in sys.argv[1:] if each in ("pairs", *parts)] or ["pairs", *parts]
    seconds = next((float(each) for each in sys.argv[1:] if each.isdigit()), SECONDS)
    if "pairs" in wanted:
        for each in COMPARISONS:
            print(pair(each, seconds)["row"], flush=True)
    for name, spec in parts.items():
        if name in wanted:
            print(a_a(spec)["row"], flush=True)
