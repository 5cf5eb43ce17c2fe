"""What was found in logs of statements → the workload that repeats it. Pure."""

from __future__ import annotations

import msgspec

from ciphercost.importers.statements import scripts
from ciphercost.importers.statements.found import Found, names
from ciphercost.importers.statements.transactions import NO_VALUES
from ciphercost.load.workloads import Workload
from ciphercost.model.errors import UsageError
from ciphercost.model.traffic import Traffic

MOST_CLIENTS = 64
"""Connections of a workload at most, unless the user asks for more."""
ONE_OPERATION = 1.5
"""Operations of a connection on average, below which each operation of the workload opens one."""
SERVERS = {"postgresql": "PostgreSQL", "mysql": "MySQL or MariaDB"}
NO_STATEMENT = (
    "no statement was found; log them with log_statement = all or log_min_duration_statement = 0 (PostgreSQL), general_log or "
    "long_query_time = 0 (MySQL, MariaDB)"
)
HEAD = (
    "It holds statements of the logs with their values: they are needed to run it, so keep this file as you keep the logs.",
    "Run it on a copy of the data that the logs belong to: `--dump FILE`, or `--url URL`.",
)
"""Lines above such a workload."""


def of(found: Found, traffic: Traffic, source: str, *, speed: float = 1.0) -> Workload:
    """The workload that repeats what was found. What it leaves out is added to `traffic`.

    `source`: the logs, for people; `speed`: operations come so many times as often as in the logs. Raises UsageError if nothing can be run.
    """
    classes = found.classes.ordered()
    made = scripts.of(classes, names(classes), found.dialect)
    for why, statements, each in made.left_out:
        found.left_out.add(why, each.file, each.line, statements)
    traffic.left_out = found.left_out.found()
    if not made.transactions:
        raise UsageError(f"{source}: {_nothing(found, traffic)}")
    # One operation a connection: each of the workload opens its own.
    one_each = 0 < traffic.connections.per_connection < ONE_OPERATION
    arrivals = traffic.arrivals
    return Workload(
        title=f"statements of {source}",
        measures="the mix of operations in your logs",
        transaction=made.transactions,
        languages=("sql",),
        written_for=found.dialect,
        read_only=made.read_only,
        per_request=one_each,
        clients=max(1, min(MOST_CLIENTS, found.clients)),
        draw="even",
        rate=round(traffic.busiest_rate * speed, 3),
        arrivals="logged" if arrivals.busiest_hour else "random",
        arrived=arrivals.busiest_hour,
        protocol="" if one_each else made.protocol,
        traffic=msgspec.structs.replace(traffic, arrivals=msgspec.structs.replace(arrivals, busiest_hour=None)),
        shapes={name: " ".join(f"{shape};" for shape in each.shapes) for name, each in made.kept},
    )


def _nothing(found: Found, traffic: Traffic) -> str:
    """Why there is nothing to run, and what to do."""
    if not found.statements:
        return NO_STATEMENT
    first = "; ".join(f"{left.lines:,}: {left.reason}" for left in traffic.left_out[:3])
    advice = (
        "; such a table has no values, so give the server's log of statements instead"
        if any(left.reason == NO_VALUES for left in traffic.left_out)
        else ""
    )
    return f"none of its {found.statements:,} statements can be run ({first}){advice}"
