"""The document of what was found in logs: operations by class, connections, arrivals, and what was left out and why. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType

from ciphercost.estimate.notation import number
from ciphercost.load.units import minutes
from ciphercost.model import sizes
from ciphercost.model.shares import in_percent
from ciphercost.model.traffic import Bin, Hour, OperationClass, Traffic, mean, quantile, total
from ciphercost.report.blocks import Alarm, Block, Document, Item, Items, Section, Table, Text

QUANTILES = (0.5, 0.9, 0.99)
QUANTILES_HEAD = "p50 / p90 / p99 / max"
MOST_HOURS = 24
MOST_CLASSES = 40
"""Classes in a table."""
LONGEST_SHAPE = 300
"""Characters of the statements of a class."""
WORDS = {"web": ("request", "requests"), "sql": ("operation", "operations")}


def of(traffic: Traffic, command: str = "", shapes: Mapping[str, str] = MappingProxyType({})) -> Document:
    """The document. `command`: that which runs the workload. `shapes`: the statements of each class without their values."""
    one, many = WORDS[traffic.kind]
    title = f"{traffic.operations:,} {many} in {traffic.files:,} log{'s' * (traffic.files != 1)}"
    if traffic.kind == "sql":
        answer = f"{traffic.operations:,} operations in {traffic.lines:,} lines ({', '.join(traffic.formats)})"
        answer += f", {span(traffic)}: {rate(traffic)}" if traffic.end else ""
        return Document("workload", title, answer, [*_blocks(traffic), *_shapes(shapes)], command=command)
    answer = (
        f"{traffic.operations:,} of {traffic.lines:,} lines are {many} ({', '.join(traffic.formats)}), {span(traffic)}: "
        f"{rate(traffic)}, {sizes.size(round(traffic.bytes_out / max(1, traffic.operations)))} per {one}"
    )
    return Document("workload", title, answer, list(_blocks(traffic)), command=command)


def _shapes(shapes: Mapping[str, str]) -> Iterator[Block]:
    """The statements of the most frequent classes."""
    if shapes:
        rows: list[tuple[str, ...]] = [
            (name, shape if len(shape) <= LONGEST_SHAPE else shape[:LONGEST_SHAPE] + "…")
            for name, shape in shapes.items()
        ]
        yield Table(
            "Statements of each class, without values", ("operation", "statements"), rows[:MOST_CLASSES], minor=True
        )


def span(traffic: Traffic) -> str:
    """From when to when, in UTC."""
    first, last = (datetime.fromtimestamp(at, UTC) for at in (traffic.begin, traffic.end))
    return f"{first:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S} UTC"


def rate(traffic: Traffic) -> str:
    """Operations per second on average, and in the busiest hour."""
    text = f"{number(traffic.operations / max(1.0, traffic.seconds + traffic.resolution))}/s on average"
    return f"{text}, {number(traffic.busiest_rate)}/s in the busiest hour" if traffic.hours else text


def _blocks(traffic: Traffic) -> Iterator[Block]:
    yield _classes(traffic)
    if any(each.times for each in traffic.classes):
        yield _times(traffic)
    yield Section("Connections", list(_connections(traffic)))
    yield Section("Arrivals", list(_arrivals(traffic)))
    if traffic.left_out:
        rows: list[tuple[str, ...]] = [
            (each.reason, f"{each.lines:,} lines" if each.lines else "", f"first in {each.file}, line {each.line:,}")
            for each in traffic.left_out
        ]
        yield Section("Left out", [Table("", ("reason", "lines", "first"), rows, right=frozenset({1}))])
    if traffic.notes:
        yield Alarm("What to know", [note.text for note in traffic.notes])
    if len(traffic.hours) > 1:
        yield Section("Hours", [_hours(traffic.hours)], background=True)


def _classes(traffic: Traffic) -> Table:
    many = WORDS[traffic.kind][1]
    has_sizes = any(each.sizes for each in traffic.classes)
    head = ("class", many, "share, of bytes", f"size {QUANTILES_HEAD}") if has_sizes else ("class", many, "share")
    rows = [_class_row(each, traffic, has_sizes=has_sizes) for each in traffic.classes[:MOST_CLASSES]]
    if rest := traffic.classes[MOST_CLASSES:]:
        count = sum(each.count for each in rest)
        share = in_percent(count / max(1, traffic.operations), 2)
        rows.append((f"{len(rest)} others", f"{count:,}", share, *[""] * has_sizes))
    return Table(f"{many.capitalize()} by class", head, rows, "figures", right=frozenset({1, 2, 3}))


def _class_row(of_class: OperationClass, traffic: Traffic, *, has_sizes: bool) -> tuple[str, ...]:
    share = in_percent(of_class.count / max(1, traffic.operations))
    if not has_sizes:
        return of_class.name, f"{of_class.count:,}", share
    of_bytes = f"{share}, {in_percent(of_class.bytes_out / max(1, traffic.bytes_out))}"
    values = _quantiles(of_class.sizes) if of_class.sizes else []
    return of_class.name, f"{of_class.count:,}", of_bytes, " / ".join(sizes.size(round(value)) for value in values)


def _times(traffic: Traffic) -> Table:
    rows: list[tuple[str, ...]] = [
        (
            each.name,
            milliseconds(mean(each.times)),
            " / ".join(milliseconds(value) for value in _quantiles(each.times)),
        )
        for each in traffic.classes[:MOST_CLASSES]
        if each.times
    ]
    return Table(
        "Time that the server took",
        ("class", "mean time", QUANTILES_HEAD),
        rows,
        "figures",
        right=frozenset({1, 2}),
    )


def _quantiles(bins: Sequence[Bin]) -> list[float]:
    return [*(quantile(bins, part) for part in QUANTILES), bins[-1].value]


def milliseconds(seconds: float) -> str:
    return f"{number(seconds * 1e3)} ms" if seconds else "0 ms"


def _connections(traffic: Traffic) -> Iterator[Block]:
    one, many = WORDS[traffic.kind]
    of_them = traffic.connections
    if not of_them.lengths:
        yield Text(f"The logs do not show which {many} shared a connection.")
        return
    yield Text(
        f"{of_them.opened:,} connections with {of_them.per_connection:.3g} {many} each on average: median {quantile(of_them.lengths, 0.5):,.0f}, "
        f"p90 {quantile(of_them.lengths, 0.9):,.0f}, p99 {quantile(of_them.lengths, 0.99):,.0f}, at most {of_them.lengths[-1].value:,.0f}; "
        f"{in_percent(share_of_one(of_them.lengths))} carried one {one} ({of_them.how})."
    )
    if of_them.idle:
        yield Text(
            f"Between two {many} of a connection: median {quantile(of_them.idle, 0.5):,.0f} s, p90 {quantile(of_them.idle, 0.9):,.0f} s (not replayed)."
        )
    told = [
        Item(f"{in_percent(share)} of the {what}")
        for share, what in (
            (of_them.resumed, "connections resumed a session (not replayed: all make full handshakes)"),
            (of_them.encrypted, f"{many} were encrypted"),
        )
        if share is not None
    ]
    if told:
        yield Items(told)
    if traffic.clients:
        yield Text(
            f"About {traffic.clients:,} different clients{f' and {traffic.paths:,} paths' if traffic.paths else ''}."
        )


def share_of_one(lengths: Sequence[Bin]) -> float:
    """Share of the connections that carried one operation."""
    return sum(each.count for each in lengths if each.value <= 1) / max(1, total(lengths))


def _arrivals(traffic: Traffic) -> Iterator[Block]:
    arrivals, busiest = traffic.arrivals, traffic.busiest
    if busiest:
        when = datetime.fromtimestamp(busiest.start, UTC)
        yield Text(
            f"The busiest hour began on {when:%Y-%m-%d} at {when:%H:%M} UTC: {busiest.operations:,} {WORDS[traffic.kind][1]}, "
            f"{number(traffic.busiest_rate)}/s, {sizes.size(busiest.bytes_out)}."
        )
    if arrivals.busiest_second:
        busy = total(arrivals.per_second)
        yield Text(
            f"The busiest second had {arrivals.busiest_second:,}; {in_percent(min(1.0, busy / max(1.0, traffic.seconds + 1)))} of the seconds had any, in "
            f"{minutes(traffic.seconds)} from the first to the last."
        )
    if arrivals.concurrent:
        yield Text(
            f"In progress at once, on average over a minute: median {number(quantile(arrivals.concurrent, 0.5))}, "
            f"at most {number(arrivals.concurrent[-1].value)}."
        )


def _hours(hours: Sequence[Hour]) -> Table:
    busiest = sorted(sorted(hours, key=lambda hour: -hour.operations)[:MOST_HOURS], key=lambda hour: hour.start)
    rows: list[tuple[str, ...]] = [
        (
            f"{datetime.fromtimestamp(hour.start, UTC):%Y-%m-%d %H:%M}",
            f"{hour.operations:,}",
            sizes.size(hour.bytes_out),
            f"{hour.connections:,.0f}",
        )
        for hour in busiest
    ]
    title = "Hours" if len(hours) <= MOST_HOURS else f"The {MOST_HOURS} busiest of {len(hours):,} hours"
    head = ("hour (UTC)", "operations", "bytes", "new connections")
    return Table(title, head, rows, "figures", right=frozenset({1, 2, 3}), minor=True)
