"""How often the intervals, the verdict and the carry-over test hold in every kind of simulated noise. Needs no server; about a minute.

    python benchmarks/coverage.py [--runs 4000]

Prints the tables of METHODOLOGY.md as Markdown. "Before" is the quick interval up to version 0.1: around the Hodges–Lehmann centre, with
the errors of the mean and without the autoregression. It also prints methods that were tried for skewed sessions but not used.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from ciphercost.estimate import statistics, student_t
from ciphercost.estimate.statistics import CARRYOVER_ALPHA, LEVEL, Floats

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "simulations"))

import by_row
import simulate

FEW = (12, 16, 20, 24, 30, 50)
"""Blocks of a quick run: usually 20."""
MARGIN = math.log1p(0.01)
SESSIONS, BLOCKS = 8, 6
"""Sessions of a full run."""
Bounds = tuple[Floats, Floats]
Method = Callable[[Floats, float], Bounds]


# ── intervals ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def before(values: Floats, level: float = LEVEL) -> Bounds:
    """The quick interval up to version 0.1."""
    n = values.shape[1]
    nu = statistics.cosine_count(n)
    by_t = student_t.quantile((1 + level) / 2, n - 1) * values.std(axis=1, ddof=1) / math.sqrt(n)
    half = np.maximum(by_t, student_t.quantile((1 + level) / 2, nu) * statistics._cosine_standard(values, nu))
    centre = by_row.hodges_lehmann(values)
    return centre - half, centre + half


def signed_ranks(values: Floats, level: float = LEVEL) -> Bounds:
    """The union of the signed-rank interval and the previous one."""
    ranks = np.array([statistics.hodges_lehmann_interval(row, level) for row in values])
    low, high = before(values, level)
    return np.minimum(low, ranks[:, 0]), np.maximum(high, ranks[:, 1])


def student(values: Floats, level: float = LEVEL) -> Bounds:
    """Full mode: t over sessions."""
    n = values.shape[1]
    half = student_t.quantile((1 + level) / 2, n - 1) * values.std(axis=1, ddof=1) / math.sqrt(n)
    return values.mean(axis=1) - half, values.mean(axis=1) + half


def skewness(values: Floats) -> Floats:
    away = values - values.mean(axis=1, keepdims=True)
    found: Floats = (away**3).mean(axis=1) / (away**2).mean(axis=1) ** 1.5
    return found


def johnson(values: Floats, level: float = LEVEL) -> Bounds:
    """t moved by skewness · s/(6n) (Johnson, JASA 1978, equation 2.6)."""
    low, high = student(values, level)
    move = skewness(values) * values.std(axis=1, ddof=1) / (6 * values.shape[1])
    return low + move, high + move


def hall(values: Floats, level: float = LEVEL) -> Bounds:
    """The cubic transformation that removes skewness (Hall, Journal of the Royal Statistical Society B, 1992), inverted."""
    n = values.shape[1]
    skew = skewness(values)
    skew = np.where(np.abs(skew) < 1e-9, 1e-9, skew)
    scale, mean = values.std(axis=1, ddof=1), values.mean(axis=1)

    def inverse(quantile: float) -> Floats:
        cubic: Floats = 3 / skew * (np.cbrt(1 + skew * (quantile / math.sqrt(n) - skew / (6 * n))) - 1)
        return cubic

    t = student_t.quantile((1 + level) / 2, n - 1)
    return mean - scale * inverse(t), mean - scale * inverse(-t)


def hall_or_student(values: Floats, level: float = LEVEL) -> Bounds:
    """The union of Hall's interval and that of t."""
    one, other = hall(values, level), student(values, level)
    return np.minimum(one[0], other[0]), np.maximum(one[1], other[1])


def bootstrap_t(values: Floats, level: float = LEVEL) -> Bounds:
    """Quantiles of the studentised bootstrap, 999 samples (Hall 1988); at most 1000 rows, because it is slow."""
    n = values.shape[1]
    drawn = np.random.default_rng(0).integers(0, n, (999, n))
    bounds = []
    for row in values[:1000]:
        samples = row[drawn]
        scale = samples.std(axis=1, ddof=1)
        t = (samples.mean(axis=1) - row.mean())[scale > 0] / scale[scale > 0]
        bounds.append(row.mean() - row.std(ddof=1) * np.quantile(t, [(1 + level) / 2, (1 - level) / 2]))
    found = np.array(bounds)
    return found[:, 0], found[:, 1]


def covered(bounds: Bounds, truth: float = 0.0) -> float:
    return float(np.mean((bounds[0] <= truth) & (truth <= bounds[1])))


def equivalent(bounds: Bounds) -> float:
    """Share of runs whose interval, of level 90 %, lies within the margin."""
    return float(np.mean((bounds[0] > -MARGIN) & (bounds[1] < MARGIN)))


def width(bounds: Bounds) -> float:
    return float(np.mean(bounds[1] - bounds[0]))


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print(f"\n### {title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def machine(noise: simulate.Noise) -> simulate.Noise:
    """d of blocks, shape (runs, blocks), in noise that both arms share."""
    return lambda random, runs, blocks: simulate.experiment(random, noise, runs, blocks).values


def one_arm(own: simulate.Noise, sd: float) -> simulate.Noise:
    """d of blocks in noise of one arm, with shared white noise of `sd`."""
    white = partial(simulate.white, sd=sd)
    return lambda random, runs, blocks: simulate.experiment(random, white, runs, blocks, arm_noise=own).values


KINDS = {
    name: machine(noise)
    for name, noise in (simulate.SCENARIOS | simulate.IN_PHASE | simulate.FURTHER | simulate.HELD_OUT).items()
} | {
    f"one arm's memory of 3 slices, 1 %, on white {100 * sd:g} %": one_arm(simulate.own_memory, sd)
    for sd in (0.0, 0.005, 0.01)
}
KINDS["one arm's regimes of 6 slices, ± 1 %, on white 0.5 %"] = one_arm(simulate.own_regimes, 0.005)


def quick(runs: int) -> Iterable[Sequence[str]]:
    for name, made in KINDS.items():
        cells, ratio = [], 0.0
        for n in FEW:
            values = made(np.random.default_rng([1, n]), runs, n)
            old, new = before(values), by_row.block_bounds(values)
            cells.append(f"{percent(covered(old))} → {percent(covered(new))}")
            ratio = width(new) / width(old) if n == 20 else ratio
        yield [name, *cells, f"{ratio:.2f}"]


def joined(runs: int) -> Iterable[Sequence[str]]:
    """An alternative that would cover: the union with the signed-rank interval."""
    for name in ("white", "spikes", "in phase", "in phase, half", "wave"):
        values = KINDS[name](np.random.default_rng([1, 20]), runs, 20)
        old, new, union = before(values), by_row.block_bounds(values), signed_ranks(values)
        yield [name, *(f"{percent(covered(each))}, {width(each) / width(old):.2f}" for each in (old, new, union))]


def power(runs: int) -> Iterable[Sequence[str]]:
    noise = partial(simulate.white, sd=0.01)
    for name, method in (("before", before), ("now", by_row.block_bounds)):
        random = np.random.default_rng(20)
        effect, none, margin = (
            simulate.experiment(random, noise, runs, 25, effect=size).values for size in (MARGIN, 0.0, MARGIN)
        )
        found = 1 - covered(method(effect, LEVEL))
        yield [name, percent(found), percent(equivalent(method(none, 0.90))), percent(equivalent(method(margin, 0.90)))]


def six_cosines(values: Floats, level: float = LEVEL) -> Bounds:
    """The wider of t and six cosines, around the mean."""
    half = student_t.quantile((1 + level) / 2, 6) * statistics._cosine_standard(values, 6)
    low, high = student(values, level)
    return np.minimum(low, values.mean(axis=1) - half), np.maximum(high, values.mean(axis=1) + half)


def fewer_freedoms(values: Floats, level: float = LEVEL) -> Bounds:
    """The current interval, but with n(1 − ρ)/(1 + ρ) − 1 degrees of freedom for the autoregression, those of independent blocks."""
    n = values.shape[1]
    inflation = statistics._autoregressive_inflation(values)
    quantiles = stdtrit(np.maximum(n / inflation**2 - 1, 2), (1 + level) / 2)
    half = np.maximum(
        quantiles * inflation * values.std(axis=1, ddof=1) / math.sqrt(n), by_row.block_halves(values, level)
    )
    return values.mean(axis=1) - half, values.mean(axis=1) + half


def memory(runs: int) -> Iterable[Sequence[str]]:
    """Alternatives for noise of one arm with a memory."""
    methods: dict[str, Method] = {
        "before": before, "now": by_row.block_bounds, "now, with effective degrees of freedom": fewer_freedoms,
        "six cosines": six_cosines,
    }  # fmt: skip
    white = partial(simulate.white, sd=0.01)
    effect = simulate.experiment(np.random.default_rng(20), white, 5 * runs, 25, effect=MARGIN).values
    kinds = [made for name, made in KINDS.items() if name.startswith("one arm's memory")]
    noisy = [made(np.random.default_rng([1, 25]), runs, 25) for made in kinds]
    for name, method in methods.items():
        wide = width(method(effect, LEVEL)) / width(before(effect))
        cells = [percent(covered(method(values, LEVEL))) for values in noisy]
        yield [name, *cells, percent(1 - covered(method(effect, LEVEL))), f"{wide:.2f}"]


def stalls(runs: int) -> Iterable[Sequence[str]]:
    for n in (20, 50, 100, 200):
        random = np.random.default_rng([2, n])
        values = one_arm(simulate.own_stalls, 0.005)(random, runs, n)
        old, new = before(values), by_row.block_bounds(values)
        typical = -simulate.STALL_MEAN
        yield [
            str(n),
            f"{percent(covered(old))} → {percent(covered(new))}",
            f"{percent(covered(old, typical))} → {percent(covered(new, typical))}",
        ]


def full(runs: int) -> Iterable[Sequence[str]]:
    noises = simulate.SCENARIOS | simulate.IN_PHASE | simulate.FURTHER | simulate.HELD_OUT
    for name, noise in noises.items():
        yield [name, str(SESSIONS), *of_sessions(runs, SESSIONS, noise, simulate.SERVER_SD, 0.0)]
    for count in (8, 16, 24):
        yield [
            "log-normal effects of one arm, sd 1 %, white 1 %",
            str(count),
            *of_sessions(runs, count, simulate.white, 0.0, 0.01),
        ]
    quiet = partial(simulate.white, sd=0.002)
    yield ["log-normal effects of one arm, sd 1 %, white 0.2 %", "8", *of_sessions(runs, 8, quiet, 0.0, 0.01)]


def session_values(runs: int, count: int, noise: simulate.Noise, server_sd: float, skewed_sd: float) -> Floats:
    random = np.random.default_rng([3, count])
    values = simulate.sessions(random, noise, runs, count, BLOCKS, server_sd=server_sd, skewed_sd=skewed_sd)
    return by_row.hodges_lehmann(values.reshape(-1, BLOCKS)).reshape(runs, count)


def of_sessions(runs: int, count: int, noise: simulate.Noise, server_sd: float, skewed_sd: float) -> list[str]:
    """Coverage, and false claims of equivalence if the truth is the margin, on the side with more of them."""
    values = session_values(runs, count, noise, server_sd, skewed_sd)
    claims = max(equivalent(student(values + side * MARGIN, 0.90)) for side in (-1, 1))
    return [percent(covered(student(values))), percent(claims)]


def skewed(runs: int) -> Iterable[Sequence[str]]:
    """Alternatives for skewed sessions: coverage, false equivalence and width, and their cost without skew."""
    clean = session_values(runs, 8, simulate.white, simulate.SERVER_SD, 0.0)
    loud = session_values(runs, 8, simulate.white, 0.0, 0.01)
    quiet = session_values(runs, 8, partial(simulate.white, sd=0.002), 0.0, 0.01)
    methods: dict[str, Method] = {
        "t": student, "Johnson": johnson, "Hall": hall, "Hall or t, the wider": hall_or_student, "bootstrap-t": bootstrap_t,
    }  # fmt: skip
    for name, method in methods.items():
        cells = [
            f"{percent(covered(method(values, LEVEL)))}, "
            f"{percent(max(equivalent(method(values + side * MARGIN, 0.90)) for side in (-1, 1)))}"
            for values in (clean, loud, quiet)
        ]
        rows = 1000 if method is bootstrap_t else runs
        wide = width(method(clean, LEVEL)) / width(student(clean[:rows], LEVEL))
        yield [name, *cells, f"{wide:.2f}", percent(1 - covered(method(clean + MARGIN, LEVEL)))]


def carried(runs: int) -> Iterable[Sequence[str]]:
    """The carry-over test, and the upper limit for any test that knows the decay and the noise (white, 1 % per slice)."""
    blocks, debt, sd = 25, 0.02, 0.01
    critical = float(ndtri(1 - CARRYOVER_ALPHA / 2))
    for gradual in (False, True):
        for memory in (0.5, 1.0, 2.0, 3.0, 5.0):
            made = simulate.experiment(
                np.random.default_rng(4), simulate.white, runs, blocks, debt=debt, memory=memory, gradual=gradual
            )
            values = made.carryover
            t = values.mean(axis=1) / values.std(axis=1, ddof=1) * math.sqrt(blocks)
            found = float(np.mean(np.abs(t) > student_t.quantile(1 - CARRYOVER_ALPHA / 2, blocks - 1)))
            most = [
                percent(float(np.mean(ndtr(debt * np.sqrt(left) / sd - critical))))
                for left in unexplained(made.signs[:200], memory, gradual=gradual)
            ]
            yield [
                "built up gradually" if gradual else "left by every slice",
                f"{memory:g}",
                percent(found),
                *most,
                f"{100 * abs(float(made.values.mean())):.2f}",
            ]


def unexplained(signs: Floats, memory: float, *, gradual: bool) -> tuple[Floats, Floats]:
    """Sum of squares of the carry-over, shape (rows,), that the arm's effect and the level leave unexplained: all that a test can use.

    First with a level of each block's own, as where the machine drifts, then with one level for all blocks.
    """
    share = simulate.debts(signs, memory, lead_in=True, gradual=gradual)
    encrypted = np.where(signs[..., None] > 0, [0.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0])
    arm = (encrypted - 0.5).reshape(
        len(signs), -1
    )  # Each block holds both arms twice, so this has mean 0 in every block.
    found = []
    for levels in ((2,), (1, 2)):
        rest = (share - share.mean(axis=levels, keepdims=True)).reshape(len(signs), -1)
        rest = rest - arm * ((rest * arm).sum(axis=1) / (arm**2).sum(axis=1))[:, None]
        found.append((rest**2).sum(axis=1))
    return found[0], found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=4000)
    runs = parser.parse_args().runs
    print(
        f"{runs} runs per figure, in per cent: two standard errors at 95 % are {200 * math.sqrt(0.0475 / runs):.1f} points."
    )
    table(
        "Quick: coverage of the 95 % interval, before → now, by number of blocks",
        ["noise", *map(str, FEW), "width now ÷ before, 20 blocks"],
        quick(runs),
    )
    table(
        "Quick, 20 blocks: coverage, width ÷ before",
        ["noise", "before", "now", "union with signed ranks"],
        joined(runs),
    )
    table(
        "Quick, 25 blocks of white noise with a block sd of 1 %",
        ["", "1 % effect found", "equivalent, truth 0", "equivalent, truth 1 %"],
        power(5 * runs),
    )
    table(
        "Quick, 25 blocks: alternatives for noise of one arm with a memory of 3 slices, 1 %",
        ["interval", "alone", "on white 0.5 %", "on white 1 %", "1 % effect found in white 1 %", "width in white"],
        memory(runs),
    )
    table(
        "Quick: one arm loses nine tenths of 2 % of its slices: coverage, before → now",
        ["blocks", "of the mean cost", "of the typical block's cost"],
        stalls(runs),
    )
    table(
        "Full: t over sessions of 6 blocks",
        ["noise", "sessions", "coverage", "equivalent within 1 %, truth 1 %"],
        full(runs),
    )
    table(
        "Full, 8 sessions: alternatives for skewed sessions (coverage, equivalent if the truth is the margin)",
        ["interval", "white 1 %, servers 0.3 %", "log-normal, white 1 %", "log-normal, white 0.2 %", "width, first column",
         "1 % found, first column"],
        skewed(runs),
    )  # fmt: skip
    table(
        "Carry-over of 2 %, 25 blocks of white noise of 1 % per slice",
        [
            "carry-over",
            "decay, slices",
            "λ found",
            "at most by any test that allows for drift",
            "at most by any test",
            "bias, points",
        ],
        carried(runs),
    )


if __name__ == "__main__":
    main()
