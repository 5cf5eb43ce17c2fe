"""published: what the study printed -> figures to count with. Pure."""

from __future__ import annotations

import msgspec

from ciphercost.studies import Study

TABLE = "Table 1"
SOURCES = {TABLE: "cost in time of each server's functions: mean and standard deviation over the four operations"}


class Server(msgspec.Struct, frozen=True):
    """One server's mean cost in time over the four operations, as ratios to the plain arm's."""

    version: str
    algorithm: str
    """`AES-128`."""
    mode: str
    """`ECB`."""
    ratio: float
    sd: float
    """Over the four operations."""

    @property
    def cipher(self) -> str:
        return f"{self.algorithm}-{self.mode}"


def servers(study: Study) -> dict[str, Server]:
    """By engine."""
    return {
        row["server"]: Server(
            version=row["version"],
            algorithm=row["algorithm"],
            mode=row["mode"],
            ratio=1 + float(row["cost_percent_mean"]) / 100,
            sd=float(row["cost_percent_stddev"]) / 100,
        )
        for row in study.rows("cost.csv")
    }


def claims(study: Study) -> dict[str, float]:
    """Single figures of its text."""
    return {row["claim"]: float(row["value"]) for row in study.rows("claims.csv")}
