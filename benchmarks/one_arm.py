"""Which interval of the headline holds what a user pays, in every kind of noise, and at what width; for METHODOLOGY.md.

8 sessions of 6 and of 12 blocks. `typical`: the Hodges–Lehmann values of the sessions, as up to version 0.1; `totals`: the ratio of totals; `tested`: totals
where their difference is resolved at 5 %, typical otherwise; `both`: the union; `now`: totals, widened to contain the typical ratio. Coverage in per
cent, and the mean width ÷ that of `typical`. It takes about a minute:

    python benchmarks/one_arm.py [RUNS]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "simulations"))

import simulate_one_arm as one_arm
from simulate import Noise
from simulate_one_arm import Bounds, Disturbance

SESSIONS, BLOCKS = 8, (6, 12)


def main(runs: int) -> None:
    kinds: dict[str, tuple[Noise, Disturbance | None]] = {
        **{k: (n, None) for k, n in one_arm.SHARED.items()},
        **one_arm.ONE_ARM,
    }
    for blocks in BLOCKS:
        print(
            f"\n### {SESSIONS} sessions of {blocks} blocks, {runs} runs: coverage, width ÷ typical's, error of the estimate\n"
        )
        for number, (name, (noise, disturbance)) in enumerate(kinds.items()):
            made = one_arm.runs(np.random.default_rng([44, blocks, number]), noise, runs, SESSIONS, blocks, disturbance)
            found = one_arm.candidates(made)
            if not number:
                print(f"| Noise | {' | '.join(found)} | rmse typical / totals |")
                print("|---" * (len(found) + 2) + "|")
            width = found["typical"].width()
            cells = (f"{100 * each.covers(made.truth):.1f}, ×{each.width() / width:.2f}" for each in found.values())
            errors = " / ".join(f"{100 * rmse(found[each], made.truth):.2f}" for each in ("typical", "totals"))
            print(f"| {name} | {' | '.join(cells)} | {errors} |", flush=True)


def rmse(of: Bounds, truth: float) -> float:
    return float(np.sqrt(np.mean((of.centre - truth) ** 2)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
