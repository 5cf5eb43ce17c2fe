"""The post's figures. Pure."""

from __future__ import annotations

from ciphercost.studies import Study
from ciphercost.studies.figures import Known

POST = "results of multitime"
SOURCES = {
    POST: '"PostgreSQL direct SSL", notes.aflukasz.pl, 22 May 2025: two runs of multitime -n 1000, a psql that only quits, with each value of '
    "sslnegotiation, client and server on one host; seconds with three decimals"
}
"""Where its figures were seen, and what they hold."""
STARTS = 1000
"""Starts of psql in each run."""


def times(study: Study, statistic: str, time: str = "real") -> Known:
    """Milliseconds with a request first and from the first byte."""
    (row,) = (row for row in study.rows("figures.csv") if (row["time"], row["statistic"]) == (time, statistic))
    return {"plain": float(row["postgres"]) * 1e3, "encrypted": float(row["direct"]) * 1e3}
