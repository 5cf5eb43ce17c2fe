"""What ciphercost itself costs: time between slices, memory, start and re-estimation. Limit ÷ measured value; 1 or more is within the limit."""

from __future__ import annotations

import os
import re
import shlex
import statistics as st
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run import Row

ROOT = Path(__file__).parent.parent
FAKE = ROOT / "agents" / "fake" / "fake_agent.py"
SLICES = 100_000
CLI = Path(sys.executable).parent / "ciphercost"

DRIVE = """
import sys
from pathlib import Path
from ciphercost.runs import pipeline
from ciphercost.model.spec import CellSpec, Spec
seconds = {slices} * 0.1 * 1.35
spec = Spec(cells=[CellSpec("null", "busy", regime="one-core")], seed=1, sessions=8, time=seconds, slice_seconds=0.1)
pipeline.run(spec, Path(sys.argv[1]))
print(Path("/proc/self/status").read_text())
"""

ESTIMATE = """
import sys, time
from pathlib import Path
began = time.perf_counter()
from ciphercost.runs import conclude
result = conclude.result_of(Path(sys.argv[1]))
print("seconds", time.perf_counter() - began)
print(Path("/proc/self/status").read_text())
"""


def rows() -> list[Row]:
    found = [between_slices(), helping()]
    with tempfile.TemporaryDirectory() as place:
        agent = Path(place) / "fake-agent"
        agent.write_text(
            f"#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(FAKE))} --effect 0.02 --sd 0.01\n"
        )
        agent.chmod(0o755)
        run = Path(place) / "run"
        output = python(DRIVE.format(slices=SLICES), str(run), CIPHERCOST_AGENT=str(agent))
        with (run / "slices.jsonl").open("rb") as lines:
            count = sum(1 for _ in lines)
        found.append(row(f"memory while {count:,} slices are run, bar 200 MB", 200, [memory(output)], "MB"))
        outputs = [python(ESTIMATE, str(run)) for _ in range(5)]
        seconds = [float(re.search(r"seconds ([\d.]+)", text)[1]) for text in outputs]  # type: ignore[index]
        found.append(row(f"re-estimating {count:,} slices, bar 5 s", 5, seconds, "s"))
        found.append(
            row(f"memory of re-estimating {count:,} slices, bar 200 MB", 200, [memory(text) for text in outputs], "MB")
        )
    return found


def between_slices() -> Row:
    """Share of the controller's own time in real runs on PostgreSQL at the slice length that the pilot picks, on one core."""
    from ciphercost.model.spec import CellSpec, Spec
    from ciphercost.runs import pipeline

    shares = []
    with tempfile.TemporaryDirectory() as place:
        for number in range(3):
            cells = [CellSpec("postgresql", "tls", regime="one-core")]
            result = pipeline.run(
                Spec(cells=cells, mode="quick", sessions=1, time=12, latency=False), Path(place) / str(number)
            )
            assert result.cells[0].status == "ok", result.cells[0].reason
            shares.append((result.overhead_of_controller or 0) * 100)
    return row("controller's time between slices, bar 2 % of load", 2, shares, "%")


def helping() -> Row:
    times = []
    for _ in range(11):
        began = time.perf_counter()
        subprocess.run([CLI, "--help"], capture_output=True, check=True)
        times.append((time.perf_counter() - began) * 1000)
    return row("ciphercost --help, bar 100 ms", 100, times, "ms")


def python(code: str, *argv: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *argv],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return done.stdout


def memory(status: str) -> float:
    """Peak resident memory in MB, from the text of a /proc/self/status."""
    match = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert match is not None
    return int(match[1]) / 1000


def row(name: str, bar: float, measured: list[float], unit: str) -> Row:
    """The limit ÷ the median of the measured values; the interval is their range."""
    middle = st.median(measured)
    print(f"  {name}: {middle:.3g} {unit} ({min(measured):.3g} to {max(measured):.3g})", flush=True)
    return {
        "bench": "controller",
        "row": name,
        "ratio": bar / middle,
        "low": bar / max(measured),
        "high": bar / min(measured),
        "aim": 1.0,
    }
