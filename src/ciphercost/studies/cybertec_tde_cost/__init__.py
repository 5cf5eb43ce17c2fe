"""cybertec-tde-cost: can averages of a few one-minute runs of pgbench show that encryption costs half a per cent? (Cybertec, 2025)."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS, CellSpec, Spec
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.studies import Stage, Study, in_turn, pgbench, pgbench_runs, table, tde_pairs
from ciphercost.studies.agreement import Judged
from ciphercost.studies.cybertec_tde_cost import compare, pairs_of_arms, procedure, published, report
from ciphercost.studies.sheet import Sheet

MOST_SCALE = 1000
PAIR_SECONDS = 30.0
"""Time for each arm besides its runs: to create and prove the cluster, and for `pgbench -i`."""
SETTINGS = {"shared_buffers": published.BUFFERS}


class CybertecTdeCost(Study):
    """Its options are those of the command line; see `replicate --help`."""

    name = "cybertec-tde-cost"
    operations = (procedure.OPERATION,)
    sources = published.SOURCES

    def __init__(
        self,
        scale: int = published.SCALE,
        duration: float = published.SECONDS,
        runs: int = 3,
        bindir: tuple[str, ...] = (),
        mechanisms: tuple[str, ...] = (),
        sessions: int = 8,
    ) -> None:
        """`runs`: of pgbench on each arm; the publication says "a few". `bindir`, `mechanisms`: as in `tde_pairs.pairs`."""
        self.scale, self.duration, self.runs, self.bindir = scale, duration, runs, bindir
        self.sessions, self._mechanisms = sessions, mechanisms

    def configured(self, given: Mapping[str, Any]) -> Study:
        super().configured(given)
        return CybertecTdeCost(
            pgbench_runs.scale_of(given, self.scale, MOST_SCALE),
            pgbench_runs.duration_of(given, self.duration),
            in_turn.runs_of(given, self.runs),
            tde_pairs.bindirs(given["bindir"]) if "bindir" in given else self.bindir,
            tde_pairs.chosen(given["mechanism"]) if "mechanism" in given else self._mechanisms,
            self.sessions,
        )

    @functools.cached_property
    def pairs(self) -> list[tde_pairs.Pair]:
        """The pairs of arms. Raises UsageError, MissingServer."""
        return pairs_of_arms.pairs(self.bindir, self._mechanisms)

    def spec(self, engine: str, time: float, seed: int) -> Spec:
        self.check_engine(engine)
        return Spec(cells=self._cells(engine), seed=seed, time=time, sessions=self.sessions, latency=False)

    def _cells(self, engine: str) -> list[CellSpec]:
        """One cell for each pair."""
        return [
            CellSpec(
                engine,
                pair.mechanism,
                workload=f"{self.name}/{procedure.OPERATION}",
                clients=published.CLIENTS,
                rows=self.scale * pgbench.ROWS_A_SCALE,
                factors=dict(pair.factors),
                bindir=pair.bindir,
                settings=dict(SETTINGS),
                variant=pair.server,
            )
            for pair in self.pairs
        ]

    def procedure_cells(self, engine: str) -> list[CellSpec]:
        return self._cells(engine)

    def procedure_seconds(self, time: float) -> float:  # noqa: ARG002 - its runs decide
        return len(self.pairs) * len(ARMS) * (self.runs * self.duration + PAIR_SECONDS)

    def begin(self, engine: str) -> StudyRecord:
        return StudyRecord(
            FORMAT,
            self.name,
            engine,
            self.pairs[0].mechanism,
            arms=list(ARMS),
            mechanisms=[pair.mechanism for pair in self.pairs],
            servers=[pair.server for pair in self.pairs],
            settings={
                "scale": float(self.scale),
                "clients": float(published.CLIENTS),
                "duration_s": self.duration,
                "runs": float(self.runs),
            },
        )

    def procedure(self, stage: Stage) -> None:
        procedure.run(stage)

    def compare(self, record: StudyRecord, cells: list[Cell]) -> StudyResult:
        return compare.compare(self, record, cells)

    def headline(self, result: StudyResult) -> list[StudyFigure]:
        """The costs of the pairs that ran here."""
        return [figure for figure in super().headline(result) if figure.figure == compare.TPS]

    def judged(self, result: StudyResult) -> Judged:
        figures = self.headline(result)
        return Judged(figures, direction_only=bool(tde_pairs.stand_ins_of(figures)))

    def caveat(self, result: StudyResult) -> str:
        names = tde_pairs.stand_ins_of(self.headline(result))
        if not names:
            return ""
        return (
            f"Published: encryption by the server (TDE); here {tde_pairs.standing_in(names)}, below the server. "
            f"{'It decrypts' if len(names) == 1 else 'They decrypt'} a page when it comes from the disk, TDE each time it comes into the server's buffers."
        )

    def sheets(self, result: StudyResult) -> Iterator[Sheet]:
        yield from report.resolutions(result)
        cost_figures = [figure for figure in result.figures if figure.figure not in compare.OF_THE_DESIGN]
        yield from table.sheets(msgspec.structs.replace(result, figures=cost_figures))

    def method(self, result: StudyResult) -> list[str]:  # noqa: ARG002
        return [report.METHOD]


STUDY = CybertecTdeCost()
