"""Words on what encryption would cost the traffic of a log. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from ciphercost.estimate.log_prediction import ALIKE
from ciphercost.estimate.notation import number
from ciphercost.model import sizes
from ciphercost.model.log_prediction import LogPrediction, LogStretch, Replayed
from ciphercost.model.result import Part
from ciphercost.model.traffic import HOUR
from ciphercost.report import money
from ciphercost.report.capacity import SERVERS
from ciphercost.report.prediction_text import decimals, ends, interval, monthly, more, of_the_model, percent, rounded

DAY = 24 * HOUR
FEW = 0.02
"""Cores below which they are written as seconds an hour."""


def headline(of: LogPrediction) -> str:
    """What the busiest hour needs, and the mean."""
    hour = of.hours[of.busiest]
    after, before = hour.utilisation_encrypted, hour.utilisation
    if after is not None and before is not None and of.cores is not None:
        return (
            f"{number(of.cores)} {'core' if of.cores == 1 else 'cores'} at {percent(before, after)} % in the log's busiest hour would be at "
            f"{percent(after.value, after)} % ({percent(after.low, after)}–{percent(after.high, after)} %) with {of.engine} {of.mechanism}"
        )
    return f"{of.engine} {of.mechanism} would add {_busy(hour.cores, of)} in the log's busiest hour, and {_busy(of.whole.cores, of)} on average"


def by_hour(of: LogPrediction) -> bool:
    """Whether cores are too few to be written as such, and are written as seconds of CPU time an hour."""
    return max(hour.cores.high for hour in of.hours) < FEW


def _busy(cores: Part, of: LogPrediction) -> str:
    """`0.84 cores (0.5–1.2)` or `3.1 s of CPU time an hour (2.0–4.2)`."""
    return interval(_hourly(cores), "s of CPU time an hour") if by_hour(of) else interval(cores, "cores")


def _hourly(cores: Part) -> Part:
    return Part(cores.value * HOUR, cores.low * HOUR, cores.high * HOUR)


def sentences(of: LogPrediction) -> Iterator[str]:
    """What stands below the headline."""
    counts, hour = of.whole.counts, of.hours[of.busiest]
    if of.added_us.low <= 0 <= of.added_us.high:
        yield (
            f"! the interval holds 0: run {of.run} can't tell what encryption adds to such a {of.operation}; measure longer"
        )
    sent = "" if counts.bytes is None else f", {sizes.size(counts.bytes)} sent"
    yield (
        f"the log: {many(counts.operations, of.operation)}, {many(counts.connections, 'new connection')}{sent} in {length(counts.seconds)} from "
        f"{moment(counts.start)} UTC"
    )
    yield f"encryption adds {interval(of.whole.cpu_seconds, 's')} of CPU time to it: {_pieces(of)}"
    yield f"that is {interval(of.added_us, 'µs')} for each {of.operation}"
    yield from _compared(of)
    yield (
        f"busiest hour: {span(hour)} UTC with {per_hour(of, hour)} adds {_busy(hour.cores, of)}"
        f"{f', {more(hour.ratio)}' if hour.ratio is not None else ''}"
    )
    if of.busiest_second * hour.counts.seconds >= 2 * hour.counts.operations:
        yield f"the log's busiest second has {many(of.busiest_second, of.operation)}, {_times(of, hour)} the busiest hour's mean"
    if (ratio := hour.ratio) is not None:
        servers = Part(*(SERVERS * value for value in (ratio.value, ratio.low, ratio.high)))
        yield f"{SERVERS} servers that this hour fills become {servers.value:,.2f} ({servers.low:,.2f}–{servers.high:,.2f})"
    if of.whole.per_month is not None and of.price is not None and hour.per_month is not None:
        yield (
            f"money at {money.price_text(of.price)}: {monthly(of.whole.per_month, of.price)} a month for the cores that the log keeps busy on average, "
            f"{monthly(hour.per_month, of.price)} for as many as its busiest hour needs, all month"
        )
    if of.model_error:
        yield of_the_model(of.model_error)


def _times(of: LogPrediction, hour: LogStretch) -> str:
    return f"{number(of.busiest_second * hour.counts.seconds / hour.counts.operations)} times"


def _pieces(of: LogPrediction) -> str:
    """`62 % for handshakes, …`; shares where all parts add, else seconds."""
    whole = of.whole
    named = {
        "handshakes": whole.handshakes_s,
        f"{of.operation}s": whole.requests_s,
        "bytes": whole.bytes_s,
    }
    sum_ = whole.cpu_seconds.value
    if sum_ > 0 and min(named.values()) >= 0:
        return ", ".join(f"{100 * value / sum_:.0f} % for {name}" for name, value in named.items())
    return ", ".join(f"{number(value)} s for {name}".replace("-", "−") for name, value in named.items())


def _compared(of: LogPrediction) -> Iterator[str]:
    """The same beside what the operations take without encryption."""
    before, ratio = of.whole.plain_cpu_seconds, of.whole.ratio
    if before is None or ratio is None or of.plain_us is None:
        yield f"with --cpu, the CPU time of a {of.operation} without encryption, it is also in per cent"
        return
    after = before + of.whole.cpu_seconds.value
    base = f"{number(of.plain_us)} µs for each {of.operation} without encryption"
    if of.plain_from == "run":
        base += ", as the run's own server takes for such ones; --cpu gives yours"
    yield f"CPU for the same load: {number(before)} → {number(after)} s, {more(ratio)} ({base})"


def moment(at: float) -> str:
    """`1995-07-01 04:00`."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def span(of: LogStretch) -> str:
    """`1995-07-01 04:00`, with the minutes that the log covers if these are not the whole hour."""
    text = moment(of.counts.start)
    return text if of.counts.seconds > HOUR - 60 else f"{text} ({length(of.counts.seconds)})"


def length(seconds: float) -> str:
    """`28 days`, `3.2 h`, `12 min` or `40 s`."""
    for unit, size in (("days", DAY), ("h", HOUR), ("min", 60.0)):
        if seconds >= 2 * size or (unit != "days" and seconds >= size):
            return f"{number(seconds / size)} {unit}"
    return f"{seconds:.0f} s"


def per_hour(of: LogPrediction, hour: LogStretch) -> str:
    """What came in an hour."""
    counts = hour.counts
    sent = "" if counts.bytes is None else f", {sizes.size(counts.bytes)}"
    return f"{many(counts.operations, of.operation)}, {many(counts.connections, 'new connection')}{sent}"


def per_second(hour: LogStretch) -> str:
    """`183, 55.6, 4.6 MB`: operations, connections and bytes."""
    counts = hour.counts
    sent = [] if counts.bytes is None else [sizes.size(counts.bytes / counts.seconds)]
    return ", ".join([number(counts.operations / counts.seconds), number(counts.connections / counts.seconds), *sent])


def row(of: LogPrediction, hour: LogStretch) -> tuple[str, str, str, str]:
    """(hour, cores added or seconds an hour, interval, what came in a second)."""
    part = _hourly(hour.cores) if by_hour(of) else hour.cores
    digits = decimals((part.high - part.low) / 2)
    return span(hour), rounded(part.value, digits), ends(part, digits), per_second(hour)


def many(count: float, operation: str) -> str:
    """`1 request`, `1,200 requests`."""
    return f"{count:,.0f} {operation}{'' if round(count) == 1 else 's'}"


# ── beside a measured replay ──────────────────────────────────────────────────────────────────────────────────────────


def replay_rows(of: Replayed) -> list[tuple[str, str, str, str]]:
    """(whose, µs, interval, more than without encryption)."""
    rows = [("measured", of.measured_us), ("predicted from the log", of.predicted_us)]
    if differs(of):
        rows.append(("predicted for the replay", of.replayed_us))
    return [(name, *_figures(part), _beside(of, part)) for name, part in rows]


def sent(of: Replayed, operation: str) -> str:
    """What the replay and the log have of connections and bytes."""
    return (
        f"a {operation} has {number(of.replay_connections)} new connections and {sizes.size(of.replay_bytes)} on the wire in the replay, "
        f"{number(of.log_connections)} and {sizes.size(of.log_bytes)} in the log"
    )


def _figures(of: Part) -> tuple[str, str]:
    digits = decimals((of.high - of.low) / 2)
    return f"{rounded(of.value, digits)} µs", ends(of, digits)


def _beside(of: Replayed, part: Part) -> str:
    return more(Part(*(1 + us / of.plain_us for us in (part.value, part.low, part.high))))


def differs(of: Replayed) -> bool:
    """Whether the replay had other connections or bytes than the log."""
    pairs = ((of.log_connections, of.replay_connections), (of.log_bytes, of.replay_bytes))
    return any(abs(one - other) > ALIKE * max(one, other) for one, other in pairs)


def agreement(of: Replayed) -> str:
    """Whether prediction and measurement agree."""
    direction = "more" if of.off > 0 else "less"
    between = f"the replay measured {abs(100 * of.off):.0f} % {direction} than predicted"
    if of.agree:
        return f"{between}; they agree: the difference is within both 95 % intervals together"
    return f"{between}; they do not agree: the difference is larger than both 95 % intervals together explain"
