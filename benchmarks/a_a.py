"""60 runs of plain against plain on PostgreSQL through the whole path: how many claim a difference, and what one minute of calibrate resolves."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

from ciphercost.model.spec import CellSpec, Spec
from ciphercost.runs import pipeline
from run import Row

RUNS = 60
SECONDS = 5.0
ALLOWED = 7


def rows() -> list[Row]:
    return [claims(), calibration()]


def claims() -> Row:
    cell = CellSpec("postgresql", "none", regime="one-core")
    claimed, missed = 0, 0
    with tempfile.TemporaryDirectory() as place:
        for number in range(RUNS):
            spec = Spec(cells=[cell], seed=number + 1, mode="quick", sessions=1, time=SECONDS, latency=False)
            found = pipeline.run(spec, Path(place) / str(number)).cells[0]
            assert found.status in ("ok", "no-steady-state"), found.reason
            if found.status != "ok":
                print(f"  {number + 1}: {found.status}", flush=True)
                continue
            throughput = found.overhead["throughput"]
            claimed += found.verdict == "differs"
            missed += not throughput.low <= 1 <= throughput.high
            print(
                f"  {number + 1}: {throughput.ratio - 1:+.3%} ({throughput.low - 1:+.3%} to {throughput.high - 1:+.3%}) {found.verdict}",
                flush=True,
            )
    print(f"  {claimed} of {RUNS} runs claim a difference; {missed} intervals miss 1")
    worst = max(claimed, missed)
    # (allowed + 1) ÷ (seen + 1), so that it is a number even without claims.
    ratio = (ALLOWED + 1) / (worst + 1)
    name = f"{RUNS} A/A runs: {claimed} claims, {missed} intervals miss 1; at most {ALLOWED}"
    return {"bench": "a_a", "row": name, "ratio": ratio, "low": ratio, "high": ratio, "aim": 1.0}


def calibration() -> Row:
    """Half-width of one `ciphercost calibrate postgresql`: full mode, 45 s of load, about a minute in all."""
    with tempfile.TemporaryDirectory() as place:
        cell = CellSpec("postgresql", "none", regime="one-core")
        found = pipeline.run(Spec(cells=[cell], seed=1, time=45, latency=False), Path(place) / "run").cells[0]
    throughput = found.overhead["throughput"]
    half = (math.log(throughput.high) - math.log(throughput.low)) / 2
    inside = throughput.low <= 1 <= throughput.high
    print(f"  calibrate: {throughput.ratio - 1:+.3%} ({throughput.low - 1:+.3%} to {throughput.high - 1:+.3%})")
    return {
        "bench": "a_a",
        "row": f"calibrate, one minute: half-width {half:.2%}, bar 1 %; 1 is {'inside' if inside else 'OUTSIDE'}",
        "ratio": 0.01 / half,
        "low": 0.01 / half,
        "high": 0.01 / half,
        "aim": 1.0,
    }
