"""What an insert took, what the upgrade added to it, and the parts of that, from runs and cells. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ciphercost.estimate import levels, statistics
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.spec import ARMS, Arm
from ciphercost.model.study import StudyRecord, StudyRun
from ciphercost.studies.jdbc_tls import setups
from ciphercost.studies.jdbc_tls.procedure import COLD, INTERLEAVED, RECEIVED, SENT, WARM, WIRE
from ciphercost.studies.jdbc_tls.setups import EVERY, LOCAL, Setup

Once = Mapping[Setup, StudyRun]
Round = Mapping[Setup, StudyRun]
WHOLE, TLS, CHATTER, WARMING, REST = "the whole", "TLS", "chatter", "JVM warm-up", "the rest"
PARTS = (TLS, CHATTER, WARMING, REST)
LEAST = 2
"""Rounds needed for an interval."""


class Known(NamedTuple):
    """A value with its 95 % interval, value ± half."""

    value: float
    half: float
    n: int = 0

    @property
    def low(self) -> float:
        return self.value - self.half

    @property
    def high(self) -> float:
        return self.value + self.half

    @property
    def excludes_zero(self) -> bool:
        """Whether its interval excludes zero."""
        return abs(self.value) > self.half


def setup_of(run: StudyRun) -> Setup:
    driver, _, more = run.workload.partition(" ")
    return Setup(driver, run.operation, "encrypted" if run.arm == "encrypted" else "plain", local=more == LOCAL)


def once(record: StudyRecord) -> Once:
    """The published runs, one each, by setup."""
    return {setup_of(run): run for run in record.runs if not run.design}


class Packets(NamedTuple):
    """Message sizes of one insert and of its answer: MySQL packets without TLS, TLS records with it."""

    sent: tuple[int, ...]
    received: tuple[int, ...]

    @property
    def single(self) -> bool:
        """Whether an insert is one message each way: nothing between an OK and the next insert."""
        return len(self.sent) == len(self.received) == 1


def packets(record: StudyRecord) -> dict[Setup, Packets]:
    """By setup, as a relay saw them; empty for older records."""
    return {
        setup_of(run): Packets(*(tuple(int(size) for size in run.series[name]) for name in (SENT, RECEIVED)))
        for run in record.runs
        if run.design == WIRE
    }


def rounds(record: StudyRecord) -> list[Round]:
    """The rounds that have every setup, in order."""
    by_session: dict[int, dict[Setup, StudyRun]] = {}
    for run in record.runs:
        if run.design == INTERLEAVED:
            by_session.setdefault(int(run.load["session"]), {})[setup_of(run)] = run
    return [runs for _, runs in sorted(by_session.items()) if all(setup in runs for setup in EVERY)]


def us(run: StudyRun, state: str) -> float:
    """µs per insert, cold or warm."""
    return run.series[f"{state}_us"][0]


def over(of: Iterable[Round], value: Callable[[Round], float]) -> Known | None:
    """Mean over rounds with t's interval; None for too few rounds."""
    values = np.array([value(runs) for runs in of])
    if len(values) < LEAST:
        return None
    interval = statistics.session_interval(values, centre=float(np.mean(values)))
    return Known(interval.centre, interval.half(), len(values))


def ratio(of: Iterable[Round], above: Setup, below: Setup, state: str) -> Estimate | None:
    """Ratio of the mean times (the printed levels), with t's interval by the delta method.

    Round i enters the log ratio by its share in either mean.
    """
    times = np.array([[us(runs[setup], state) for setup in (above, below)] for runs in of])
    if len(times) < LEAST:
        return None
    means = times.mean(axis=0)
    parts = times[:, 0] / means[0] - times[:, 1] / means[1]
    log_ratio = math.log(means[0] / means[1])
    low, high = statistics.session_interval(parts, log_ratio).bounds()
    return Estimate(math.exp(log_ratio), math.exp(low), math.exp(high), n=len(times))


# ── our cells: warm, interleaved ──────────────────────────────────────────────────────────────────────────────────────


class Warm(NamedTuple):
    """µs per insert in JVMs that have long been warm, by our own method."""

    old: float
    in_clear: Known
    """What the new driver adds without TLS."""
    tls: Known
    """What TLS adds to the new driver."""
    without_queries: Known | None
    """What the new driver adds without TLS if it sends no queries of its own; None: this call sends none."""
    asks: Mapping[str, float]
    """Statements per insert that the old driver does not send, by the server's count."""
    whole: Estimate
    """New driver with TLS ÷ old driver, time."""
    driver: Estimate
    """New driver without TLS ÷ old driver."""


def ours(cells: Iterable[Cell], setup: Setup) -> Cell | None:
    """The cell with this driver and call, if it has figures; it has both arms."""
    for cell in cells:
        local = cell.factors.get(LOCAL) == "true"
        if cell.client.endswith(f" {setup.driver}") and cell.factors.get("how") == setup.call and local == setup.local:
            return cell if cell.overhead else None
    return None


def warm(cells: Sequence[Cell], call: str) -> Warm | None:
    """Figures of a call; None if one of its cells has no figure."""
    old, new, local = (ours(cells, make(call)) for make in (setups.before, setups.after, setups.without_queries))
    if old is None or new is None:
        return None
    level = us_of(old, "plain")
    clear = new.client_against_reference.get("throughput_plain")
    if clear is None:
        return None
    asks = more_statements(old, new)
    quiet = local.client_against_reference.get("throughput_plain") if local else None
    cost = new.overhead["throughput"]
    added = slower(clear, level)
    return Warm(
        level,
        added,
        slower(cost, level + added.value),
        slower(quiet, level) if quiet and asks else None,
        asks,
        product(inverse(cost), inverse(clear)),
        inverse(clear),
    )


def us_of(cell: Cell, arm: Arm) -> float:
    return cell.clients * 1e6 / (levels.level(cell, arm, "throughput") or math.inf)


def slower(rate: Estimate, level: float) -> Known:
    """Convert a ratio of rates into the time that it adds to `level`."""
    value, least, most = (level * (1 / quotient - 1) for quotient in (rate.ratio, rate.high, rate.low))
    return Known(value, max(value - least, most - value), rate.n)


def inverse(rate: Estimate) -> Estimate:
    return Estimate(1 / rate.ratio, 1 / rate.high, 1 / rate.low, n=rate.n)


def product(one: Estimate, other: Estimate) -> Estimate:
    """Product of two ratios with independent errors: half-widths of the logarithms add as squares."""
    halves = [math.log(estimate.high / estimate.low) / 2 for estimate in (one, other)]
    value, half = one.ratio * other.ratio, math.hypot(*halves)
    return Estimate(value, value * math.exp(-half), value * math.exp(half), n=min(one.n, other.n))


def more_statements(old: Cell, new: Cell) -> dict[str, float]:
    """Statements by the server's count, the larger of both arms, so that none is missed."""
    statements: dict[str, float] = {}
    for arm in ARMS:
        before, after = old.chatter.get("plain", {}), new.chatter.get(arm, {})
        for name, count in after.items():
            if (more := count - before.get(name, 0.0)) > LEAST_MORE:
                statements[name] = max(statements.get(name, 0.0), more)
    return statements


LEAST_MORE = 0.01
"""Statements per insert."""


# ── the split ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Split(NamedTuple):
    """What the upgrade adds to an insert in a cold virtual machine, µs, and its parts."""

    whole: Known
    parts: dict[str, Known]
    sum: Known
    """Sum of the parts."""
    left: Known
    """The whole less the sum."""

    @property
    def adds_up(self) -> bool:
        return not self.left.excludes_zero


def split(of: list[Round], known: Warm | None, call: str) -> Split | None:
    """Split the upgrade's time. TLS, additional queries (chatter) and the rest come from our cells (warm, interleaved). Warm-up is what a start of Java
    takes beyond its own warm end, less the same for the old driver. The whole comes from the cold starts alone.

    Whole and warm-up come from the same rounds, so their cold parts cancel: whole - warm-up is what the upgrade adds to the warm ends.
    So the remainder, settled - (TLS + chatter + rest), has the errors of those and not the larger errors of cold starts. Chatter and
    rest share an error; their sum, `in_clear`, does not contain it.
    """
    old, new = setups.before(call), setups.after(call)
    whole = over(of, lambda runs: us(runs[new], COLD) - us(runs[old], COLD))
    warming = over(of, lambda runs: start_up(runs[new]) - start_up(runs[old]))
    settled = over(of, lambda runs: us(runs[new], WARM) - us(runs[old], WARM))
    # Queries that no cell measures without can't be separated from the rest.
    if not whole or not warming or not settled or known is None or (known.asks and known.without_queries is None):
        return None
    parts = {TLS: known.tls, CHATTER: Known(0.0, 0.0), WARMING: warming, REST: known.in_clear}
    if known.without_queries is not None:
        both = math.hypot(known.in_clear.half, known.without_queries.half)
        parts[CHATTER] = Known(known.in_clear.value - known.without_queries.value, both, known.in_clear.n)
        parts[REST] = known.without_queries
    ours_ = Known(known.tls.value + known.in_clear.value, math.hypot(known.tls.half, known.in_clear.half))
    return Split(
        whole,
        parts,
        Known(warming.value + ours_.value, math.hypot(warming.half, ours_.half)),
        Known(settled.value - ours_.value, math.hypot(settled.half, ours_.half)),
    )


def start_up(run: StudyRun) -> float:
    """µs per insert that a cold Java takes beyond what the same process takes once warm."""
    return us(run, COLD) - us(run, WARM)
