"""column-functions: encryption functions of three servers on a public register, four operations (Rosa and Lazarin, 2024)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from ciphercost.host.aes import openssl_capabilities
from ciphercost.load.tables import hospital_register
from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS, CellSpec, Spec
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.plan import conditions
from ciphercost.studies import Stage, Study
from ciphercost.studies.column_functions import compare, procedure, published, report, servers
from ciphercost.studies.column_functions.names import ALL_OPERATIONS
from ciphercost.studies.sheet import Sheet

DEFAULT_LOADS, DEFAULT_RUNS = (1000, 2000), 3
SECONDS = 720.0
"""For the published and the interleaved procedure on three servers with default loads and runs."""
LEAST_SECONDS = 10.0
TEMPLATE_ROWS = 20
"""Rows in the tables that a server starts with; the procedure creates its own tables each time."""
CELL_ROWS = 1000
EQUAL_GROUP = f"{servers.EQUAL_CIPHER} with a random IV on every server"


class ColumnFunctions(Study):
    """Sizes come from `--loads` and `--runs`; `--engine` selects servers."""

    name = "column-functions"
    operations = procedure.OPERATIONS
    sources = published.SOURCES
    seconds = 30.0
    one_core = True

    def __init__(
        self,
        loads: tuple[int, ...] = DEFAULT_LOADS,
        runs: int = DEFAULT_RUNS,
        csv: str = "",
        *,
        least_sessions: int = 3,
        most_sessions: int = 8,
        cell_sessions: int = 5,
        cell_rows: int = 0,
        interval: float = 1.0,
        cpu_crypto: Literal["on", "off"] = "on",
    ) -> None:
        """`csv`: the register's own file; empty: generated records.

        `cell_sessions`, `cell_rows`: size of the comparison at equal cipher (0: the workload's own); `interval`: seconds between samples.
        `cpu_crypto`: `off` hides the CPU's AES instructions from server and client, in the procedure and in our own cells.
        """
        self.loads, self.runs, self.csv = loads, runs, csv
        self.least_sessions, self.most_sessions = least_sessions, most_sessions
        self.cell_sessions, self.cell_rows = cell_sessions, cell_rows
        self.interval = interval
        self.cpu_crypto = cpu_crypto

    def configured(self, given: Mapping[str, Any]) -> Study:
        super().configured(given)
        runs = given.get("runs", self.runs)
        if runs < 1:
            raise UsageError(f"--runs {runs}: must be at least 1")
        loads = servers.loads_of(given["loads"]) if "loads" in given else self.loads
        csv = given.get("csv", self.csv)
        if csv:
            hospital_register.count(Path(csv), max(loads))
        if (cpu_crypto := given.get("cpu_crypto", self.cpu_crypto)) == "off":
            conditions.mask()
        return ColumnFunctions(
            loads,
            runs,
            csv,
            least_sessions=self.least_sessions,
            most_sessions=self.most_sessions,
            cell_sessions=self.cell_sessions,
            cell_rows=self.cell_rows,
            interval=self.interval,
            cpu_crypto=cpu_crypto,
        )

    def check_engine(self, engine: str) -> None:
        servers.listed(engine)

    def spec(self, engine: str, time: float, seed: int) -> Spec:
        """What the study could not compare: one mode and key length on every server, with a random IV, as one experiment."""
        cells = [
            CellSpec(
                name,
                servers.PAIRS[name].equal,
                workload=procedure.TUNED,
                factors=servers.EQUAL_FACTORS,
                clients=1,
                # The register's file has 745,015 lines; use no more of it than the generator makes by default.
                rows=self.cell_rows or (min(CELL_ROWS, max(self.loads)) if self.csv else 0),
                csv=self.csv,
                regime="one-core",
                cpu_crypto=self.cpu_crypto,
                group=EQUAL_GROUP,
                variant=f"{name} {servers.PAIRS[name].equal}",
            )
            for name in servers.listed(engine)
        ]
        return Spec(cells=cells, seed=seed, time=time, sessions=self.cell_sessions, latency=False)

    def procedure_cells(self, engine: str) -> list[CellSpec]:
        return [
            CellSpec(
                name,
                servers.PAIRS[name].published,
                workload=procedure.STUDYS,
                factors=servers.PAIRS[name].factors,
                clients=1,
                rows=min(TEMPLATE_ROWS, max(self.loads)),
                csv=self.csv,
                regime="one-core",
                cpu_crypto=self.cpu_crypto,
            )
            for name in servers.listed(engine)
        ]

    def procedure_seconds(self, time: float) -> float:  # noqa: ARG002 - loads and runs decide
        """Proportional to records and runs, for all three servers."""
        share = sum(self.loads) / sum(DEFAULT_LOADS) * self.runs / DEFAULT_RUNS
        return max(LEAST_SECONDS, SECONDS * share)

    def begin(self, engine: str) -> StudyRecord:
        names = servers.listed(engine)
        mechanisms = [servers.PAIRS[name].published for name in names]
        settings: dict[str, float] = {
            "runs": self.runs,
            "interval_s": self.interval,
            procedure.APPLICATION: 1.0,
            procedure.CLIENT_PROCESS: 1.0,
            "least_sessions": self.least_sessions,
            "most_sessions": self.most_sessions,
            **{f"load_{number}": load for number, load in enumerate(self.loads, start=1)},
        }
        return StudyRecord(
            FORMAT,
            self.name,
            ",".join(names),
            mechanisms[0],
            arms=list(ARMS),
            mechanisms=mechanisms,
            engines=names,
            tools={"records": f"of {self.csv}" if self.csv else "made up"},
            conditions={"cpu_crypto": self._cpu_crypto()},
            settings=settings,
        )

    def _cpu_crypto(self) -> str:
        """`off`, `on`, or `none` if there are no AES instructions to use: the CPU lacks them or the environment hides them."""
        return self.cpu_crypto if self.cpu_crypto == "off" or "aes" in openssl_capabilities().used else "none"

    def procedure(self, stage: Stage) -> None:
        procedure.run(stage, self.loads)

    def compare(self, record: StudyRecord, cells: list[Cell]) -> StudyResult:
        return compare.compare(self, record, cells)

    def headline(self, result: StudyResult) -> list[StudyFigure]:
        """The published cost of each server; the publication prints no costs of single operations and loads."""
        return [cost for cost in super().headline(result) if cost.operation == ALL_OPERATIONS]

    def sheets(self, result: StudyResult) -> Iterator[Sheet]:
        return report.sheets(result)

    def method(self, result: StudyResult) -> list[str]:  # noqa: ARG002
        return [report.METHOD]


STUDY = ColumnFunctions()
