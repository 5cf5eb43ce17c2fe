"""Text on storms of new connections, and on memory per connection. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ciphercost.estimate.notation import interval, number, worded
from ciphercost.model.connection_memory import HOLDERS, MOMENTS, Slope
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.model.storms import StormResult

FASTER, LATER = ("more", "fewer"), ("higher", "lower")
STORM = {
    "throughput_during": "operations/s, during",
    "latency_p50_during": "latency p50, during",
    "latency_p99_during": "latency p99, during",
    "latency_p99_after": "latency p99, after",
    "back_p50": "new connection, p50",
    "back_p99": "new connection, p99",
    "back_last": "new connection, last",
    "reconnect": "established ones back",
}
"""Labels of a storm's figures, in their order."""
AFTER = {"handshake": "handshake", "traffic": "traffic", "response": "large response"}
WHOSE = {"server": "server", "hop": "hop", "kernel": "socket buffers", "client": "client"}
LEVELS = "plain → encrypted"
AT_A_RATE = ("rate", "saturated")
"""Kinds of storms whose new connections come at a rate."""
Row = tuple[str, str, str, str]


def storm_head(storm: StormResult) -> str:
    """What happens in a storm: `while 80 others connect in 0.5 s`."""
    if storm.kind in AT_A_RATE:
        return f"while {storm.wanted:,} others connect in {storm.seconds:g} s"
    if storm.kind == "failover":
        return f"failover: {storm.wanted:,} clients at once on a fresh server"
    lifetime = storm.asked.partition("=")[2].partition("/")[0]
    return f"rotation: {storm.wanted:,} connections renewed at once, as every {lifetime}"


def storm(cell: Cell) -> Iterator[Row]:
    """(`latency p99, during`, `2.1 times`, its interval, both levels)."""
    if cell.storm is None:
        return
    for key, label in STORM.items():
        if (estimate := cell.storm.ratios.get(key)) is None:
            continue
        rate = key.startswith("throughput")
        direction = FASTER if rate else LATER
        both = [cell.storm.arms[arm].levels[key] for arm in ARMS]
        yield (
            label,
            worded(estimate, *direction),
            interval(estimate, *direction),
            f"{' → '.join(map(number, both))} {'/s' if rate else 'ms'}",
        )


def storm_lines(cell: Cell) -> Iterator[str]:
    """What the storm does to each arm by itself, and the new connections that failed."""
    if cell.storm is None:
        return
    load = (
        f"owe {number(cell.storm.rate)} operations/s together"
        if cell.storm.rate
        else "send as fast as they can, so new connections take operations/s from them"
    )
    yield (
        f"{cell.clients} established connections {load}; {cell.storm.blocks} blocks of storms, "
        f"each before, during and after ({cell.storm.seconds:g} s each)"
    )
    for arm in ARMS:
        of = cell.storm.arms[arm]
        parts = []
        for what, label, unit, direction in (
            ("throughput", "operations/s", "", FASTER),
            ("latency_p50", "latency p50", " ms", LATER),
            ("latency_p99", "latency p99", " ms", LATER),
        ):
            levels = [of.levels.get(f"{what}_{part}") for part in ("before", "during", "after")]
            if (change := of.change.get(f"{what}_during")) is None or None in levels:
                continue
            shown = " → ".join(number(level) for level in levels if level is not None)
            parts.append(
                f"{label} {shown}{unit} (during: {worded(change, *direction)}, 95 % CI {interval(change, *direction)})"
            )
        if parts:
            yield f"{arm}, before → during → after: {'; '.join(parts)}"
        if of.refused:
            yield f"{arm}: {of.refused:,} of {of.wanted:,} new connections failed ({of.reasons})"
    if (further := cell.storm.change.get("throughput_during")) is not None and not cell.storm.rate:
        yield (
            f"operations/s during ÷ before, encrypted against plain: {worded(further, *FASTER)}, 95 % CI {interval(further, *FASTER)}"
        )


MOST_SENTENCES = 3
"""Cells that the first screen speaks of at most."""


def sentences(cells: Sequence[Cell]) -> Iterator[str]:
    """What the first screen says of storms and of memory per connection."""
    told = [cell for cell in cells if cell.storm or cell.connection_memory][:MOST_SENTENCES]
    for cell in told:
        whose = f"{', '.join(filter(None, (cell.engine, cell.variant)))}: " if len(told) > 1 else ""
        if cell.storm is not None and (sentence := _of_storm(cell, cell.storm)):
            yield whose + sentence
        if cell.connection_memory is not None:
            yield whose + _of_memory(cell)


def _of_storm(cell: Cell, of: StormResult) -> str:
    """The figure of a storm that matters most; empty: it has none."""
    if of.kind == "saturated":
        return _of_saturated(cell, of)
    if of.kind == "failover":
        keys = ("back_last", "back_p99", "back_p50")
        begin = f"After a failover, of {of.wanted:,} clients at once"
    else:
        keys = ("latency_p99_during", "latency_p50_during", "throughput_during")
        begin = (
            f"While {of.wanted:,} others connect in {of.seconds:g} s"
            if of.kind in AT_A_RATE
            else f"While {of.wanted:,} connections are renewed"
        )
    key = next((name for name in keys if name in of.ratios), "")
    if not key:
        return ""
    words = {
        "back_last": "the last one is back",
        "back_p99": "99 % are back",
        "back_p50": "half are back",
        "latency_p99_during": "the established ones' latency p99 is",
        "latency_p50_during": "the established ones' median latency is",
        "throughput_during": "the established ones do",
    }[key]
    rate, estimate = key.startswith("throughput"), of.ratios[key]
    direction = FASTER if rate else ("later", "sooner") if key.startswith("back") else LATER
    levels = " → ".join(number(of.arms[arm].levels[key]) for arm in ARMS)
    change = worded(estimate, *direction)
    many = (
        (" as late" if key.startswith("back") else " as long") * change.endswith("times")
        if not rate
        else " operations/s"
    )
    return (
        f"{begin}, {words} {change}{many} with {cell.mechanism} (95 % CI {interval(estimate, *direction)}): "
        f"{levels} {'/s' if rate else 'ms'}."
    )


def _of_saturated(cell: Cell, of: StormResult) -> str:
    """What the storm takes from connections that send as fast as they can, in each arm; empty: an arm has no figure."""
    changes = [of.arms[arm].change.get("throughput_during") for arm in ARMS]
    plain, encrypted = (
        f"{worded(change, *FASTER)} (95 % CI {interval(change, *FASTER)})" if change else "" for change in changes
    )
    if not plain or not encrypted:
        return ""
    return (
        f"While {of.wanted:,} others connect in {of.seconds:g} s, connections that send as fast as they can do {plain} operations/s in the plain "
        f"arm and {encrypted} with {cell.mechanism}."
    )


def _of_memory(cell: Cell) -> str:
    known = cell.connection_memory
    assert known is not None
    moment = [name for name in MOMENTS if name in known.added][-1]
    added, both = known.added[moment]["server"], [known.arms[arm][moment]["server"].bytes / 1e3 for arm in ARMS]
    return (
        f"Each connection with {cell.mechanism} holds {added.bytes / 1e3:,.1f} kB more of the server's memory after {AFTER[moment]} (95 % CI "
        f"{added.low / 1e3:,.1f} to {added.high / 1e3:,.1f}): {both[0]:,.1f} → {both[1]:,.1f} kB."
    )


def memory_head(cell: Cell) -> str:
    """`memory per connection, up to 500`."""
    return f"memory per connection, up to {cell.connection_memory.connections:,}" if cell.connection_memory else ""


def memory(cell: Cell) -> Iterator[Row]:
    """(`server, after handshake`, `+12.3 kB`, its interval, both levels with their intervals)."""
    if (known := cell.connection_memory) is None:
        return
    for holder in HOLDERS:
        for moment in MOMENTS:
            if (added := known.added.get(moment, {}).get(holder)) is None:
                continue
            both = [known.arms[arm][moment][holder] for arm in ARMS]
            yield (
                f"{WHOSE[holder]}, after {AFTER[moment]}",
                f"{added.bytes / 1e3:+,.1f} kB",
                f"{added.low / 1e3:+,.1f} to {added.high / 1e3:+,.1f} kB",
                f"{' → '.join(map(_with_error, both))} kB",
            )


def memory_lines(cell: Cell) -> Iterator[str]:
    """How the slopes were found."""
    if (known := cell.connection_memory) is not None:
        yield (
            f"slopes over 0 to {known.connections:,} connections in {known.steps} steps, each arm on a fresh server; {known.sessions} "
            f"session{'s' * (known.sessions != 1)}: {known.method}; process memory is PSS"
        )


def _with_error(slope: Slope) -> str:
    """`12.3 ± 0.4`, in kB."""
    return f"{slope.bytes / 1e3:,.1f} ± {(slope.high - slope.low) / 2e3:,.1f}"
