"""What the two publications say of OpenSSL's versions, as limits. Pure."""

from __future__ import annotations

from typing import cast

import msgspec

from ciphercost.model.study import Bound
from ciphercost.studies import Study

MARIADB, MYSQL = "MariaDB post", "MySQL post"
SOURCES = {
    MARIADB: '"Mariadb Performance : Openssl and wolfssl", kumar-mysql.blogspot.com, May 2026, Key Findings. Its table is not in the copy '
    "that we saw",
    MYSQL: '"Upgrade to OpenSSL 3.5", blogs.oracle.com/mysql, 2026, Benefits, which summarises measurements by Dimitri Kravtchuk. Their '
    "figures are not in the copy that we saw, nor in that of his own report (dimitrik.free.fr, mysql-perf-openssl355-evaluation)",
}
"""Where each was seen, and what it holds."""
SERVERS = {"mariadb": "MariaDB, version not seen", "mysql": "MySQL 8.0.46, 8.4.9, 9.7.0"}
"""By server: on what it was published."""


class Limit(msgspec.Struct, frozen=True):
    """How much faster or slower than OpenSSL 3.0 a version may be."""

    bound: Bound
    ratio: float
    """A rate ÷ that with OpenSSL 3.0."""
    source: str


def limits(study: Study, server: str) -> dict[tuple[str, str], Limit]:
    """By operation and version.

    `either`: the publication says that each version is at most so many per cent below the same best library. Two of them then differ by
    at most 1 ÷ (1 − that share).
    """
    return {
        (row["operation"], row["version"]): Limit(
            cast("Bound", row["bound"]), 1 / (1 - float(row["percent"]) / 100), row["source"]
        )
        for row in study.rows("limits.csv")
        if row["server"] == server
    }


def shares(study: Study) -> dict[str, float]:
    """Per cent below the best library that the MariaDB post prints, by operation."""
    return {row["operation"]: float(row["percent"]) for row in study.rows("limits.csv") if row["server"] == "mariadb"}
