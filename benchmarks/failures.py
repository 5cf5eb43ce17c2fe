"""How often simulated runs of two equal arms, in which slices fail, are equivalent, pass a gate of 1 %, or say that one arm fails more often.

`before` leaves failed slices out, like versions up to 0.1; `now` is what `estimate` and `compare --fail-over 1%` do. White noise of 1 % and, in
full mode, an effect of 0.3 % for each server. It takes about four minutes:

    python benchmarks/failures.py [RUNS]
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np

from ciphercost.estimate import failures
from ciphercost.model.result import Cell, CellEstimate, Estimate
from ciphercost.report import cost_gate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "simulations"))

import simulate_failures
from simulate_failures import SLOW_COST, TIMED_OUT, Failing

RUNS, LIMIT = 300, 0.01
CASES: dict[str, tuple[Failing, float]] = {
    "none": (Failing(), 0.0),
    "encrypted 0.5 %": (Failing(encrypted=0.005), -0.005),
    "encrypted 1 %": (Failing(encrypted=0.01), -0.01),
    "encrypted 2 %": (Failing(encrypted=0.02), -0.02),
    "encrypted 5 %": (Failing(encrypted=0.05), -0.05),
    "plain 2 %": (Failing(plain=0.02), 0.02),
    "both 0.5 %": (Failing(plain=0.005, encrypted=0.005), 0.0),
    "both 2 %": (Failing(plain=0.02, encrypted=0.02), 0.0),
    "outages of three slices in 4 % of blocks": (Failing(outages=0.04), 0.0),
    f"encrypted slow, {TIMED_OUT:.1%} time out": (Failing(slow=True), SLOW_COST),
}
"""What fails, and the log ratio of what users get."""
DESIGNS = {"full, 8 × 12 blocks": (8, 12), "quick, 25 blocks": (1, 25)}


def cell(of: CellEstimate) -> Cell:
    return Cell(
        "e", "1", "transit", "tls", "w", 1, "ok", "full", of.verdict, overhead=of.overhead, failures=of.failures
    )


def holds(of: CellEstimate, truth: float, *, now: bool) -> tuple[bool, float]:
    """(whether the interval holds the truth, its width in log ratios): of the headline, or with the one with failed slices."""
    own, worst = of.overhead["throughput"], of.failures and of.failures.throughput
    ends: list[Estimate] = [own, *([worst] if now and worst else [])]
    low, high = min(each.low for each in ends), max(each.high for each in ends)
    return low <= math.exp(truth) <= high, math.log(high / low)


def main(runs: int) -> None:
    print(
        f"{runs} runs a line; before → now. Coverage and half-width: of the headline → of it and the interval with failures"
    )
    for number, (design, (sessions, blocks)) in enumerate(DESIGNS.items()):
        print(
            f"\n{design:42}{'equivalent':>17} {'gate passes':>17} {'fails':>7} {'says so':>7} {'coverage':>17} {'half-width, %':>14}"
        )
        for name, (failing, truth) in CASES.items():
            rows = []
            for each in simulate_failures.runs(17 + number, runs, sessions, blocks, failing):
                own = each.overhead["throughput"]
                before, after = holds(each, truth, now=False), holds(each, truth, now=True)
                open_ = each.failures is not None and each.failures.undecided
                within = (
                    max(abs(math.log(own.low)), abs(math.log(own.high))) < math.log1p(LIMIT) and not each.totals_open
                )
                gate = cost_gate.with_failures("throughput", cell(each), LIMIT)
                rows.append(
                    (
                        each.verdict == "equivalent" or (open_ and within),
                        each.verdict == "equivalent",
                        cost_gate.passed("throughput", own, LIMIT) == "pass",
                        gate == "pass",
                        gate == "fail",
                        failures.differ(each.failures),
                        before[0],
                        after[0],
                        before[1] / 2 * 100,
                        after[1] / 2 * 100,
                    )
                )
            m = np.mean(np.array(rows, float), axis=0)
            print(
                f"{name:42}{m[0]:7.1%} → {m[1]:7.1%} {m[2]:7.1%} → {m[3]:7.1%} {m[4]:7.1%} {m[5]:7.1%} {m[6]:7.1%} → {m[7]:7.1%} "
                f"{m[8]:5.2f} → {m[9]:5.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS)
