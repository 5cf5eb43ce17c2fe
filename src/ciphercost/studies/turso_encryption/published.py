"""The study's published figures. Pure."""

from __future__ import annotations

from ciphercost.model.spec import ARMS
from ciphercost.studies import Study, figures

PULL = "pull request 3230"
PAGE = "the announcement"
SOURCES = {
    PULL: 'tursodatabase/turso pull request 3230, "Add encryption throughput test", 20 September 2025: two runs of 100,000 transactions of 100 operations',
    PAGE: '"Introducing Fast, Native Encryption in Turso Database", turso.tech: overhead of reads and writes with AEGIS-256 on "larger databases", '
    "in per cent; no rate, size or number of runs stands beside them in what we saw of it",
}
"""Where the figures were seen, and what they hold."""
BATCH, READ_SHARE = 100, 0.75
"""Operations of a transaction, and the reads among them."""
MIXED, READS, WRITES = "mixed", "reads", "writes"
CLAIMED = {READS: "read", WRITES: "write"}
"""The announcement's words for our operations."""


def rates(study: Study, figure: str) -> figures.Known:
    """One figure of the two runs, by arm."""
    row = next(row for row in study.rows("figures.csv") if row["figure"] == figure)
    return {arm: float(row[arm]) for arm in ARMS}


def percent(study: Study, operation: str) -> float:
    """What the announcement says that encryption costs this operation."""
    return float(next(row["percent"] for row in study.rows("claims.csv") if row["operation"] == CLAIMED[operation]))


def ratio(study: Study, operation: str) -> float:
    """The same as encrypted ÷ plain, of rates."""
    return 1 - percent(study, operation) / 100
