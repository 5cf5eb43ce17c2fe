"""The study's published figures. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ciphercost.studies import Study

POST = "Percona's post"
SOURCES = {
    POST: '"TDE performance in PostgreSQL", Percona community blog, 20 July 2026: its text on relation files, and its table of worst cases. Seen as the '
    "text of the blog's repository"
}
"""Where the figures were seen, and what it holds."""
OLTP, COPY, REWRITE, VACUUM, UPDATE = "oltp", "create-table-as", "rewrite", "vacuum-full", "update-all-rows"
WORDS: Mapping[str, str] = {
    OLTP: "small transactions",
    COPY: "CREATE TABLE AS",
    REWRITE: "ALTER TABLE that rewrites",
    VACUUM: "VACUUM FULL",
    UPDATE: "UPDATE of all rows",
}
STATEMENTS: Mapping[str, tuple[str, ...]] = {
    COPY: ("DROP TABLE IF EXISTS copied", "CREATE TABLE copied AS SELECT * FROM pgbench_accounts"),
    REWRITE: (
        "ALTER TABLE pgbench_accounts ALTER COLUMN abalance TYPE bigint",
        "ALTER TABLE pgbench_accounts ALTER COLUMN abalance TYPE integer",
    ),
    VACUUM: ("VACUUM FULL pgbench_accounts",),
}
"""What is timed as one operation."""
MEASURED = (OLTP, *STATEMENTS)
SEARCHED = 0.01
"""The smallest cost that, by the post, only a specific configuration can show: 1 %."""


def limit(study: Study, operation: str) -> float:
    """The most that its time grows, as a ratio."""
    (row,) = (row for row in study.rows("claims.csv") if row["operation"] == operation)
    return 1 + float(row["percent"]) / 100


def bandwidths(study: Study) -> dict[str, float]:
    """Gigabytes per second of the post's machine, by what was done."""
    return {row["what"]: float(row["gb_s"]) for row in study.rows("bandwidth.csv")}
