"""published: what the study printed -> figures to count with. Pure."""

from __future__ import annotations

import msgspec

from ciphercost.studies import Study

TABLES = {"branches": 1, "tellers": 10, "accounts": 100_000}
"""Rows of each of pgbench's tables, for one unit of scale."""
DEFAULT_TRANSACTIONS = 10
"""Of each client, where pgbench is told neither how many nor how long."""
TDE, PLAIN, OTHER = ("cybertec-15.8", "tde-aes"), ("cybertec-15.8", "none"), ("enterprisedb-15.10", "none")

LATENCIES, OUTPUT = "Table I", "text and figures"
SOURCES = {
    LATENCIES: "mean latency of each server, by number of rows",
    OUTPUT: "what pgbench prints: TPS, standard deviation of the latency, connection time, transactions",
}


class Arm(msgspec.Struct, frozen=True):
    """One server's figures; they are printed alike for every number of rows."""

    tps: float
    latency_average_ms: float
    latency_stddev_ms: float
    initial_connection_ms: float
    transactions: float
    rows: tuple[int, ...]
    """Numbers of rows that they are printed for."""

    @property
    def seconds(self) -> float:
        """How long it ran: its transactions at its own rate."""
        return self.transactions / self.tps

    def tps_of_latency(self, clients: float) -> float:
        """What its mean latency says of its rate, were all clients busy all the time (Little's law)."""
        return clients / self.latency_average_ms * 1000


def arms(study: Study) -> dict[tuple[str, str], Arm]:
    """By server and encryption."""
    tables: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in study.rows("figures.csv"):
        tables.setdefault((row["server"], row["encryption"]), []).append(row)
    return {
        name: Arm(
            tps=float(rows[0]["tps"]),
            latency_average_ms=float(rows[0]["latency_avg_ms"]),
            latency_stddev_ms=float(rows[0]["latency_stddev_ms"]),
            initial_connection_ms=float(rows[0]["initial_connection_ms"]),
            transactions=float(rows[0]["transactions"]),
            rows=tuple(int(row["rows"]) for row in rows),
        )
        for name, rows in tables.items()
    }


def alike(study: Study) -> bool:
    """Whether each server's figures are the same for every number of rows."""
    seen: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for row in study.rows("figures.csv"):
        figures = tuple(value for name, value in row.items() if name not in ("server", "encryption", "rows"))
        seen.setdefault((row["server"], row["encryption"]), set()).add(figures)
    return all(len(each) == 1 for each in seen.values())


def claims(study: Study) -> dict[str, float]:
    """Single figures of its text."""
    return {row["claim"]: float(row["value"]) for row in study.rows("claims.csv")}
