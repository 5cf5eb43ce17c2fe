"""The counts of a log that a prediction needs, in all and for each hour. Pure."""

from __future__ import annotations

from ciphercost.estimate.notation import number
from ciphercost.model.errors import UsageError
from ciphercost.model.log_prediction import LogCounts
from ciphercost.model.traffic import Hour, Traffic


def of(traffic: Traffic, per_connection: float | None = None) -> tuple[LogCounts, list[LogCounts]]:
    """(the whole log, each hour with operations). `per_connection`: operations of a connection, instead of what was found.

    Raises UsageError if the log has no operations.
    """
    sent = sum(map(_operations, traffic.hours))
    if per_connection is None and traffic.connections.opened and not any(hour.connections for hour in traffic.hours):
        per_connection = sent / traffic.connections.opened  # how many there were, but not when they began
    hours = [_hour(hour, traffic, per_connection) for hour in traffic.hours if _operations(hour)]
    if not hours:
        if traffic.operations:
            raise UsageError(
                f"the log has {traffic.operations:,} operations without times, so neither hours nor a rate are known; give what your server "
                "does, as in `ciphercost predict RUN --rate 2000/s --cpu 300us`"
            )
        raise UsageError("the log has no operations, so there is nothing to predict")
    whole = LogCounts(
        start=traffic.begin,
        seconds=max(1.0, traffic.end - traffic.begin + traffic.resolution),
        operations=float(sent),
        connections=sent / per_connection if per_connection else sum(hour.connections for hour in traffic.hours),
        bytes=float(sum(hour.bytes_out for hour in traffic.hours)) if sized(traffic) else None,
    )
    return whole, hours


def _operations(hour: Hour) -> int:
    """Requests or statements: each is sent and answered by itself, also within a transaction."""
    return hour.statements or hour.operations


def sized(traffic: Traffic) -> bool:
    """Whether the log has sizes of answers."""
    return any(hour.bytes_out for hour in traffic.hours)


def _hour(hour: Hour, traffic: Traffic, per_connection: float | None) -> LogCounts:
    return LogCounts(
        start=float(hour.start),
        seconds=float(traffic.covered(hour)),
        operations=float(_operations(hour)),
        connections=_operations(hour) / per_connection if per_connection is not None else hour.connections,
        bytes=float(hour.bytes_out) if sized(traffic) else None,
    )


def notes(traffic: Traffic, whole: LogCounts, operation: str, per_connection: float | None = None) -> list[str]:
    """What to know of these counts, as sentences."""
    told = [note.text for note in traffic.notes]
    found = traffic.connections
    if per_connection is None and found.basis == "unknown":
        told.append(
            "the log does not tell how many connections carried it, so they are taken to stay open; --requests-per-connection changes that"
        )
    elif per_connection is None and found.basis == "estimate" and whole.connections:
        told.append(
            f"new connections are an estimate ({found.how.removeprefix('estimated: ')}): {number(whole.operations / whole.connections)} {operation}s for each; "
            "--requests-per-connection changes that"
        )
    if found.resumed:
        told.append(
            f"{100 * found.resumed:.0f} % of the connections resumed an earlier session, which costs less than the full handshake that they "
            "are counted as"
        )
    if found.encrypted:
        told.append(
            f"{100 * found.encrypted:.0f} % of the {operation}s were encrypted already: this is what encrypting all of them costs against "
            "none"
        )
    left = sum(each.lines for each in traffic.left_out)
    if left:
        told.append(f"{left:,} of {traffic.lines:,} lines count for nothing: `ciphercost workload` lists the reasons")
    return told
