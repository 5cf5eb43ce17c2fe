"""Sentences on what encryption adds: to an operation, a byte and a connection, and to operations of other lengths. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from ciphercost.estimate.least_squares import DOUBTFUL
from ciphercost.estimate.parts import round_trips, together
from ciphercost.model.result import Cell, Part, Parts, UnitCost
from ciphercost.report.words import added_text, operation_text, unit_cost_text
from ciphercost.report.words.added_text import AddedCost

LISTED = 3
"""Up to this many cells each has its figures in the sentence; above it, the lowest and the highest."""
USUAL = 2_000.0
"""CPU time of an operation, µs, for which the verdict is printed."""

MATTERS = 1
"""Per cent of an operation's CPU time from which an addition is called worth worrying about."""
SECOND = 1000
"""Units a second that stand for a busy server."""

LIGHT_BYTES = 4_000
"""Bytes on the wire per operation up to which its cost is hardly theirs."""
ASIDE = re.compile(r" \([^)]*\)")
"""What a label explains in parentheses; the table has it."""

Named = tuple[Cell, str]
"""A cell, and what it is called beside the others."""


def of(who: str, cells: Sequence[Named], parts: Parts | None, costs: Sequence[UnitCost] = ()) -> Iterator[str]:
    """What `who` adds in these cells, each with its label.

    `parts`: at the server, if the run fitted them; `costs`: of pages, openings and values, if the run determined them.
    """
    known = [(added_cost, label) for cell, label in cells if (added_cost := added_text.of(cell)) is not None]
    if len(known) == 1:
        ((added_cost, label),) = known
        yield f"{who} {added_text.adds(added_cost)}{f' for {label}' * bool(label)}: {added_text.base(added_cost)}."
        if by_units := unit_cost_text.headline(costs, counted=True):
            yield f"It {by_units}."
    elif by_units := unit_cost_text.headline(costs):
        yield f"{who} {by_units}."
    elif parts is not None and carry_over(parts, [cell for cell, _ in cells]):
        yield f"{who} {by_parts(parts)}."
    else:
        yield f"{who} adds {_listed(known)}."


def carry_over(parts: Parts, cells: Sequence[Cell]) -> bool:
    """Whether the three parts explain the cost well enough to lead with: none is below 0, at most one may be 0, and no cell of the same
    server and mechanism with few bytes, fitted or not, is far off them.
    """
    three = (parts.request_us, parts.byte_ns, parts.handshake_us)
    return (
        parts.worst <= DOUBTFUL
        and all(part.value > 0 for part in three)
        and sum(part.low <= 0 for part in three) <= 1
        and all(_as_predicted(parts, cell) for cell in cells)
    )


def light(cell: Cell) -> bool:
    """Whether what is added to its operations is next to nothing but that of requests: few bytes, on connections that stay open."""
    arm = cell.arms.get("plain", {})
    few = arm.get("connects", 0) <= operation_text.FEW_CONNECTS * arm.get("operations", 0)
    return bool(few and arm.get("wire_bytes_per_op", 0) <= LIGHT_BYTES)


def _as_predicted(parts: Parts, cell: Cell) -> bool:
    """Whether the parts say of a light cell what was measured."""
    if cell.layer != "transit" or (cell.engine, cell.mechanism) != (parts.engine, parts.mechanism) or not light(cell):
        return True
    added = cell.added.get("server_cpu")
    if added is None or added.low <= 0:
        return True
    predicted = together(parts, 0.0, round_trips(cell), cell.arms["plain"].get("wire_bytes_per_op", 0) / 1e3)
    half = math.hypot((predicted.high - predicted.low) / 2, (added.high - added.low) / 2)
    return abs(added.mean - predicted.value) <= half


def by_parts(parts: Parts) -> str:
    """`adds 6.0 µs of server CPU (95 % CI 5.6–6.4) to each query, 0.57 ns (…) to each byte and 1.71 ms (…) to each new connection`."""
    return f"{by_request(parts)}, {_piece(byte_us(parts))} to each byte and {_piece(parts.handshake_us)} to each new connection"


def byte_us(parts: Parts) -> Part:
    """What a byte costs, in µs as the other parts."""
    return Part(*(value / 1e3 for value in (parts.byte_ns.value, parts.byte_ns.low, parts.byte_ns.high)))


def by_request(parts: Parts) -> str:
    """The first of these, where another sentence has the others."""
    word = operation_text.of_engine(parts.engine)
    return f"adds {_piece(parts.request_us, added_text.KNOWN, whose='server CPU')} to each {word}"


def elsewhere(added: Part, word: str = operation_text.OPERATION, parts: Parts | None = None) -> str:
    """Whether it is worth worrying about: `Not worth worrying about for queries of 2 ms of CPU (0.9 % more). It matters (over 1 %) where they …`.

    `word`: what an operation is called; `parts`: what bytes and connections cost, if the run fitted that.
    """
    of_usual = f"{operation_text.many(word)} of {added_text.rough_time(USUAL)}"
    sentence = f"{verdict(added, USUAL)} for {of_usual} of CPU ({added_text.share(added, USUAL)} more)."
    if parts is None:
        return f"{sentence} {matters(added, 'they', ('new connections and large answers cost extra',))}"
    megabyte = Part(*(1e3 * value for value in (parts.byte_ns.value, parts.byte_ns.low, parts.byte_ns.high)))
    also = f", open a connection each ({_aside(parts.handshake_us)}) or return much ({_aside(megabyte, ' per MB')})"
    return f"{sentence} {matters(added, 'they', (), also)}"


def matters(added: Part, who: str, extra: Sequence[str] = (), also: str = "") -> str:
    """`It matters (over 1 %) where queries take less than 600 µs of CPU`, `also` where; and what costs `extra`."""
    bound = added_text.rough_time(100 / MATTERS * (added.value if added.low > 0 else added.high))
    if added.low <= 0:
        return f"Where {who} take more than {bound} of CPU it is surely less than {MATTERS} %."
    return f"{'; '.join((f'It matters (over {MATTERS} %) where {who} take less than {bound} of CPU{also}', *extra))}."


def verdict(added: Part, us: float) -> str:
    """Whether the addition is worth worrying about for an operation of this CPU time: below MATTERS %, above it, or neither surely."""
    low, high = (100 * bound / us for bound in (added.low, added.high))
    if high <= MATTERS:
        return "Not worth worrying about"
    return "Worth worrying about" if low > MATTERS else "Perhaps worth worrying about"


def by_the_second(costs: Sequence[UnitCost]) -> str:
    """`1,000 pages read a second take 1.2 % of a core; … It matters (over 1 % of a core) from 810 a second on.` Empty: no unit surely costs anything."""
    for cost in costs:
        if cost.unit == "opening" or cost.measure != "cpu" or not unit_cost_text.sure(cost):
            continue
        share = 100 * SECOND * cost.us.value / 1e6
        busy = f"{share / 100:.1f} cores" if share >= 100 else f"{float(f'{share:.2g}'):g} % of a core"
        of_pages = "; pages that stay in the cache cost nothing" if cost.unit.startswith("page") else ""
        rate = float(f"{MATTERS / 100 * 1e6 / cost.us.value:.2g}")
        matters = f"It matters (over {MATTERS} % of a core) from {rate:,.5g} a second on"
        return f"{SECOND:,} {unit_cost_text.many(cost)} a second take {busy}{of_pages}. {matters}."
    return ""


def _aside(part: Part, per: str = "") -> str:
    """`+3.38 ms, 3.04–3.72`: what is added, and its interval, within brackets."""
    half = (part.high - part.low) / 2
    if part.low <= 0 <= part.high:
        return f"at most {added_text.time(max(part.high, 0.0), half)}{per}"
    return f"{'+' * (part.value > 0)}{added_text.time(part.value, half)}{per}, {added_text.span(part.low, part.high, part.value)}"


def _piece(part: Part, known: str = "", *, whose: str = "") -> str:
    if part.low <= 0 <= part.high:
        half = (part.high - part.low) / 2
        return f"at most {added_text.time(max(part.high, 0.0), half)}{f' of {whose}' if whose else ''}"
    return added_text.with_interval(part, known, whose=whose)


def _listed(known: Sequence[tuple[AddedCost, str]]) -> str:
    """`8.5 µs of process CPU (95 % CI 7.8–9.3) to an operation of point-select and 18.6 µs (16.2–21.1) to one of insert`."""
    surely = [labelled for labelled in known if added_text.seen(labelled[0])]
    if not surely:
        return f"no CPU that this run can tell from 0 in any of {len(known)} cells"
    lost = len(known) - len(surely)
    unseen = f"; in {lost} more it can't be told from 0" if lost else ""
    if len(surely) <= LISTED:
        first, *further = surely
        phrases = [_to(*first, first=True), *(_to(*labelled, first=False) for labelled in further)]
        return f"{', '.join(phrases[:-1])} and {phrases[-1]}{unseen}" if further else f"{phrases[0]}{unseen}"
    ordered = sorted(surely, key=lambda labelled: labelled[0].added.mean)
    return f"{_to(*ordered[0], first=True)}, up to {_to(*ordered[-1], first=False)}, in {len(surely)} cells{unseen}"


def _to(added_cost: AddedCost, label: str, *, first: bool) -> str:
    known, whose, one = (added_text.KNOWN, added_cost.whose, "an operation") if first else ("", "", "one")
    figure = added_text.with_interval(added_text.part(added_cost.added), known, whose=whose)
    return f"{figure} to {one} of {re.sub(ASIDE, '', label)}"
