"""measured: the procedure's runs and our cells -> what an insert took, what the upgrade added to it, and the parts of that. Pure."""

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
"""Rounds of which there is an interval."""


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
    def from_nothing(self) -> bool:
        """Whether its interval leaves zero out."""
        return abs(self.value) > self.half


def setup_of(run: StudyRun) -> Setup:
    driver, _, more = run.workload.partition(" ")
    return Setup(driver, run.operation, "encrypted" if run.arm == "encrypted" else "plain", local=more == LOCAL)


def once(record: StudyRecord) -> Once:
    """The published runs: one each."""
    return {setup_of(run): run for run in record.runs if not run.design}


class Packets(NamedTuple):
    """Sizes of what crosses the wire for one insert, and of what comes back: in clear MySQL packets, with TLS records."""

    sent: tuple[int, ...]
    received: tuple[int, ...]

    @property
    def single(self) -> bool:
        """Whether an insert is one message there and one back: nothing is asked between an OK and the next insert."""
        return len(self.sent) == len(self.received) == 1


def packets(record: StudyRecord) -> dict[Setup, Packets]:
    """By setup, as a relay saw them; of older records nothing."""
    return {
        setup_of(run): Packets(*(tuple(int(size) for size in run.series[name]) for name in (SENT, RECEIVED)))
        for run in record.runs
        if run.design == WIRE
    }


def rounds(record: StudyRecord) -> list[Round]:
    """Those that have every setup, in their order."""
    found: dict[int, dict[Setup, StudyRun]] = {}
    for run in record.runs:
        if run.design == INTERLEAVED:
            found.setdefault(int(run.load["session"]), {})[setup_of(run)] = run
    return [own for _, own in sorted(found.items()) if all(setup in own for setup in EVERY)]


def us(run: StudyRun, state: str) -> float:
    """Of an insert, cold or warm."""
    return run.series[f"{state}_us"][0]


def over(of: Iterable[Round], value: Callable[[Round], float]) -> Known | None:
    """Mean over rounds, with t's interval; None of so few that there is none."""
    values = np.array([value(each) for each in of])
    if len(values) < LEAST:
        return None
    made = statistics.session_interval(values, centre=float(np.mean(values)))
    return Known(made.centre, made.half(), len(values))


def ratio(of: Iterable[Round], above: Setup, below: Setup, state: str) -> Estimate | None:
    """Time ÷ time: the ratio of the mean times, which are the printed levels, with t's interval (delta method).

    Round i is part of the log ratio by its share in either mean.
    """
    times = np.array([[us(each[setup], state) for setup in (above, below)] for each in of])
    if len(times) < LEAST:
        return None
    means = times.mean(axis=0)
    parts = times[:, 0] / means[0] - times[:, 1] / means[1]
    log_ratio = math.log(means[0] / means[1])
    low, high = statistics.session_interval(parts, log_ratio).bounds()
    return Estimate(math.exp(log_ratio), math.exp(low), math.exp(high), n=len(times))


# ── our cells: warm, interleaved ──────────────────────────────────────────────────────────────────────────────────────


class Warm(NamedTuple):
    """What an insert takes in virtual machines that have long been warm, µs, by our own method."""

    old: float
    in_clear: Known
    """What the new driver adds to that, without TLS."""
    tls: Known
    """What TLS adds to the new driver."""
    quiet: Known | None
    """What the new driver adds that is kept from asking, without TLS; None: by this call it asks nothing."""
    asks: Mapping[str, float]
    """Statements an insert that the old driver does not send, by the server's count."""
    whole: Estimate
    """New driver with TLS ÷ old driver, time."""
    driver: Estimate
    """New driver without TLS ÷ old driver."""


def ours(cells: Iterable[Cell], setup: Setup) -> Cell | None:
    """The cell that has this driver by this call, if it has figures; both of its arms."""
    for cell in cells:
        local = cell.factors.get(LOCAL) == "true"
        if cell.client.endswith(f" {setup.driver}") and cell.factors.get("how") == setup.call and local == setup.local:
            return cell if cell.overhead else None
    return None


def warm(cells: Sequence[Cell], call: str) -> Warm | None:
    """Of a call; None where one of its cells has no figure."""
    old, new, local = (ours(cells, make(call)) for make in (setups.before, setups.after, setups.quiet))
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
    """Of a ratio of rates: the time that it adds to `level`."""
    value, least, most = (level * (1 / each - 1) for each in (rate.ratio, rate.high, rate.low))
    return Known(value, max(value - least, most - value), rate.n)


def inverse(rate: Estimate) -> Estimate:
    return Estimate(1 / rate.ratio, 1 / rate.high, 1 / rate.low, n=rate.n)


def product(one: Estimate, other: Estimate) -> Estimate:
    """Of two ratios, their errors taken for independent: the interval by the sum of squares of the logarithms' half-widths."""
    halves = [math.log(each.high / each.low) / 2 for each in (one, other)]
    value, half = one.ratio * other.ratio, math.hypot(*halves)
    return Estimate(value, value * math.exp(-half), value * math.exp(half), n=min(one.n, other.n))


def more_statements(old: Cell, new: Cell) -> dict[str, float]:
    """By the server's count, each arm's: the larger of both, so that nothing that is sent is left out."""
    found: dict[str, float] = {}
    for arm in ARMS:
        before, after = old.chatter.get("plain", {}), new.chatter.get(arm, {})
        for name, count in after.items():
            if (more := count - before.get(name, 0.0)) > LEAST_MORE:
                found[name] = max(found.get(name, 0.0), more)
    return found


LEAST_MORE = 0.01
"""Statements an insert."""


# ── the split ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Split(NamedTuple):
    """What the upgrade adds to an insert in a cold virtual machine, µs, and its parts."""

    whole: Known
    parts: dict[str, Known]
    sum: Known
    """Of the parts."""
    left: Known
    """The whole less the sum."""

    @property
    def adds_up(self) -> bool:
        return not self.left.from_nothing


def split(of: list[Round], known: Warm | None, call: str) -> Split | None:
    """TLS, chatter and the rest are our cells' (warm, by turns); warm-up is what a start of Java has beyond its own warm end, more than the
    old driver's start has; the whole is of the cold starts alone.

    Whole and warm-up are of the same rounds, in which what is cold cancels: whole - warm-up is what the upgrade adds to the warm ends.
    So what is left is known as well as those are, and not as badly as cold starts: settled - (TLS + chatter + rest). Chatter and rest
    have an error in common, which their sum, `in_clear`, has not.
    """
    old, new = setups.before(call), setups.after(call)
    whole = over(of, lambda each: us(each[new], COLD) - us(each[old], COLD))
    warming = over(of, lambda each: start_up(each[new]) - start_up(each[old]))
    settled = over(of, lambda each: us(each[new], WARM) - us(each[old], WARM))
    # What asks, and isn't measured without, can't be told from the rest.
    if not whole or not warming or not settled or known is None or (known.asks and known.quiet is None):
        return None
    parts = {TLS: known.tls, CHATTER: Known(0.0, 0.0), WARMING: warming, REST: known.in_clear}
    if known.quiet is not None:
        both = math.hypot(known.in_clear.half, known.quiet.half)
        parts[CHATTER] = Known(known.in_clear.value - known.quiet.value, both, known.in_clear.n)
        parts[REST] = known.quiet
    ours_ = Known(known.tls.value + known.in_clear.value, math.hypot(known.tls.half, known.in_clear.half))
    return Split(
        whole,
        parts,
        Known(warming.value + ours_.value, math.hypot(warming.half, ours_.half)),
        Known(settled.value - ours_.value, math.hypot(settled.half, ours_.half)),
    )


def start_up(run: StudyRun) -> float:
    """µs an insert that a cold Java takes beyond what the same process takes once it is warm."""
    return us(run, COLD) - us(run, WARM)
