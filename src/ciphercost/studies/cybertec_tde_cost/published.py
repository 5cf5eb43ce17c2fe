"""The study's published figures. Pure."""

from __future__ import annotations

import msgspec

from ciphercost.studies import Study

POST = "Cybertec's table"
SOURCES = {
    POST: '"The Cost of TDE and Checksums in PGEE", cybertec-postgresql.com, September 2025: TPS of PGEE 17.6, averages of a few one-minute '
    "runs of pgbench"
}
"""Where the figures were seen, and what it holds."""
SCALE, CLIENTS, SECONDS, BUFFERS = 50, 3, 60.0, "1MB"


class Row(msgspec.Struct, frozen=True):
    """One cell of the published table."""

    bits: int
    """Key length; 0: no TDE."""
    checksums: bool
    tps: float
    percent: float
    """As printed, of the first cell."""


def rows(study: Study) -> list[Row]:
    """All eight cells."""
    return [
        Row(int(row["bits"]), row["checksums"] == "on", float(row["tps"]), float(row["percent_as_printed"]))
        for row in study.rows("figures.csv")
    ]


def tps(study: Study, bits: int, *, checksums: bool = False) -> float:
    """One cell of the table. Raises StopIteration if there is none."""
    return next(row.tps for row in rows(study) if (row.bits, row.checksums) == (bits, checksums))


def claims(study: Study) -> dict[str, float]:
    """Single figures in the text."""
    return {row["claim"]: float(row["value"]) for row in study.rows("claims.csv")}
