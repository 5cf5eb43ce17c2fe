"""odyssey-large-value: is one large value over TLS through Odyssey still 29 times as slow as through PgBouncer? (an issue, 2023)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ciphercost.load import workloads
from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.studies import Stage, Study, figures, in_turn, table
from ciphercost.studies.agreement import Judged
from ciphercost.studies.odyssey_large_value import compare, procedure, published, ways
from ciphercost.studies.sheet import Sheet

LEAST, MOST = 4_000, 250_000_000
METHOD = (
    "Our method reads the value over one kept connection through each pooler, unencrypted and with TLS up to the pooler, in turn; both poolers and "
    "two sizes alternate in the same sessions. A row of two poolers is what TLS costs with Odyssey ÷ what it costs with PgBouncer, so what "
    "the poolers cost without TLS cancels out. The pooler's CPU time is counted apart from the server's. Each pooler has one thread for "
    "its clients and pools by session."
)


class OdysseyLargeValue(Study):
    """Its sizes are arguments, so that a test can run it small."""

    name = "odyssey-large-value"
    operations = (ways.WORKLOAD,)
    sources = published.SOURCES
    seconds = 20.0

    def __init__(self, size: int = published.BYTES, runs: int = 3, sessions: int = 8) -> None:
        """`size`: bytes of the large value; `runs`: starts of psql through each pooler; published one."""
        self.size, self.runs, self.sessions = size, runs, sessions

    def configured(self, given: Mapping[str, Any]) -> Study:
        super().configured(given)
        size = workloads.size(given["size"], "--size") if "size" in given else self.size
        if not LEAST <= size <= MOST:
            raise UsageError(f"--size {given['size']}: a value must have from 4KB to 250MB")
        return OdysseyLargeValue(size, in_turn.runs_of(given, self.runs), self.sessions)

    def spec(self, engine: str, time: float, seed: int) -> Spec:
        """For each size one experiment with both poolers."""
        self.check_engine(engine)
        cells = [self._cell(engine, pooler, size) for size in ways.sizes(self.size) for pooler in ways.POOLERS]
        return Spec(cells=cells, seed=seed, time=time, sessions=self.sessions, latency=False)

    def _cell(self, engine: str, pooler: str, size: int) -> CellSpec:
        return CellSpec(
            engine,
            "tls",
            workload=ways.WORKLOAD,
            factors={"hop": pooler, "size": str(size)},
            clients=1,
            group=ways.label(size),
            variant=ways.POOLERS[pooler],
        )

    def procedure_cells(self, engine: str) -> list[CellSpec]:
        cells = [self._cell(engine, pooler, self.size) for pooler in ways.POOLERS]
        return [msgspec.structs.replace(cell, group="") for cell in cells]

    def procedure_seconds(self, time: float) -> float:  # noqa: ARG002 - its runs decide
        return len(ways.POOLERS) * self.runs * (0.1 + self.size * procedure.SECONDS_A_BYTE)

    def begin(self, engine: str) -> StudyRecord:
        return StudyRecord(
            FORMAT,
            self.name,
            engine,
            "tls",
            arms=[procedure.ARM],
            mechanisms=["tls"] * len(ways.POOLERS),
            servers=list(ways.POOLERS.values()),
            settings={procedure.SIZE: float(self.size), in_turn.RUNS: float(self.runs)},
        )

    def procedure(self, stage: Stage) -> None:
        procedure.run(stage)

    def compare(self, record: StudyRecord, cells: list[Cell]) -> StudyResult:
        return compare.compare(self, record, cells)

    def headline(self, result: StudyResult) -> list[StudyFigure]:
        """Odyssey ÷ PgBouncer, where something is published."""
        return [figure for figure in figures.between(result.figures) if figure.published is not None]

    def judged(self, result: StudyResult) -> Judged:
        return Judged(
            figures.between(result.figures),
            changed="Odyssey instead of PgBouncer",
            ratios={compare.TIME: compare.COMPARED},
        )

    def caveat(self, result: StudyResult) -> str:
        if not self.headline(result):
            return "Published for a value of 40 MB alone, so nothing stands beside other sizes."
        return "The published quotient is of two times over TLS, with unknown versions; ours is of what TLS costs with each."

    def sheets(self, result: StudyResult) -> Iterator[Sheet]:
        yield compare.answer(self, result)
        own = msgspec.structs.replace(result, figures=figures.own(result.figures))
        yield from table.sheets(own, arms="TLS off → on", costs="TLS costs")

    def method(self, result: StudyResult) -> list[str]:  # noqa: ARG002
        return [METHOD]


STUDY = OdysseyLargeValue()
