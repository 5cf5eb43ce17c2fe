"""What encryption adds to an operation, in the unit in which it is paid: CPU time. With its base and the ratio that follows from both. Pure.

What is added carries over to other statements on the same machine. The ratio does not: it is a fact about the operation that was measured.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ciphercost.estimate import added_together, notation, plausible
from ciphercost.estimate.levels import level
from ciphercost.estimate.notation import number
from ciphercost.model.result import Added, Cell, Estimate, Part
from ciphercost.model.spec import ARMS
from ciphercost.report.words import operation_text
from ciphercost.report.words.figure_text import cost, cpu_metric

WHOSE = {
    "server_cpu_per_op": "server CPU",
    "client_cpu_per_op": "process CPU",
    "machine_cpu_per_op": "CPU with kernel threads",
}
"""What an operation's CPU time is called in a sentence, by metric."""


class AddedCost(msgspec.Struct, frozen=True):
    """CPU time of an operation without encryption and with it, µs."""

    key: str
    """The metric: see `figure_text.cpu_metric`; the client's where the application encrypts and the server shows nothing."""
    whose: str
    """`server CPU`."""
    added: Added
    plain: float
    encrypted: float
    """µs per operation."""
    ratio: Estimate
    to: str = operation_text.OPERATION
    """What an operation is called: `query`."""


def of(cell: Cell) -> AddedCost | None:
    """None for a cell without CPU times, for a control, and for one whose ratio is not what encryption costs."""
    if cell.layer == "control" or cell.imported is not None or not cell.overhead or plausible.is_no_cost(cell):
        return None
    added_cost = _at(cell, cpu_metric(cell))
    if cell.layer == "column" and not cell.embedded and (added_cost is None or not seen(added_cost)):
        client = _at(cell, "client_cpu_per_op")
        return client if client is not None and seen(client) else added_cost
    return added_cost


def _at(cell: Cell, key: str) -> AddedCost | None:
    added = cell.added.get(key.removesuffix("_per_op")) if key in cell.overhead else None
    if added is None:
        return None
    plain, encrypted = (level(cell, arm, key) for arm in ARMS)
    if not plain or not encrypted:
        return None
    whose = "client CPU" if key == "client_cpu_per_op" and not cell.embedded else WHOSE[key]
    return AddedCost(key, whose, added, plain, encrypted, cell.overhead[key], operation_text.of(cell))


def by_client(cell: Cell) -> bool:
    """Whether the application encrypts: then the client pays, and the server shows nothing."""
    added_cost = of(cell)
    return added_cost is not None and added_cost.key == "client_cpu_per_op" and not cell.embedded


def seen(cost_: AddedCost) -> bool:
    """Whether the run shows that anything is added, or saved."""
    return cost_.added.low > 0 or cost_.added.high < 0


def time(us: float, half: float) -> str:
    """`6.02 µs`, `1.71 ms`, `0.57 ns`: as many digits as a half-width of the interval supports."""
    scale, unit = _unit(us, half)
    return f"{_digits(us * scale, half * scale)} {unit}"


def span(low: float, high: float, like: float) -> str:
    """`5.63–6.41`, or `−0.3 to 1.1` where it holds 0: both ends of an interval in the unit of `time(like, …)`."""
    half = (high - low) / 2
    scale, _ = _unit(like, half)
    first, last = (_digits(bound * scale, half * scale) for bound in (low, high))
    return f"{first} to {last}" if low < 0 else f"{first}–{last}"


def rough_time(us: float) -> str:
    """`600 µs`, `1.8 ms`, `0.34 s`: two significant digits."""
    scale, unit = (1.0, "µs") if us < 995 else (1e-3, "ms") if us < 995_000 else (1e-6, "s")
    return f"{float(f'{us * scale:.2g}'):g} {unit}"


KNOWN = "95 % CI "
"""What stands before the first interval of a sentence."""


def with_interval(part: Part, known: str = "", *, whose: str = "") -> str:
    """`1.71 ms of server CPU (95 % CI 1.63–1.79)`. `known`: KNOWN or nothing; `whose`: `server CPU` or nothing."""
    of_what = f" of {whose}" if whose else ""
    return f"{time(part.value, (part.high - part.low) / 2)}{of_what} ({known}{span(part.low, part.high, part.value)})"


def part(added: Added) -> Part:
    return Part(added.mean, added.low, added.high)


def levels(cost_: AddedCost) -> str:
    """`13.1 → 19.1 µs`: what it is added to."""
    return from_level(cost_.plain, cost_.encrypted)


def from_level(plain: float, encrypted: float) -> str:
    """The same of CPU times in µs."""
    unit = "µs"
    if min(plain, encrypted) >= 1000:
        plain, encrypted, unit = plain / 1e3, encrypted / 1e3, "ms"
    return f"{number(plain)} → {number(encrypted)} {unit}"


def base(cost_: AddedCost) -> str:
    """`13.1 → 19.1 µs, 46 % more`: what it is added to, and the ratio; without that if the run sees nothing."""
    return f"{levels(cost_)}, {cost(cost_.key, cost_.ratio)}" if seen(cost_) else levels(cost_)


def line(cell: Cell) -> str:
    """`+6.0 µs per operation (5.6–6.4): 13.1 → 19.1 µs, 46 % more`; empty: nothing is known of it."""
    added_cost = of(cell)
    if added_cost is None:
        return ""
    amount, ends = figures(added_cost)
    return f"{amount} per operation ({ends}): {base(added_cost)}"


def adds(added_cost: AddedCost) -> str:
    """`adds 6.0 µs of server CPU to each query (95 % CI 5.6–6.4)`, or that the run sees nothing."""
    whose, low, high = added_cost.whose, added_cost.added.low, added_cost.added.high
    half = (high - low) / 2
    known = f"(95 % CI {span(low, high, added_cost.added.mean)})"
    if not seen(added_cost):
        scale, unit = _unit(max(abs(low), abs(high)), half)
        known = f"(95 % CI {_digits(low * scale, half * scale)} to {_digits(high * scale, half * scale)} {unit})"
        return f"adds no {whose} that this run can tell from 0 {known}"
    if added_cost.added.mean < 0:
        less = f"(95 % CI {span(-high, -low, added_cost.added.mean)})"
        return f"takes {time(-added_cost.added.mean, half)} less {whose} for each {added_cost.to} {less}"
    return f"adds {time(added_cost.added.mean, half)} of {whose} to each {added_cost.to} {known}"


def share(added: Part, us: float) -> str:
    """What is added, as a share of an operation of this CPU time: `6.0 %`, or `under 0.1 %`."""
    percent = 100 * added.value / us
    if added.low <= 0:
        return f"at most {_rough(100 * added.high / us)} %"
    return f"{_rough(percent)} %"


def figures(added_cost: AddedCost) -> tuple[str, str]:
    """`+6.02 µs` and its interval, for a table."""
    return figure(part(added_cost.added)), span(added_cost.added.low, added_cost.added.high, added_cost.added.mean)


def figure(of: Part) -> str:
    """`+6.02 µs`, or `−0.31 µs`."""
    return f"{'+' if of.value >= 0 else ''}{time(of.value, (of.high - of.low) / 2)}"


def from_to(reference: Part, other: Part) -> str:
    """`+3.68 → +5.52 µs`: two figures; a unit that both have is printed once."""
    first, second = figure(reference), figure(other)
    return f"{first.rpartition(' ')[0] if first.split()[-1] == second.split()[-1] else first} → {second}"


def changed(difference_: Part) -> tuple[str, str]:
    """`1.91 µs less` and `1.42–2.40`: a difference between two figures and its interval, for a table; `+0.3 µs` where it holds 0."""
    low, value, high = difference_.low, difference_.value, difference_.high
    if low <= 0 <= high:
        return figure(difference_), span(low, high, value)
    if value < 0:
        return f"{time(-value, (high - low) / 2)} less", span(-high, -low, -value)
    return f"{time(value, (high - low) / 2)} more", span(low, high, value)


def difference(of: Part) -> str:
    """`1.91 µs less (1.42–2.40)`, or that it can't be told from 0."""
    change, interval = changed(of)
    if of.low <= 0 <= of.high:
        return f"no difference that these runs can tell from 0 ({change}, 95 % CI {interval})"
    return f"{change} (95 % CI {interval})"


def over(known: Sequence[AddedCost | None]) -> AddedCost | None:
    """The mean of several runs or machines, each counting the same; None if one does not tell, or tells it of another process."""
    costs = [added_cost for added_cost in known if added_cost is not None]
    if not costs or len(costs) < len(known) or len({added_cost.key for added_cost in costs}) > 1:
        return None
    levels_ = ([added_cost.plain for added_cost in costs], [added_cost.encrypted for added_cost in costs])
    plain, encrypted = (sum(arm_levels) / len(arm_levels) for arm_levels in levels_)
    added, ratio = (
        added_together.mean([added_cost.added for added_cost in costs]),
        added_together.mean_ratio([added_cost.ratio for added_cost in costs]),
    )
    return AddedCost(costs[0].key, costs[0].whose, added, plain, encrypted, ratio, costs[0].to)


def _rough(percent: float) -> str:
    """Two significant digits of a percentage."""
    if percent < 0.1:
        return f"{percent:.1g}" if percent >= 0.01 else "under 0.01"
    return notation.number(float(f"{percent:.2g}"))


def _unit(us: float, half: float) -> tuple[float, str]:
    largest = max(abs(us), half)
    if largest >= 999.5:
        return 1e-3, "ms"
    return (1e3, "ns") if largest < 0.0995 else (1.0, "µs")


def _digits(value: float, half: float) -> str:
    """As many decimals as two significant digits of the half-width have, and not more digits than three of the value need."""
    decimals = notation.decimals_of_half(half)
    if abs(value) >= 99.5:
        decimals = 0
    elif abs(value) >= 9.95:
        decimals = min(decimals, 1)
    elif abs(value) >= 0.995:
        decimals = min(decimals, 2)
    return f"{value:,.{decimals}f}".replace("-", "−")
