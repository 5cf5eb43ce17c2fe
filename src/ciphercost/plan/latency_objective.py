"""The objective of a search for capacity, `p99=5ms`: what was typed, how long its slices are, and which rates it can try. Pure."""

from __future__ import annotations

import itertools
import math
import re

import msgspec

from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import schedule

SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
"""The quantiles that an objective may name."""
_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
SCALES = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))
LEAST, MOST = 1e-6, 60.0
"""Seconds that an objective may allow. One microsecond is the resolution of what agents can send and receive."""
EXAMPLE = "write e.g. p99=5ms (p50, p90, p99 or p99.9; us, ms or s)"

WANTED, NEEDED = 50, 10
"""Requests beyond the quantile in each arm of a block: as many as wanted, if there is time for them, and at least."""
SETTLED = 10.0
"""Slice ÷ time in which a queue forgets that it began empty. A fifth of the slice is not counted, so that twice this time is discarded."""
BACKLOG = 5.0
"""Slice ÷ the objective's latency, at least. In shorter slices a queue that grows has no time to exceed the objective."""
BLOCKS = 8
"""Blocks for which each session must have room. Four of them may search; the others estimate."""


class Objective(msgspec.Struct, frozen=True):
    """A latency that a share of all requests must keep."""

    name: str
    """`p99`."""
    share: float
    seconds: float

    @property
    def allowed(self) -> float:
        """Share of requests that may be slower."""
        return 1 - self.share

    @property
    def text(self) -> str:
        """`p99=5ms`: as short as possible, and the same for equal objectives."""
        unit, scale = next(entry for entry in SCALES if self.seconds >= entry[1] * (1 - 1e-9))
        return f"{self.name}={self.seconds / scale:.6g}{unit}"

    def exceeded(self, times: float) -> float:
        """Latency, seconds, that a queue at its capacity exceeds in 1/`times` of the share allowed.

        In M/M/1 the share of requests slower than t falls as exp(−t (μ − λ)), and at the capacity it is `allowed` at the objective's latency.
        """
        return self.seconds * (1 + math.log(times) / math.log(1 / self.allowed))

    def settling(self, rate: float) -> float:
        """Seconds in which a queue at this objective and rate (operations/s) forgets its beginning.

        The relaxation time of M/M/1 in heavy traffic, 4·λ·(L / ln(1/(1 − p)))²: with capacity μ, the quantile of the time in the
        system is L = ln(1/(1 − p)) / (μ − λ), and the relaxation time is 1/(√μ − √λ)² ≈ 4μ/(μ − λ)² (Morse 1955).
        """
        return 4 * rate * (self.seconds / math.log(1 / (1 - self.share))) ** 2


def parse(text: str, where: str = "--objective") -> Objective:
    """Read `p99=5ms`. Raises UsageError."""
    match = re.fullmatch(r"\s*(p[\d.]+)\s*=\s*(\d+(?:\.\d+)?)\s*(us|µs|ms|s)\s*", text)
    if match is None:
        raise UsageError(f"{where}: '{text}' is not an objective; {EXAMPLE}")
    name, value, unit = match.groups()
    if name not in SHARES:
        raise UsageError(f"{where}: '{text}' names {name}; {EXAMPLE}")
    seconds = float(value) * _SECONDS[unit]
    if not LEAST * (1 - 1e-9) <= seconds <= MOST:
        raise UsageError(f"{where}: '{text}': the latency must be between 1us and {MOST:g}s; {EXAMPLE}")
    return Objective(name, SHARES[name], seconds)


def of(cell: CellSpec) -> Objective | None:
    """The cell's objective; None if it has none. Raises UsageError."""
    return parse(cell.objective, "objective") if cell.objective else None


def room(objective_s: float) -> float:
    """Longest slice, seconds, of which a session of `objective_s` seconds holds BLOCKS blocks."""
    return objective_s / (schedule.SLICES_A_BLOCK * BLOCKS)


def slice_length(of: Objective, rate: float, objective_s: float, usual: float) -> float:
    """Seconds of a slice at `rate` operations/s, in a session that searches for `objective_s` seconds.

    Long enough for the quantile and for the queue to settle, if that fits; never shorter than `usual`, the closed loop's slice.
    """
    wanted = max(_for_requests(of, rate, WANTED), SETTLED * of.settling(rate), BACKLOG * of.seconds, usual)
    return max(usual, min(wanted, room(objective_s)))


def lowest_rate(of: Objective, objective_s: float, usual: float) -> float:
    """The lowest rate, operations/s, at which a slice has enough requests for the quantile."""
    return _for_requests(of, 1.0, NEEDED) / max(usual, room(objective_s))


def _for_requests(of: Objective, rate: float, beyond: int) -> float:
    """Seconds of a slice so that `beyond` requests of an arm's two slices of a block are slower than the quantile."""
    return beyond / (1 - of.share) / (2 * (1 - schedule.DISCARD) * rate)


# ── checks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def check(spec: Spec) -> None:
    """Raises UsageError for an objective that can't be read, or with options that contradict it or leave it no time."""
    for cell in spec.cells:
        if not cell.objective:
            continue
        objective = of(cell)
        assert objective is not None
        where = f"objective {cell.objective}"
        contradicting = (
            ("rate", cell.rate, "it searches for the rate"),
            ("regime latency", cell.regime == "latency", "it searches for the rate, which that regime fixes"),
            ("max_rate", cell.max_rate, "the search must also try rates that are too high"),
            ("max_latency", cell.max_latency, "the search must also try rates that are too high for it"),
            ("precision", spec.precision, "a run that stops on the precision of throughput may end before the search"),
            ("slice_seconds", spec.slice_seconds, "its slices must be long enough for the quantile"),
            ("no latency", not spec.latency, "it needs an open loop (--no-latency, or latency = false)"),
        )
        for name, given, why in contradicting:
            if given:
                raise UsageError(f"{where} and {name}: {why}; remove one of them")
        if cell.group and len({other.objective for other in spec.cells if other.group == cell.group}) > 1:
            raise UsageError(f"group '{cell.group}': its cells share their sessions, so they need the same objective")
        _check_time(spec, cell, objective)


def _check_time(spec: Spec, cell: CellSpec, objective: Objective) -> None:
    """Raises UsageError if slices would be so short that no queue could exceed the objective's latency in them."""

    def fits(time: float) -> bool:
        split = schedule.budget(msgspec.structs.replace(spec, time=time), cell)
        return room(split.objective_s) >= BACKLOG * objective.seconds * (1 - 1e-9)

    if fits(spec.time):
        return
    least = next(float(whole) for whole in itertools.count(int(spec.time)) if fits(float(whole)))
    raise UsageError(
        f"objective {cell.objective}: with --time {spec.time:g}s a slice lasts at most "
        f"{room(schedule.budget(spec, cell).objective_s):.2g} s, too short for a queue to exceed {objective.seconds:g} s; "
        f"use --time {least:.0f}s, fewer --sessions, or a shorter latency"
    )
