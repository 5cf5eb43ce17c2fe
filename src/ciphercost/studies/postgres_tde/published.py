"""The study's published figures. Pure.

`figures.csv` repeats figures that were printed once per server on each of its rows: only the mean latency was printed for three sizes.
"""

from __future__ import annotations

import msgspec

from ciphercost.studies import Study

TABLES = {"branches": 1, "tellers": 10, "accounts": 100_000}
"""Rows of each of pgbench's tables per unit of scale."""
TDE, PLAIN, OTHER = ("cybertec-15.8", "tde-aes"), ("cybertec-15.8", "none"), ("enterprisedb-15.10", "none")

LATENCIES, OUTPUT = "Table I", "text and figures"
SOURCES = {
    LATENCIES: "mean latency of each server, by number of rows",
    OUTPUT: "what pgbench prints: TPS, standard deviation of the latency, connection time, transactions",
}


class Arm(msgspec.Struct, frozen=True):
    """One server's figures."""

    tps: float
    latency_average_ms: float
    latency_stddev_ms: float
    initial_connection_ms: float
    transactions: float
    rows: tuple[int, ...]
    """Numbers of rows with a published mean latency."""
    latencies: tuple[float, ...]
    """Mean latency for each of them."""
    bits: int = 0
    """Length of the key; 0: not encrypted."""

    @property
    def seconds(self) -> float:
        """Duration: its transactions at its own rate."""
        return self.transactions / self.tps


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
            latencies=tuple(float(row["latency_avg_ms"]) for row in rows),
            bits=int(rows[0]["bits"] or 0),
        )
        for name, rows in tables.items()
    }


def claims(study: Study) -> dict[str, float]:
    """Single figures in the text."""
    return {row["claim"]: float(row["value"]) for row in study.rows("claims.csv")}


class EdbPair(msgspec.Struct, frozen=True):
    """One of the two pairs of figures that are printed for EnterpriseDB."""

    clients: int
    """The second pair's is not printed; it follows from rate and latency."""
    tps: float
    latency_average_ms: float


def edb_pairs(study: Study) -> list[EdbPair]:
    """In printed order."""
    return [
        EdbPair(int(row["clients"]), float(row["tps"]), float(row["latency_avg_ms"]))
        for row in study.rows("edb_pairs.csv")
    ]
