"""The issue's figures. Pure."""

from __future__ import annotations

from ciphercost.studies import Study

ISSUE = "Problems with performance when connecting over tls"
SOURCES = {
    ISSUE: 'yandex/odyssey issue 526, "Problems with performance when connecting over tls", 22 August 2023: the real time of one '
    "psql -Atc \"select repeat('1', 40000000)\" with PGSSLMODE=require through each pooler. It prints no version, no settings and no machine; "
    "its picture was not seen"
}
"""Where its figures were seen, and what they hold."""
BYTES = 40_000_000
"""Of its value."""


def milliseconds(study: Study, pooler: str) -> float:
    """One start of psql with one value through that pooler."""
    (row,) = (row for row in study.rows("figures.csv") if row["pooler"] == pooler)
    return float(row["seconds"]) * 1e3
