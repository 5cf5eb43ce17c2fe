"""The study's published figures. Pure."""

from __future__ import annotations

from itertools import groupby

import msgspec

from ciphercost.studies import Study

THREAD = "Redis issue 7595"
SOURCES = {
    THREAD: 'redis/redis, "Redis 6 performance downgrade a lot after enable TLS", 31 July 2020: two runs of memtier_benchmark. The copy that '
    "we saw ends after the line of the sets with TLS, so the other figures with TLS are left out"
}
"""Where its figures were seen, and what it holds."""
REQUESTS = 100_000
"""Requests of each run."""


class Line(msgspec.Struct, frozen=True):
    """One figure of both runs; None: not seen."""

    plain: float
    encrypted: float | None


class Elsewhere(msgspec.Struct, frozen=True):
    """A comparison with TLS in both arms."""

    thread: str
    title: str
    figures: tuple[tuple[str, float, float], ...]
    """What, before and after a change of the server."""


def lines(study: Study) -> dict[str, Line]:
    """The figures of both runs, by name."""
    return {
        row["figure"]: Line(float(row["plain"]), float(row["encrypted"]) if row["encrypted"] else None)
        for row in study.rows("figures.csv")
    }


def elsewhere(study: Study) -> list[Elsewhere]:
    """Threads that are quoted for the cost of TLS but have no arm without it."""
    return [
        Elsewhere(thread, title, tuple((row["figure"], float(row["before"]), float(row["after"])) for row in rows))
        for (thread, title), rows in groupby(study.rows("elsewhere.csv"), lambda row: (row["thread"], row["title"]))
    ]
