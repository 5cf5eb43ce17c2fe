"""How often simulated runs, with and without stalls of one arm, are equivalent, pass a gate, or warn.

`before` uses only the robust ratio, like versions up to 0.1; `now` is what `estimate` and `compare --fail-over 1%` do. There is white noise
of 1 % and, in full mode, an effect of 0.3 % for each server. It takes about two minutes:

    python benchmarks/stalls.py [RUNS]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ciphercost.estimate import statistics, totals
from ciphercost.estimate.cost_ratios import ratio_of_totals, throughput_differs
from ciphercost.estimate.to_estimate import to_estimate, with_totals
from ciphercost.estimate.verdict import judge
from ciphercost.estimate.warnings import DISAGREE
from ciphercost.model.spec import Mode
from ciphercost.report import cost_gate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "simulations"))

import by_row
import simulate
from simulate import Blocks, Floats, Noise, Random

RUNS = 1000
MARGIN = 0.01
SHARES = (0.0, 0.005, 0.01, 0.02, 0.05)
"""Shares of the encrypted arm's slices that stall; they cost 0, 0.45, 0.9, 1.8 and 4.5 %."""
NOISES: dict[str, Noise] = {
    "white": simulate.white,
    "drift": simulate.drift,
    "periodic": simulate.periodic,
    "regimes": simulate.speeds,
    "trend with a step": simulate.trend_with_large_step,
    "spikes in both arms": simulate.spikes,
}
DESIGNS: dict[str, tuple[int, int]] = {
    "full, 8 × 12 blocks": (8, 12),
    "quick, 20 blocks": (1, 20),
    "quick, 25": (1, 25),
}
"""(sessions, blocks per session)."""


class Outcome(NamedTuple):
    """The outcome of one run, or shares of runs after averaging."""

    equivalent_before: float
    equivalent: float
    passes_before: float
    passes: float
    disagrees_before: float
    disagrees: float
    stalls: float


def outcome(rates: Floats, signs: Floats, sessions: int) -> Outcome:
    """The outcome of one run: `rates` (blocks, 4), `signs` (blocks,)."""
    mode: Mode = "full" if sessions > 1 else "quick"
    number = np.repeat(np.arange(sessions), len(rates) // sessions)
    blocks = simulate.as_arms(rates, signs, number)
    values = Blocks(rates, signs).values
    if mode == "full":
        robust = statistics.session_interval(by_row.hodges_lehmann(values.reshape(sessions, -1)))
    else:
        robust = statistics.block_interval(values)
    together = ratio_of_totals(blocks, ("work",), "seconds", mode)
    assert together is not None
    headline = together._replace(centre=robust.centre, mean=together.centre) if mode == "full" else robust
    before, estimate = (with_totals(to_estimate(each, mode, ""), together) for each in (robust, headline))
    apart = abs(together.centre - robust.centre)
    stalled = totals.stalled(blocks)
    p_value = min(throughput_differs(blocks), stalled.p_value if stalled.uneven else 1.0)
    differs = apart > DISAGREE and p_value < totals.ALPHA
    return Outcome(
        robust.tost(math.log1p(MARGIN)) < statistics.ALPHA,
        judge(headline, together, mode, MARGIN).verdict == "equivalent",
        cost_gate.robustly("throughput", before, MARGIN) == "pass",
        cost_gate.passed("throughput", estimate, MARGIN) == "pass",
        apart > max(DISAGREE, robust.half()),
        differs,
        not differs and apart > DISAGREE and stalled.uneven,
    )


def simulated(random: Random, noise: Noise, sessions: int, blocks: int, share: float, runs: int) -> Iterator[Outcome]:
    made = simulate.experiment(random, noise, runs, sessions * blocks)
    if sessions > 1:
        # Each server's own effect; half of their difference on either side keeps the level.
        own = random.normal(0, simulate.SERVER_SD * math.sqrt(2), (runs, sessions)).repeat(blocks, axis=1)
        turns = made.signs[..., None] * np.array([-0.5, 0.5, 0.5, -0.5])
        made = made._replace(rates=made.rates + turns * own[..., None])
    made = simulate.stalling(random, made, share)
    for rates, signs in zip(made.rates, made.signs, strict=True):
        yield outcome(rates, signs, sessions)


def mean(outcomes: Iterator[Outcome]) -> Outcome:
    return Outcome(*np.mean(list(outcomes), axis=0))


def main(runs: int) -> None:
    print(f"{runs} runs a line; margin and gate {MARGIN:.0%}; before → now")
    head = f"{'':42} {'equivalent':>17} {'passes the gate':>17} {'totals-disagree':>17} {'stalls':>7}"
    random = np.random.default_rng(31)
    lines: list[tuple[str, Noise, float]] = [
        (f"{share:.1%} of slices stall", simulate.white, share) for share in SHARES
    ]
    lines += [(f"A/A, {name}", noise, 0.0) for name, noise in NOISES.items()]
    for design, (sessions, blocks) in DESIGNS.items():
        print(f"\n{design:42}{head[42:]}")
        for name, noise, share in lines:
            of = mean(simulated(random, noise, sessions, blocks, share, runs))
            pairs = (of[:2], of[2:4], of[4:6])
            said = " ".join(f"{before:7.1%} → {now:7.1%}" for before, now in pairs)
            print(f"{name:42} {said} {of.stalls:7.1%}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS)
