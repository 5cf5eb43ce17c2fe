"""The page's statements. Pure."""

from __future__ import annotations

import msgspec

from ciphercost.studies import Study

PAGE = "the benchmark's table"
SOURCES = {
    PAGE: 'Scaleway, "Encryption at rest performance benchmark on Database Instances", 19 December 2024: performance impact in rounded per '
    "cent, of pgbench with 10 connections on DB-POP2-4C-16G instances; no figure with a unit"
}
"""Where they were seen, and what it holds."""
CLIENTS = 10
READ, OLTP, LOAD = "read", "OLTP", "load"
STANDALONE = "standalone"


class Claim(msgspec.Struct, frozen=True):
    """Impact of encryption on one workload and setup, per cent."""

    workload: str
    setup: str
    scale: str
    least: float | None
    """None: the page says `up to`."""
    most: float


def claims(study: Study) -> list[Claim]:
    """All statements, in the page's order."""
    return [
        Claim(
            row["workload"],
            row["setup"],
            row["scale"],
            float(row["least"]) if row["least"] else None,
            float(row["most"]),
        )
        for row in study.rows("claims.csv")
    ]


def ratio(study: Study, workload: str) -> float:
    """Encrypted ÷ plain of one server without a replica: of rates, or for `load` of times."""
    percent = next(claim.most for claim in claims(study) if (claim.workload, claim.setup) == (workload, STANDALONE))
    return 1 + percent / 100 if workload == LOAD else 1 - percent / 100
