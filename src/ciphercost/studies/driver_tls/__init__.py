"""driver-tls: what TLS costs the client, by psycopg, pgx and node-postgres, beside PyMongo's benchmarks (2024) and a proxy's (2026)."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from ciphercost.load import drivers
from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS, CellSpec, Spec
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.studies import Stage, Study, in_turn, published_costs, table
from ciphercost.studies.agreement import Judged
from ciphercost.studies.driver_tls import compare, published, ways
from ciphercost.studies.sheet import Sheet

METHOD = (
    "Our method makes the load with each driver in its own language, over one connection, with its own TLS library: OpenSSL for psycopg and "
    "node-postgres, Go's for pgx. CPU time is that of the client's process and of the server's processes, apart. Each driver must have refused "
    "a server with a certificate of a stranger before it made any load."
)


class DriverTls(Study):
    """Its sizes are arguments, so that a test can run it small."""

    name = "driver-tls"
    operations = tuple(operation.workload for operation in ways.OPERATIONS)
    sources = published.SOURCES
    seconds = 20.0

    def __init__(
        self,
        duration: float = 2.0,
        runs: int = 3,
        sessions: int = 8,
        drivers: tuple[str, ...] = (),
        size: str = "",
    ) -> None:
        """`duration`: seconds of a published run; `runs`: of each arm; neither is stated. `drivers`: empty: those whose language is here.
        `size`: of the large result; empty: 1 MB.
        """
        self.duration, self.runs, self.sessions, self.size = duration, runs, sessions, size
        self._drivers = drivers

    @functools.cached_property
    def drivers(self) -> tuple[str, ...]:
        """Those that it measures: one whose language is missing is left out."""
        return self._drivers or available()

    def configured(self, given: Mapping[str, Any]) -> Study:
        super().configured(given)
        duration, runs = in_turn.duration_of(given, self.duration), in_turn.runs_of(given, self.runs)
        return DriverTls(duration, runs, self.sessions, self._drivers, self.size)

    def spec(self, engine: str, time: float, seed: int) -> Spec:
        """Each operation with each driver."""
        self.check_engine(engine)
        cells = [self._cell(engine, driver, operation) for operation in ways.OPERATIONS for driver in self.drivers]
        return Spec(cells=cells, seed=seed, time=time, sessions=self.sessions, latency=False)

    def _cell(self, engine: str, driver: str, operation: ways.Operation) -> CellSpec:
        sized = {"size": self.size} if self.size and operation is ways.BULK else {}
        return CellSpec(
            engine,
            "tls",
            workload=operation.workload,
            factors=sized,
            clients=1,
            client=driver,
            variant=ways.name_of(driver, operation.workload),
        )

    def procedure_cells(self, engine: str) -> list[CellSpec]:
        return self.spec(engine, 1.0, 1).cells

    def procedure_seconds(self, time: float) -> float:  # noqa: ARG002 - its runs decide
        return len(ARMS) * len(self.drivers) * len(ways.OPERATIONS) * self.runs * self.duration

    def begin(self, engine: str) -> StudyRecord:
        names = [cell.variant for cell in self.procedure_cells(engine)]
        return StudyRecord(
            FORMAT,
            self.name,
            engine,
            "tls",
            arms=list(ARMS),
            mechanisms=["tls"] * len(names),
            servers=names,
            settings={in_turn.SECONDS: self.duration, in_turn.RUNS: self.runs},
            conditions={} if self._drivers else {n: compare.LEFT_OUT for n in ways.DRIVERS if n not in self.drivers},
        )

    def procedure(self, stage: Stage) -> None:
        workload = stage.bench.cell.workload
        in_turn.run(stage, [workload], per_request=[workload] if workload == ways.CONNECT.workload else [])

    def compare(self, record: StudyRecord, cells: list[Cell]) -> StudyResult:
        return compare.compare(self, record, cells)

    def headline(self, result: StudyResult) -> list[StudyFigure]:
        """What stands beside PyMongo's figures."""
        return [figure for figure in published_costs(result) if figure.source == published.PYMONGO]

    def judged(self, result: StudyResult) -> Judged:
        """Each operation with each driver."""
        return Judged(
            published_costs(result), direction_only=True, printed_once=True, changed="TLS", ratios=compare.COMPARED
        )

    def caveat(self, result: StudyResult) -> str:  # noqa: ARG002
        return (
            "Published: another database and driver, or a proxy between client and server, whose seconds are whole; "
            "here PostgreSQL's drivers, so only directions are compared, of every driver with the same published figure."
        )

    def sheets(self, result: StudyResult) -> Iterator[Sheet]:
        yield from compare.shares(result)
        yield from table.sheets(result, costs="TLS costs")
        yield compare.beside(self)

    def method(self, result: StudyResult) -> list[str]:  # noqa: ARG002
        return [METHOD]


def available() -> tuple[str, ...]:
    """The drivers that are here, or whose language is, so that they can be fetched or built. Fetches nothing."""
    found = []
    for name in ways.DRIVERS:
        driver = drivers.find(name, "postgresql")
        program = ways.PROGRAMS.get(name)
        if program is None or shutil.which(program) or drivers.language(driver.language).is_here(driver):
            found.append(name)
    return tuple(found)


STUDY = DriverTls()
