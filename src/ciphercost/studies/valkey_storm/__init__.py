"""valkey-storm: what 160 new connections a second take from a key-value store at full load, with TLS and without (a pull request of Valkey, 2024)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS, CellSpec, Spec
from ciphercost.model.study import StudyRecord, StudyResult
from ciphercost.studies import Stage, Study, in_turn, table
from ciphercost.studies.agreement import Judged
from ciphercost.studies.sheet import Sheet
from ciphercost.studies.valkey_storm import compare, procedure, published

CLIENTS = 50
"""Established clients; published 650. Valkey accepts one TLS connection in a turn of its event loop, which with 650 clients takes 30 ms or more on a
slow core, so that 160 a second are not reached."""
METHOD = (
    "Our method has storms of half a second, each between two quiet parts of the same length, in mirrored order with and without TLS; the interval is "
    "that of the ratio during ÷ before over server starts. Clients of the established and of the new connections share the cores that the server does "
    "not have. So CPU time of the new connections' clients takes from the load too, in both arms; the second table says what was full."
)


class ValkeyStorm(Study):
    """Its sizes are arguments, so that a test can run it small."""

    name = "valkey-storm"
    operations = (procedure.OPERATION,)
    sources = published.SOURCES
    seconds = 30.0

    def __init__(self, duration: float = 5.0, runs: int = 3, sessions: int = 8, clients: int = CLIENTS) -> None:
        """`duration`: seconds of a run, which is not stated; `runs`: of each kind and arm, not stated either."""
        self.duration, self.runs, self.sessions, self.clients = duration, runs, sessions, clients

    def configured(self, given: Mapping[str, Any]) -> Study:
        super().configured(given)
        return ValkeyStorm(
            in_turn.duration_of(given, self.duration), in_turn.runs_of(given, self.runs), self.sessions, self.clients
        )

    def spec(self, engine: str, time: float, seed: int) -> Spec:
        """The storm with each certificate."""
        self.check_engine(engine)
        cells = [self._cell(engine, name) for name in compare.CERTIFICATES]
        return Spec(cells=cells, seed=seed, time=time, sessions=self.sessions, latency=False)

    def _cell(self, engine: str, name: str) -> CellSpec:
        return CellSpec(
            engine,
            "tls",
            workload=f"{self.name}/{procedure.OPERATION}",
            clients=self.clients,
            factors={"certificate": compare.CERTIFICATES[name]},
            storm=f"saturated={published.RATE}",
            variant=name,
        )

    def procedure_cells(self, engine: str) -> list[CellSpec]:
        return [msgspec.structs.replace(self._cell(engine, compare.FIRST), variant="")]

    def procedure_seconds(self, time: float) -> float:  # noqa: ARG002 - its runs decide
        return len(ARMS) * 2 * self.runs * self.duration

    def begin(self, engine: str) -> StudyRecord:
        settings: dict[str, float] = {
            in_turn.SECONDS: self.duration,
            in_turn.RUNS: self.runs,
            "clients": float(self.clients),
            "storm": float(published.RATE),
        }
        return StudyRecord(FORMAT, self.name, engine, "tls", arms=list(ARMS), settings=settings)

    def procedure(self, stage: Stage) -> None:
        procedure.run(stage)

    def compare(self, record: StudyRecord, cells: list[Cell]) -> StudyResult:
        return compare.compare(self, record, cells)

    def judged(self, result: StudyResult) -> Judged:
        return Judged(
            self.headline(result),
            changed=f"{published.RATE} new connections a second",
            ratios={compare.RATE: "operations/s of established connections with TLS, during the storm ÷ before it"},
        )

    def caveat(self, result: StudyResult) -> str:  # noqa: ARG002
        return (
            "Published: a server with I/O threads that does a million operations/s, its certificate not stated; here one thread on a core and an "
            "RSA 2048 certificate. The percentage belongs to the rate of new connections and to that thread's speed."
        )

    def sheets(self, result: StudyResult) -> Iterator[Sheet]:
        yield from compare.falls(result)
        kept = [figure for figure in result.figures if figure.figure == compare.RATE]
        yield from table.sheets(
            msgspec.structs.replace(result, figures=kept), arms="before → during", costs="the storm takes"
        )

    def below_verdict(self, cells: Sequence[Cell]) -> Iterator[Sheet]:
        """What was saturated in each cell."""
        yield from compare.saturated(cells)

    def method(self, result: StudyResult) -> list[str]:  # noqa: ARG002
        return [METHOD]


STUDY = ValkeyStorm()
