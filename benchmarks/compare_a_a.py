"""60 recorded pairs of equal runs, quick and full, through `compare`: how many claim that the costs differ.

They use the null engine's control (nothing against nothing) and its busy wait (a known effect). Both runs of a pair have the same spec and
different seeds, and every run is recorded and read back separately. It takes about a quarter of an hour.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Literal

from ciphercost.estimate import results
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.report import comparison, comparison_types
from ciphercost.runs import pipeline
from run import Row

QUICK, FULL = 44, 16
SECONDS = 4.0
SESSIONS = 4
ALLOWED = 3
"""Of 60: 5 %."""


def rows() -> list[Row]:
    verdicts: Counter[str] = Counter()
    missed = 0
    with tempfile.TemporaryDirectory() as place:
        for number in range(QUICK + FULL):
            mode: Literal["quick", "full"] = "quick" if number < QUICK else "full"
            both = [recorded(Path(place) / f"{number}-{side}", mode, number, 2 * number + side) for side in (1, 2)]
            (pair,) = comparison.compare(both).pairs
            change = pair.change[pair.metric]
            verdicts[str(pair.verdict)] += 1
            missed += not change.low <= 1 <= change.high
            span = f"{change.low - 1:+.3%} to {change.high - 1:+.3%}"
            print(f"  {number + 1}, {mode}: {change.ratio - 1:+.3%} ({span}) {pair.verdict}", flush=True)
    print(f"  {dict(verdicts)}; {missed} intervals miss 1")
    ratio = (ALLOWED + 1) / (verdicts["differs"] + 1)
    said = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    name = f"{QUICK + FULL} A/A pairs ({QUICK} quick, {FULL} full): {said}; {missed} intervals miss 1; at most {ALLOWED} differ"
    return [{"bench": "compare_a_a", "row": name, "ratio": ratio, "low": ratio, "high": ratio, "aim": 1.0}]


def recorded(directory: Path, mode: Literal["quick", "full"], number: int, seed: int) -> comparison_types.Run:
    cell = CellSpec("null", "busy" if number % 2 else "none", regime="one-core")
    sessions = 1 if mode == "quick" else SESSIONS
    pipeline.run(Spec(cells=[cell], seed=seed, mode=mode, sessions=sessions, time=SECONDS, latency=False), directory)
    return comparison_types.Run(directory.name, *results.with_intervals(directory))
