"""mysql-tls: four statement files over one connection, unencrypted and over TLS, run by mysqlslap (Haikal et al., 2023)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ciphercost.host import memory
from ciphercost.load.workloads import size
from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.result import Cell
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.model.study import StudyRecord, StudyResult
from ciphercost.studies import Stage, Study, transit
from ciphercost.studies.mysql_tls import compare, procedure, published
from ciphercost.studies.sheet import Sheet

ORDERS = {"operations": ["encrypted", "plain"], "arms": ["plain", "encrypted"]}
"""The paper lists operation by operation, each with TLS required and then disabled. `arms` runs all operations of one arm first."""
MOST_ROWS, MOST_ITERATIONS, MOST_QUERIES = 10_000_000, 1000, 10_000_000
LEAST_MEMORY = 128_000_000
"""Bytes below which none of the servers starts."""


class MysqlTls(Study):
    """Its sizes are arguments, so that a test can run it small."""

    name = "mysql-tls"
    operations = published.ORDER
    sources = published.SOURCES

    def __init__(
        self,
        rows: int = 10_000,
        iterations: int = 5,
        queries: int = 10_000,
        least_queries: int = 100,
        interval: float = 5.0,
        sessions: int = 8,
        order: str = "operations",
        memory_bytes: int = 0,
    ) -> None:
        """`order`: one of ORDERS; `memory_bytes`: limit for server and client together during the procedure, 0: none."""
        self.table_rows, self.iterations, self.queries = rows, iterations, queries
        self.least_queries, self.interval, self.sessions = least_queries, interval, sessions
        self.order, self.memory = order, memory_bytes

    def configured(self, given: Mapping[str, Any]) -> Study:
        super().configured(given)
        for name, most in (("rows", MOST_ROWS), ("iterations", MOST_ITERATIONS), ("queries", MOST_QUERIES)):
            if name in given and not 1 <= _whole(given[name], name) <= most:
                raise UsageError(f"--{name} {given[name]}: must be from 1 to {most:,}")
        order = given.get("order", self.order)
        if order not in ORDERS:
            raise UsageError(f"--order {order}: unknown order; {nearest(order, ORDERS)}")
        return MysqlTls(
            _whole(given.get("rows", self.table_rows), "rows"),
            given.get("iterations", self.iterations),
            given.get("queries", self.queries),
            self.least_queries,
            self.interval,
            self.sessions,
            order,
            _memory(given["memory"]) if "memory" in given else self.memory,
        )

    @property
    def settings(self) -> dict[str, float]:
        """Settings of the procedure, as its record keeps them."""
        settings: dict[str, float] = {
            "rows": self.table_rows,
            "iterations": self.iterations,
            "queries": self.queries,
            "least_queries": self.least_queries,
            "interval_s": self.interval,
            "by_operation": float(self.order == "operations"),
        }
        return settings | ({"memory_bytes": self.memory} if self.memory else {})

    def spec(self, engine: str, time: float, seed: int) -> Spec:
        self.check_engine(engine)
        cells = [
            CellSpec(engine, transit(engine), workload=f"{self.name}/{name}", clients=1, rows=self.table_rows)
            for name in self.operations
        ]
        return Spec(cells=cells, seed=seed, time=time, sessions=self.sessions, latency=False)

    def procedure_cells(self, engine: str) -> list[CellSpec]:
        mechanism = transit(engine)
        # mysqlslap's REQUIRED encrypts but checks no certificate.
        factors = {"verify": "require"} if mechanism == "tls" else {}
        return [
            CellSpec(
                engine, mechanism, workload=f"{self.name}/select", clients=1, rows=self.table_rows, factors=factors
            )
        ]

    def procedure_seconds(self, time: float) -> float:
        return len(self.operations) * time * 2 / 3

    def begin(self, engine: str) -> StudyRecord:
        arms = ORDERS[self.order]
        return StudyRecord(FORMAT, self.name, engine, transit(engine), arms=list(arms), settings=self.settings)

    @property
    def memory_limit(self) -> int:
        return self.memory

    def procedure(self, stage: Stage) -> None:
        procedure.run(stage, self.operations)

    def sheets(self, result: StudyResult) -> Iterator[Sheet]:
        yield from super().sheets(result)
        yield from published.cpu_sheets(self)

    def compare(self, record: StudyRecord, cells: list[Cell]) -> StudyResult:
        return compare.compare(self, record, cells)


def _whole(given: int | str, name: str) -> int:
    """Parse one whole number; other studies accept several for the same option. Raises UsageError."""
    try:
        return int(given)
    except ValueError:
        raise UsageError(f"--{name} {given}: mysql-tls takes one whole number") from None


def _memory(text: str) -> int:
    """Bytes of `2GB`. Raises UsageError for too few, or if no limit can be set here."""
    limit = size(text, "--memory")
    if limit < LEAST_MEMORY:
        raise UsageError(
            f"--memory {text}: must be at least {LEAST_MEMORY // 1_000_000}MB, or no server starts; the study's machine had 2GB"
        )
    memory.check(f"--memory {text}")
    return limit


STUDY = MysqlTls()
