"""turso-encryption: transactions of 100 operations on Turso, encrypted and not (a pull request of Turso, September 2025)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS, CellSpec, Spec
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.studies import Stage, Study, in_turn, published_costs
from ciphercost.studies.agreement import Judged
from ciphercost.studies.turso_encryption import compare, published

ENGINE, MECHANISM = "turso", "turso-encryption"
ALL = "transactions"
"""The workload with all kinds of transaction."""
BESIDE = "aes256gcm"
"""A second cipher of Turso's, for one cell."""
LEAST_ROWS, MOST_ROWS = 1_000, 100_000_000


class TursoEncryption(Study):
    """Its sizes are arguments, so that a test can run it small."""

    name = "turso-encryption"
    operations = (published.MIXED, published.READS, published.WRITES)
    sources = published.SOURCES
    seconds = 40.0

    def __init__(self, duration: float = 8.0, runs: int = 3, rows: int = 1_000_000, sessions: int = 8) -> None:
        """`duration`: seconds of a published run, which took 629.51; `runs`: of each arm, published one; `rows`: published 0 to 2.5 million."""
        self.duration, self.runs, self.rows_, self.sessions = duration, runs, rows, sessions

    def configured(self, given: Mapping[str, Any]) -> Study:
        super().configured(given)
        rows = int(given.get("rows", self.rows_))
        if not LEAST_ROWS <= rows <= MOST_ROWS:
            raise UsageError(f"--rows {rows}: must be from {LEAST_ROWS:,} to {MOST_ROWS:,} rows")
        return TursoEncryption(
            in_turn.duration_of(given, self.duration), in_turn.runs_of(given, self.runs), rows, self.sessions
        )

    def spec(self, engine: str, time: float, seed: int) -> Spec:
        """Each kind of transaction on Turso and on SQLCipher, and one with another cipher of Turso's."""
        self.check_engine(engine)
        cells = [self._cell(ENGINE, MECHANISM, name) for name in self.operations]
        cells.append(self._cell(ENGINE, MECHANISM, published.MIXED, cipher=BESIDE))
        cells += [self._cell("sqlite", "sqlcipher", name) for name in self.operations]
        return Spec(cells=cells, seed=seed, time=time, sessions=self.sessions, latency=False)

    def _cell(self, engine: str, mechanism: str, operation: str, **factors: str) -> CellSpec:
        workload = f"{self.name}/{operation}"
        return CellSpec(engine, mechanism, workload=workload, clients=1, rows=self.rows_, factors=factors)

    def procedure_cells(self, engine: str) -> list[CellSpec]:  # noqa: ARG002 - the cells name SQLite too
        return [self._cell(ENGINE, MECHANISM, ALL)]

    def procedure_seconds(self, time: float) -> float:  # noqa: ARG002 - its runs decide
        return len(ARMS) * len(self.operations) * self.runs * self.duration

    def begin(self, engine: str) -> StudyRecord:  # noqa: ARG002 - the cells name SQLite too
        settings: dict[str, float] = {
            in_turn.SECONDS: self.duration,
            in_turn.RUNS: self.runs,
            "rows": float(self.rows_),
        }
        return StudyRecord(FORMAT, self.name, ENGINE, MECHANISM, arms=list(ARMS), settings=settings)

    def procedure(self, stage: Stage) -> None:
        in_turn.run(stage, self.operations, transactions=True)

    def compare(self, record: StudyRecord, cells: list[Cell]) -> StudyResult:
        return compare.compare(self, record, cells)

    def headline(self, result: StudyResult) -> list[StudyFigure]:
        """Every kind of transaction."""
        return published_costs(result)

    def judged(self, result: StudyResult) -> Judged:
        return Judged(
            self.headline(result),
            ratios={compare.RATE: "transactions a second of one connection, encrypted ÷ plain"},
        )

    def caveat(self, result: StudyResult) -> str:  # noqa: ARG002
        return (
            "Published: a version of a year before, whose reads fetched no rows, on a machine that is not named. Its transactions waited for a disk "
            "that is not this one, and the longer a commit waits, the less encryption costs of the time."
        )


STUDY = TursoEncryption()
