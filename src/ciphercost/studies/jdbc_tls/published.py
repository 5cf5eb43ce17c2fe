"""published: what the post printed -> milliseconds by driver and arm. Pure."""

from __future__ import annotations

from ciphercost.studies import Study
from ciphercost.studies.jdbc_tls.setups import PUBLISHED, Setup

POST = "the post"
SOURCES = {POST: "milliseconds of one loop with each driver and setting"}


def times(study: Study) -> dict[Setup, float]:
    """Milliseconds of one loop each, in the order in which they were run."""
    rows = list(study.rows("time.csv"))
    found = {}
    for setup, row in zip(PUBLISHED, rows, strict=True):
        assert row["driver"] == "mysql-connector-java"
        assert row["version"] == setup.driver
        assert ("on" in row["use_ssl"]) == (setup.arm == "encrypted")
        found[setup] = float(row["milliseconds"])
    return found
