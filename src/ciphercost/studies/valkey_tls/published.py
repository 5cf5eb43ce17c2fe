"""The study's published figures. Pure."""

from __future__ import annotations

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


def lines(study: Study) -> dict[str, Line]:
    """The figures of both runs, by name."""
    return {
        row["figure"]: Line(float(row["plain"]), float(row["encrypted"]) if row["encrypted"] else None)
        for row in study.rows("figures.csv")
    }
