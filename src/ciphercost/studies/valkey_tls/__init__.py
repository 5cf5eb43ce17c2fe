"""valkey-tls: a key-value store with one client that waits for each answer, with TLS and without (an issue of Redis, 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS, CellSpec, Spec
from ciphercost.model.study import StudyRecord, StudyResult
from ciphercost.studies import Stage, Study, in_turn
from ciphercost.studies.agreement import Judged
from ciphercost.studies.valkey_tls import compare, published

ALL = "commands"
"""The workload with all transactions."""
MANY = 50
"""Clients of the cell that shows a busy server."""


class ValkeyTls(Study):
    """Its sizes are arguments, so that a test can run it small."""

    name = "valkey-tls"
    operations = (compare.BOTH, "set", "get")
    sources = published.SOURCES
    seconds = 40.0

    def __init__(self, duration: float = 8.0, runs: int = 3, sessions: int = 8) -> None:
        """`duration`: seconds of a published run, which took about 8 (100,000 requests at 12,274/s); `runs`: of each arm, published one."""
        self.duration, self.runs, self.sessions = duration, runs, sessions

    def configured(self, given: Mapping[str, Any]) -> Study:
        super().configured(given)
        return ValkeyTls(
            in_turn.duration_of(given, self.duration), in_turn.runs_of(given, self.runs), sessions=self.sessions
        )

    def spec(self, engine: str, time: float, seed: int) -> Spec:
        """Each operation with the published single client, then both commands with many."""
        self.check_engine(engine)
        cells = [self._cell(engine, name, 1) for name in self.operations]
        cells.append(self._cell(engine, compare.BOTH, MANY))
        return Spec(cells=cells, seed=seed, time=time, sessions=self.sessions, latency=False)

    def _cell(self, engine: str, operation: str, clients: int) -> CellSpec:
        return CellSpec(engine, "tls", workload=f"{self.name}/{operation}", clients=clients)

    def procedure_cells(self, engine: str) -> list[CellSpec]:
        # --tls-skip-verify encrypts but checks no certificate.
        return [CellSpec(engine, "tls", workload=f"{self.name}/{ALL}", clients=1, factors={"verify": "require"})]

    def procedure_seconds(self, time: float) -> float:  # noqa: ARG002 - its runs decide
        return len(ARMS) * len(self.operations) * self.runs * self.duration

    def begin(self, engine: str) -> StudyRecord:
        settings: dict[str, float] = {in_turn.SECONDS: self.duration, in_turn.RUNS: self.runs}
        return StudyRecord(FORMAT, self.name, engine, "tls", arms=list(ARMS), settings=settings)

    def procedure(self, stage: Stage) -> None:
        in_turn.run(stage, self.operations, transactions=True)

    def compare(self, record: StudyRecord, cells: list[Cell]) -> StudyResult:
        return compare.compare(self, record, cells)

    def judged(self, result: StudyResult) -> Judged:
        return Judged(
            self.headline(result),
            ratios={
                compare.SETS: "sets a second, with TLS ÷ without, one client that also reads as often as it writes"
            },
        )

    def caveat(self, result: StudyResult) -> str:  # noqa: ARG002
        return "Published over loopback of another machine: how much of a round trip is TLS depends on how long the rest of it takes."


STUDY = ValkeyTls()
