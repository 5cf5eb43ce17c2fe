"""The document of a prediction for a log: its answer, its hours, and a measured replay beside it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ciphercost.model.log_prediction import LogPrediction, LogStretch, Replayed
from ciphercost.model.result import Price
from ciphercost.report import money
from ciphercost.report.blocks import Block, Document, Note, Section, Table, Text, Warnings
from ciphercost.report.words import log_text

SHOWN = 5
"""Hours that every report shows."""
MOST_HOURS = 7 * 24
"""Hours that Markdown lists one by one. JSON has every hour."""


def at_price(of: LogPrediction, price: Price | None) -> LogPrediction:
    """The prediction with what the added cores cost in a month."""
    if price is None:
        return of

    def priced(stretch: LogStretch) -> LogStretch:
        return msgspec.structs.replace(stretch, per_month=money.per_month(stretch.cores, price))

    return msgspec.structs.replace(of, price=price, whole=priced(of.whole), hours=[priced(hour) for hour in of.hours])


def of(predicted: LogPrediction) -> Document:
    """The document."""
    return Document(
        kind="prediction",
        title=f"{predicted.engine} {predicted.mechanism} on the traffic of a log",
        answer=log_text.headline(predicted),
        blocks=list(_blocks(predicted)),
    )


def _blocks(of: LogPrediction) -> Iterator[Block]:
    yield from (Text(text) for text in log_text.sentences(of))
    for replayed in of.replays:
        yield Section(
            f"beside a measured replay: run {replayed.run}, {replayed.workload}",
            list(_replay(replayed, of.operation)),
            folded=False,
        )
    if len(of.hours) > 1:
        order = sorted(range(len(of.hours)), key=lambda place: of.hours[place].cores.value, reverse=True)[:SHOWN]
        yield Section(_most(len(of.hours)), [_table(of, [of.hours[place] for place in order])], folded=False)
    if len(of.hours) > MOST_HOURS:
        yield Section("the busiest hour of each day", [_table(of, _daily(of.hours))], background=True)
    elif len(of.hours) > SHOWN:
        yield Section(f"all {len(of.hours):,} hours", [_table(of, of.hours)], background=True)
    if of.notes:
        yield Warnings(of.notes)
    yield Text(f"measured in run {of.run} on {of.cpu or 'an unknown CPU'}; another CPU has other costs")


def _most(hours: int) -> str:
    return (
        f"the {SHOWN} hours of {hours:,} that it costs most" if hours > SHOWN else "each hour, the most expensive first"
    )


def _daily(hours: Sequence[LogStretch]) -> list[LogStretch]:
    """The hour of each day (UTC) that costs most."""
    busiest: dict[int, LogStretch] = {}
    for hour in hours:
        day = int(hour.counts.start // log_text.DAY)
        if day not in busiest or hour.cores.value > busiest[day].cores.value:
            busiest[day] = hour
    return list(busiest.values())


def _table(of: LogPrediction, hours: Sequence[LogStretch]) -> Table:
    rows: list[tuple[str, ...]] = [log_text.row(of, hour) for hour in hours]
    per_second = f"{of.operation}s, connections{', bytes' * (of.whole.counts.bytes is not None)}/s"
    return Table(
        "hours",
        ("hour (UTC)", f"adds {'CPU s/h' if log_text.by_hour(of) else 'cores'}", "95 % interval", per_second),
        rows,
        "figures",
        right=frozenset({1}),
    )


def _replay(of: Replayed, operation: str) -> Iterator[Block]:
    head = (f"each {operation}", "adds", "95 % interval", "more than plain")
    yield Table("replay", head, list(log_text.replay_rows(of)), "figures", right=frozenset({1}))
    yield Note("verdict", log_text.agreement(of), "verdict")
    yield Note("differs", log_text.sent(of, operation))
    if of.notes:
        yield Warnings(of.notes)
