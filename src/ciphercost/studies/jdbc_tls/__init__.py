"""jdbc-tls: a loop of single-row inserts before and after a driver upgrade of MySQL that turned TLS on (a blog post of 2020)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ciphercost.load.jdbc.options import WORD
from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS, CellSpec, Mode, Spec
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.studies import Stage, Study
from ciphercost.studies.agreement import Judged
from ciphercost.studies.jdbc_tls import compare, loops, procedure, published, report, setups
from ciphercost.studies.jdbc_tls.loops import CAPTURED, Loop
from ciphercost.studies.jdbc_tls.setups import CALLS, EXECUTE, SERVER_VERSION, Setup
from ciphercost.studies.sheet import Sheet

VERSION = "10.11"
"""A version of MariaDB that accepts both drivers."""
SETTINGS = {"version": SERVER_VERSION, "innodb-flush-log-at-trx-commit": "2"}
"""Flush the log each second, not at each commit: waiting for a disk would hide what drivers and TLS cost."""
LEAST_RUNS, MOST_RUNS = 2, 100
ROUND_SECONDS = 30.0
"""For every setup, cold and warm."""


class JdbcTls(Study):
    """Its sizes are arguments, so that a test can run it small."""

    name = "jdbc-tls"
    operations = CALLS
    sources = published.SOURCES
    seconds = 20.0
    one_core = True

    def __init__(
        self, rows: int = 5000, runs: int = 5, sessions: int = 6, warm_slice: float = 0.25, loop: Loop = CAPTURED
    ) -> None:
        self.loop_rows, self.runs, self.sessions, self.warm_slice = rows, runs, sessions, warm_slice
        self.loop = loop

    def configured(self, given: Mapping[str, Any]) -> Study:
        super().configured(given)
        runs = given.get("runs", self.runs)
        if not LEAST_RUNS <= runs <= MOST_RUNS:
            raise UsageError(
                f"--runs {runs}: jdbc-tls needs {LEAST_RUNS} to {MOST_RUNS} starts of Java, because its intervals come from them"
            )
        loop = loops.get(given["loop"]) if "loop" in given else self.loop
        return JdbcTls(self.loop_rows, runs, self.sessions, self.warm_slice, loop)

    def spec(self, engine: str, time: float, seed: int) -> Spec:
        """One experiment per call in warm JVMs: old driver, new driver, and a new driver kept from querying if that call queries the server."""
        self.check_engine(engine)
        cells = []
        for call in CALLS:
            cells += [self.cell(engine, "none", setups.before(call)), self.cell(engine, "tls", setups.after(call))]
            if call == EXECUTE:
                cells.append(self.cell(engine, "tls", setups.without_queries(call)))
        mode: Mode = "full" if self.sessions > 1 else "quick"
        return Spec(cells=cells, seed=seed, time=time, mode=mode, sessions=self.sessions, latency=False)

    def cell(self, engine: str, mechanism: str, setup: Setup) -> CellSpec:
        """One driver with one call, on one core, in both arms."""
        factors = {**self.loop.options, **setup.options, **(self.loop.tls if mechanism == "tls" else {})}
        return CellSpec(
            engine,
            mechanism,
            VERSION,
            self.loop.workload,
            factors,
            clients=1,
            regime="one-core",
            group=f"{setups.LOOP} by {setup.call}",
            variant=setup.variant,
            client=f"{WORD}:{setup.driver}",
            settings=dict(SETTINGS),
        )

    def procedure_cells(self, engine: str) -> list[CellSpec]:
        loop, settings = self.loop, dict(SETTINGS)
        tls = dict(loop.tls)
        return [CellSpec(engine, "tls", VERSION, loop.workload, tls, clients=1, regime="one-core", settings=settings)]

    def procedure_seconds(self, time: float) -> float:  # noqa: ARG002 - its runs decide
        return self.runs * ROUND_SECONDS

    def begin(self, engine: str) -> StudyRecord:
        settings: dict[str, float] = {"rows": self.loop_rows, "runs": self.runs, "warm_slice_s": self.warm_slice}
        settings[loops.FLAG] = float(self.loop is CAPTURED)
        return StudyRecord(FORMAT, self.name, engine, "tls", arms=list(ARMS), settings=settings)

    def procedure(self, stage: Stage) -> None:
        procedure.run(stage, self.loop)

    def compare(self, record: StudyRecord, cells: list[Cell]) -> StudyResult:
        return compare.compare(self, record, cells)

    def headline(self, result: StudyResult) -> list[StudyFigure]:
        """The part of the upgrade that is encryption."""
        return [figure for figure in result.figures if figure.figure == f"{compare.ENCRYPTION}, {procedure.COLD}"]

    def judged(self, result: StudyResult) -> Judged:
        """Every published ratio of two loops."""
        figures = [figure for figure in result.figures if figure.arm == "cost" and figure.published is not None]
        return Judged(figures, changed="the upgrade", ratios=COMPARED)

    def caveat(self, result: StudyResult) -> str:  # noqa: ARG002
        return "Ours counts starts of Java; its interval is by t over rounds."

    def sheets(self, result: StudyResult) -> Iterator[Sheet]:
        return report.sheets(result)

    def method(self, result: StudyResult) -> list[str]:  # noqa: ARG002
        return [report.METHOD]


COMPARED = {
    f"{name}, {procedure.COLD}": f"{name} ({words})"
    for name, words in {
        compare.UPGRADE: "the new driver with TLS ÷ the old driver",
        compare.DRIVER: "the new driver without TLS ÷ the old driver",
        compare.ENCRYPTION: "the new driver with TLS ÷ without",
    }.items()
}
"""What each published ratio compares, in cold starts."""


STUDY = JdbcTls()
