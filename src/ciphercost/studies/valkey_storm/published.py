"""The study's published figures. Pure."""

from __future__ import annotations

import msgspec

from ciphercost.studies import Study

THREAD = "Valkey pull request 1338"
SOURCES = {
    THREAD: 'valkey-io/valkey, "Offload TLS negotiation to I/O threads", 21 November 2024, its description: operations/s rounded to ten thousands, '
    "and the most new connections a second, each with handshakes in the main thread and in I/O threads"
}
"""Where its figures were seen, and what it holds."""
RATE = 160
"""New connections per second."""
MAIN, THREADS = "main thread", "I/O threads"
"""Where the server makes its handshakes."""


class Fall(msgspec.Struct, frozen=True):
    """Operations per second before and during the storm."""

    before: float
    during: float


def fall(study: Study, where: str) -> Fall:
    """What the storm took where handshakes are made `where`."""
    row = next(
        row for row in study.rows("figures.csv") if (row["handshakes"], row["figure"]) == (where, "operations/s")
    )
    return Fall(float(row["before"]), float(row["during"]))
