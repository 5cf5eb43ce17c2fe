"""fips-haproxy: how many new TLS connections HAProxy accepts in FIPS mode and out of it (Cloud Foundry RFC 0061, 2026)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS, CellSpec, Spec
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.studies import Stage, Study, in_turn, table
from ciphercost.studies.agreement import Judged
from ciphercost.studies.fips_haproxy import compare, published, ways
from ciphercost.studies.sheet import Sheet

METHOD = (
    "Our method has two servers that differ in FIPS mode alone: the same program, the same OpenSSL 3.5 and the same key exchange group, with "
    "the FIPS provider or with the default one. Both arms use TLS 1.3 and are proven; which provider a server has loaded is read from its "
    "memory map. One row lets the key exchange differ too. The client's library is the same in both arms and in no FIPS mode."
)


class FipsHaproxy(Study):
    """Its sizes are arguments, so that a test can run it small."""

    name = "fips-haproxy"
    operations = (compare.CONNECT,)
    sources = published.SOURCES
    seconds = 40.0

    def __init__(
        self, duration: float = 10.0, runs: int = 3, sessions: int = 8, clients: int = published.CLIENTS
    ) -> None:
        """`duration`: seconds of a published run, which the RFC does not state; `runs`: of each mode; it states none."""
        self.duration, self.runs, self.sessions, self.clients = duration, runs, sessions, clients

    def configured(self, given: Mapping[str, Any]) -> Study:
        super().configured(given)
        return FipsHaproxy(
            in_turn.duration_of(given, self.duration), in_turn.runs_of(given, self.runs), self.sessions, self.clients
        )

    def spec(self, engine: str, time: float, seed: int) -> Spec:
        """New connections with each key exchange and certificate, and requests on kept connections."""
        self.check_engine(engine)
        cells = [self._cell(engine, way) for way in ways.ALL]
        return Spec(cells=cells, seed=seed, time=time, sessions=self.sessions, latency=False)

    def _cell(self, engine: str, way: ways.Way) -> CellSpec:
        return CellSpec(
            engine,
            "tls",
            workload=way.workload,
            factors=dict(way.factors),
            versus=dict(way.versus),
            clients=self.clients,
            variant=way.name,
        )

    def procedure_cells(self, engine: str) -> list[CellSpec]:
        return [self._cell(engine, ways.SAME)]

    def procedure_seconds(self, time: float) -> float:  # noqa: ARG002 - its runs decide
        return len(ARMS) * self.runs * self.duration

    def begin(self, engine: str) -> StudyRecord:
        settings: dict[str, float] = {in_turn.SECONDS: self.duration, in_turn.RUNS: self.runs}
        return StudyRecord(FORMAT, self.name, engine, "tls", arms=list(ARMS), settings=settings)

    def procedure(self, stage: Stage) -> None:
        in_turn.run(stage, self.operations, per_request=self.operations)

    def compare(self, record: StudyRecord, cells: list[Cell]) -> StudyResult:
        return compare.compare(self, record, cells)

    def headline(self, result: StudyResult) -> list[StudyFigure]:
        """New connections; what AWS-LC loses is published alone."""
        return [figure for figure in super().headline(result) if figure.figure == compare.RATE]

    def judged(self, result: StudyResult) -> Judged:
        return Judged(
            self.headline(result),
            printed_once=True,
            changed="FIPS mode",
            ratios={compare.RATE: "new TLS connections a second, in FIPS mode ÷ out of it"},
        )

    def caveat(self, result: StudyResult) -> str:  # noqa: ARG002
        return (
            "Published: OpenSSL 3.0.2, key exchange and certificate not stated, and the peak out of FIPS mode rounded to hundreds; "
            "here OpenSSL 3.5, so the published figure stands beside every key exchange measured here."
        )

    def sheets(self, result: StudyResult) -> Iterator[Sheet]:
        yield from table.sheets(result, arms="FIPS mode off → on", costs="FIPS mode costs")
        yield compare.beside(self)

    def method(self, result: StudyResult) -> list[str]:  # noqa: ARG002
        return [METHOD]


STUDY = FipsHaproxy()
