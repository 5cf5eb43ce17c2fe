"""direct-tls: can psql's start show the round trip that direct TLS negotiation saves? (a blog post, 2025)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ciphercost.model.constrained_types import DIRECT, FORMAT
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS, CellSpec, Spec
from ciphercost.model.study import StudyRecord, StudyResult
from ciphercost.plan.conditions import round_trip
from ciphercost.studies import Stage, Study, table
from ciphercost.studies.agreement import Judged
from ciphercost.studies.direct_tls import compare, procedure, published
from ciphercost.studies.sheet import Sheet

MOST_STARTS = 100_000
VERSION = "17"
"""As published, and the first that takes TLS with the first byte."""
METHOD = (
    "Our method opens connections alone, without starting a program: one client logs in, runs SELECT 1 and closes, with a request for TLS "
    "first and with TLS from the first byte, in turn on one server. Both ways check the certificate and its name. The delay is added to each round "
    "trip, so over a link the difference is the missing one and whatever the ends do less."
)


class DirectTls(Study):
    """Its sizes are arguments, so that a test can run it small."""

    name = "direct-tls"
    operations = (procedure.OPERATION,)
    sources = published.SOURCES
    seconds = 30.0
    newer_servers = True

    def __init__(self, starts: int = 300, delay: str = "10ms", sessions: int = 8) -> None:
        """`starts`: of psql in each way; published 1,000. `delay`: of the second link."""
        self.starts, self.delay, self.sessions = starts, delay, sessions

    def configured(self, given: Mapping[str, Any]) -> Study:
        super().configured(given)
        starts = int(given.get("runs", self.starts))
        if not 2 <= starts <= MOST_STARTS:
            raise UsageError(f"--runs {starts}: must be from 2 to {MOST_STARTS} starts of psql in each way")
        delay = given.get("delay", self.delay)
        round_trip(delay)
        return DirectTls(starts, delay, self.sessions)

    def spec(self, engine: str, time: float, seed: int) -> Spec:
        """Connections over loopback and over a link with a delay."""
        self.check_engine(engine)
        cells = [self._cell(engine, delay) for delay in ("", self.delay)]
        return Spec(cells=cells, seed=seed, time=time, sessions=self.sessions, latency=False)

    def _cell(self, engine: str, delay: str) -> CellSpec:
        return CellSpec(
            engine,
            "tls",
            version=VERSION,
            workload="connect",
            factors={"negotiation": DIRECT},
            versus={"negotiation": "postgres"},
            clients=1,
            delay=delay,
        )

    def procedure_cells(self, engine: str) -> list[CellSpec]:
        return [self._cell(engine, "")]

    def procedure_seconds(self, time: float) -> float:  # noqa: ARG002 - its starts decide
        return len(ARMS) * self.starts * procedure.SECONDS_A_START

    def begin(self, engine: str) -> StudyRecord:
        settings = {"starts": float(self.starts)}
        return StudyRecord(FORMAT, self.name, engine, "tls", arms=list(ARMS), settings=settings)

    def procedure(self, stage: Stage) -> None:
        procedure.run(stage)

    def compare(self, record: StudyRecord, cells: list[Cell]) -> StudyResult:
        return compare.compare(self, record, cells)

    def judged(self, result: StudyResult) -> Judged:
        return Judged(
            self.headline(result),
            direction_only=True,
            changed="direct negotiation",
            ratios={
                compare.TIME: "time of psql's start as published, of a connection by our method, direct ÷ with a request first"
            },
        )

    def caveat(self, result: StudyResult) -> str:  # noqa: ARG002
        return "Published: starts of a program that then connects; ours: connections over loopback alone, so only directions are compared."

    def sheets(self, result: StudyResult) -> Iterator[Sheet]:
        if sheet := compare.answer(result):
            yield sheet
        yield from table.sheets(
            compare.without_design(result), arms="request first → direct", costs="direct negotiation changes"
        )

    def method(self, result: StudyResult) -> list[str]:  # noqa: ARG002
        return [METHOD]


STUDY = DirectTls()
