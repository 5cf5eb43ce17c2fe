"""Where a series of estimates, one of each run, changes its level. Pure; arrays in, numbers out.

Binary segmentation (Vostrikova 1981), weighted by each run's own standard error: the runs before each point are compared
with those behind it, and, so that a change that was undone is found too, each stretch with the runs around it (circular
binary segmentation: Olshen, Venkatraman, Lucito and Wigler, Biostatistics 2004). The largest weighted contrast counts as a
change if it is rare among random orders of the same runs. So the test assumes nothing about the noise but that the runs
are independent: they may scatter more than their intervals say, which they do on shared machines, and still at most 5 % of
histories without a change show one.

`plan.change_points` is not used: its penalty needs a known level of noise, which a handful of runs does not have.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ciphercost.estimate import student_t
from ciphercost.estimate.statistics import ALPHA, POWER, Error, Floats, Interval, against

LEAST = 2
"""Fewest runs on one level: a single odd run is no change."""
ORDERS, WORK = 9999, 4e7
"""Random orders of the runs, and their most times the square of the number of runs. With 200 runs or more there are 999."""
FEWEST_ORDERS = 999
PLACE = 7.35
"""A change may also lie where the fit is worse by less than this many times the noise variance: the 95 % quantile of the
likelihood ratio of its place, −2 ln(1 − √0.95) (Hansen, Econometrica 2000, section 3)."""
ONE_SPLIT = 0.8
"""Part of the level that goes to changes that last; the rest goes to stretches behind which the old level returns."""
SEED = 20040101
"""Of the random orders, so that the same runs always give the same answer."""


class Series(NamedTuple):
    """One value of each run, in time order, with its standard errors."""

    values: Floats
    errors: Floats
    """Standard errors, the largest where a run has several."""
    nus: Floats
    """Their degrees of freedom."""


class Whole(NamedTuple):
    """A test of a whole series."""

    p_value: float
    arc: tuple[int, int]
    """The stretch that differs most from the others: runs `first` to `last − 1`, counted from 0."""
    smallest_step: float
    """Smallest lasting step in the middle that would have been found, with 80 % power or more; infinite if none would."""


def least_runs(cells: int) -> int:
    """Fewest runs in which the clearest step can be found for one of `cells` cells.

    n runs have C(n, n/2) equally likely ways to split into halves, and two of them look like a step in the middle.
    """
    n = 2 * LEAST
    while 2 * cells / math.comb(n, n // 2) / ONE_SPLIT >= ALPHA:
        n += 1
    return n


def series(intervals: list[Interval]) -> Series:
    """The values of several runs, each with its most cautious standard error."""
    widest = [
        max(interval.errors, key=lambda error: student_t.quantile(0.975, error.nu) * error.standard)
        for interval in intervals
    ]
    return Series(
        np.array([interval.middle for interval in intervals]),
        np.array([error.standard for error in widest]),
        np.array([error.nu for error in widest]),
    )


# ── the test ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def one_level(of: Series, orders: int = 0) -> Whole:
    """Whether the runs of a series, at least 2 · LEAST of them, have one level. `orders`: 0: as many as take about a second."""
    n = len(of.values)
    weights = weights_of(of)
    count = orders or int(min(ORDERS, max(FEWEST_ORDERS, WORK / n**2)))
    order = _orders(n, count)
    contrast = _Contrasts(of.values[order], weights[order])
    splits, split = contrast.splits()
    stretches, stretch = contrast.stretches()
    p_split, p_stretch = _rare(splits) / ONE_SPLIT, _rare(stretches) / (1 - ONE_SPLIT)
    centre = np.average(of.values, weights=weights)
    noise = float(np.sum(weights * (of.values - centre) ** 2)) / (n - 1)
    between = 1 / weights[: n // 2].sum() + 1 / weights[n // 2 :].sum()
    smallest = _smallest(float(np.quantile(splits[1:], 1 - ALPHA * ONE_SPLIT)), noise, n) * math.sqrt(between)
    arc = split if p_split <= p_stretch else stretch
    return Whole(min(1.0, p_split, p_stretch), arc, smallest)


@lru_cache(maxsize=2)
def _orders(n: int, count: int) -> NDArray[np.int64]:
    """Their own order of `n` runs, and `count` random ones: (count + 1, n). Cells mostly have as many runs as the one before."""
    random = np.random.default_rng(SEED)
    orders = np.vstack([np.arange(n), random.permuted(np.tile(np.arange(n), (count, 1)), axis=1)])
    orders.flags.writeable = False
    return orders


def _smallest(critical: float, noise: float, n: int) -> float:
    """The smallest step that would be found, in units of its standard error; infinite if none would.

    `critical`: contrast that is rare enough, for runs with this variance. A step adds to that variance, and so to the
    contrasts of random orders: √u = z √noise + √(critical · (1 + u ÷ ((n − 1) noise))) for its contrast u.
    """
    root = 0.0
    for _ in range(1000):
        larger = student_t.quantile(POWER, math.inf) * math.sqrt(noise)
        larger += math.sqrt(critical * (1 + root**2 / ((n - 1) * noise) if noise > 0 else 1))
        if larger - root <= 1e-9 * larger:
            return larger
        root = larger
    return math.inf


def _rare(contrasts: Floats) -> float:
    """How often another order of the runs has as large a contrast as theirs, the first."""
    # The same split in another order may differ by rounding.
    return float(1 + np.count_nonzero(contrasts[1:] >= contrasts[0] * (1 - 1e-9))) / len(contrasts)


def weights_of(of: Series, edges: Sequence[int] = ()) -> Floats:
    """1 ÷ (own variance + variance between runs), the latter by DerSimonian and Laird (1986), within the levels between `edges`."""
    # A count that is equal in every block has no error of its own.
    variances = np.maximum(of.errors**2, max(1e-6 * float(np.mean(of.errors**2)), 1e-18))
    weights = 1 / variances
    excess, scale = 0.0, 0.0
    for first, last in itertools.pairwise(edges or (0, len(variances))):
        part, values = weights[first:last], of.values[first:last]
        excess += float(np.sum(part * (values - np.average(values, weights=part)) ** 2)) - (last - first - 1)
        scale += float(part.sum() - np.sum(part**2) / part.sum())
    final_weights: Floats = 1 / (variances + (max(0.0, excess / scale) if scale > 0 else 0.0))
    return final_weights


class _Contrasts:
    """Contrasts of stretches with all other runs, for several orders of the runs: one order per row of two (r, n) arrays.

    A contrast is the weighted sum of squares that two levels explain: (difference of means)² ÷ (1/W + 1/W').
    """

    def __init__(self, values: Floats, weights: Floats) -> None:
        self.rows, self.n = values.shape
        # (n + 1, r): what is added up to one place lies together, since all rows of a place are read at once.
        self.sums = _added_up(weights * values)
        self.mass = _added_up(weights)

    def splits(self) -> tuple[Floats, tuple[int, int]]:
        """The largest contrast of the first runs with the others, by row; and the first row's stretch."""
        return self._largest((first, self.n) for first in range(LEAST, self.n - LEAST + 1))

    def stretches(self) -> tuple[Floats, tuple[int, int]]:
        """The same for stretches with a level on either side."""
        ends = range(LEAST, self.n - LEAST + 1)
        return self._largest((first, last) for first in ends for last in ends if last - first >= LEAST)

    def _largest(self, arcs: Iterable[tuple[int, int]]) -> tuple[Floats, tuple[int, int]]:
        best, arc = np.zeros(self.rows), (0, self.n)
        for first, last in arcs:
            inside = self.mass[last] - self.mass[first]
            outside = self.mass[-1] - inside
            inside_sum = self.sums[last] - self.sums[first]
            difference = inside_sum / inside - (self.sums[-1] - inside_sum) / outside
            contrast = difference**2 * inside * outside / self.mass[-1]
            if contrast[0] > best[0]:
                arc = (first, last)
            np.maximum(best, contrast, out=best)
        return best, arc


def _added_up(rows: Floats) -> Floats:
    """(n + 1, r) sums of the first 0 … n columns of (r, n) values."""
    sums = np.zeros((rows.shape[1] + 1, rows.shape[0]))
    np.cumsum(rows.T, axis=0, out=sums[1:])
    return sums


# ── the changes ───────────────────────────────────────────────────────────────────────────────────────────────────────


def changes(of: Series, whole: Whole, level: float = ALPHA) -> list[int]:
    """Numbers of the first run of each new level, in order. `whole`: the test of the whole, which must have found a change.

    Each part is tested again, at this level divided by the number of parts.
    """
    first, last = whole.arc
    edges = sorted({0, first, last, len(of.values)})
    starts = set(edges[1:-1])
    parts = len(edges) - 1
    for start, end in itertools.pairwise(edges):
        if end - start < 2 * LEAST:
            continue
        part = Series(*(array[start:end] for array in of))
        again = one_level(part)
        if again.p_value < level / parts:
            starts |= {start + change for change in changes(part, again, level / parts)}
    return sorted(starts)


class Levels:
    """The levels of a series between its changes, and how far its runs scatter around them."""

    def __init__(self, of: Series, changes: Sequence[int]) -> None:
        """`changes`: the first run of each level but the first."""
        self.of = of
        self.edges = [0, *changes, len(of.values)]
        self.weights = weights_of(of, self.edges)
        self.scatter = self._scatter()

    def _scatter(self) -> Error | None:
        """The standard deviation of the runs around their levels, per unit of weight; None if no level has two runs."""
        squares = sum(self._squares(*stretch) for stretch in itertools.pairwise(self.edges))
        nu = len(self.weights) - len(self.edges) + 1
        return Error(math.sqrt(squares / nu), nu, "scatter of the runs") if nu else None

    def _squares(self, first: int, last: int) -> float:
        weights, values = self.weights[first:last], self.of.values[first:last]
        return float(np.sum(weights * (values - np.average(values, weights=weights)) ** 2))

    def means(self) -> list[Interval]:
        """Each level as the weighted mean of its runs.

        It has two standard errors, and the larger counts: the one that the runs' own errors give, with Satterthwaite's
        degrees of freedom, and the one that the scatter of all runs around their levels gives.
        """
        return [self._mean(*stretch) for stretch in itertools.pairwise(self.edges)]

    def _mean(self, first: int, last: int) -> Interval:
        weights = self.weights[first:last]
        share = weights / weights.sum()
        variances = (share * self.of.errors[first:last]) ** 2
        total = float(variances.sum())
        below = float(np.sum(variances**2 / self.of.nus[first:last]))
        nu = total**2 / below if below > 0 else float(self.of.nus[first:last].min())
        errors = [Error(math.sqrt(total), nu, f"weighted mean of {last - first} runs")]
        if self.scatter is not None:
            standard = self.scatter.standard / math.sqrt(weights.sum())
            errors.append(Error(standard, self.scatter.nu, f"scatter of {last - first} runs"))
        return Interval(float(np.sum(share * self.of.values[first:last])), tuple(errors), last - first)

    def differences(self) -> list[Interval]:
        """Each level − the one before."""
        return [against(*pair) for pair in itertools.pairwise(self.means())]

    def p_without_any_run(self, number: int) -> float:
        """The p-value of difference `number`, the largest if any single run of its two levels is left out.

        So no change rests on one odd run.
        """
        start, change, end = self.edges[number : number + 3]
        worst = 0.0
        for left in range(start, end):
            kept = Series(*(np.delete(array[start:end], left - start) for array in self.of))
            at = change - start - (left < change)
            if 0 < at < end - start - 1:
                (difference,) = Levels(kept, [at]).differences()
                worst = max(worst, difference.p_value())
        return worst

    def place(self, number: int) -> tuple[int, int]:
        """The earliest and the latest run with which level `number` + 1 may begin, with 95 % confidence."""
        start, change, end = self.edges[number : number + 3]
        best = self._squares(start, change) + self._squares(change, end)
        noise = self.scatter.standard**2 if self.scatter else 1.0
        may = [
            at
            for at in range(start + 1, end)
            if at == change or self._squares(start, at) + self._squares(at, end) - best < PLACE * noise
        ]
        return min(may), max(may)


def certain(of: Series, at: Sequence[int], margin: float) -> Levels:
    """The levels between those changes that count; the others join the levels beside them.

    A change counts if the difference of its levels excludes 0, even without any single run, and is not within ± `margin`.
    """
    at = list(at)
    while True:
        levels = Levels(of, at)
        weak = {}
        for number, difference in enumerate(levels.differences()):
            p = max(difference.p_value(), levels.p_without_any_run(number))
            if p >= ALPHA or difference.tost(margin) < ALPHA:
                weak[number] = p
        if not weak:
            return levels
        # Without the least certain change, its two levels are one, and the others may become certain.
        del at[max(weak, key=lambda number: weak[number])]
