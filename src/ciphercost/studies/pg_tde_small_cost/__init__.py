"""pg-tde-small-cost: can the 1 to 2 % that encryption at rest costs small transactions be measured, and how long does it take? (Percona, 2026)."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ciphercost.host import aes
from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS, CellSpec, Spec
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.studies import Stage, Study, in_turn, pgbench, pgbench_runs, published_costs, table, tde_pairs
from ciphercost.studies.agreement import Judged
from ciphercost.studies.pg_tde_small_cost import compare, precision, procedure, published, report
from ciphercost.studies.sheet import Sheet

MOST_SCALE = 1000
PAIR_SECONDS = 40.0
"""Time for each arm besides its runs of pgbench: to create and prove the cluster, for `pgbench -i`, and for the statements."""
CLIENTS = 4


class PgTdeSmallCost(Study):
    """Its options are those of the command line; see `replicate --help`."""

    name = "pg-tde-small-cost"
    operations = published.MEASURED
    sources = published.SOURCES

    def __init__(
        self,
        scale: int = 10,
        duration: float = 20.0,
        runs: int = 3,
        bindir: tuple[str, ...] = (),
        mechanisms: tuple[str, ...] = (),
        sessions: int = 8,
        statement_rows: int = 0,
    ) -> None:
        """`scale`: of pgbench; `duration`, `runs`: of its runs, not published; `bindir`, `mechanisms`: as in `tde_pairs.pairs`.

        `statement_rows`: of the table that our method's statements rewrite; 0: their workload's.
        """
        self.scale, self.duration, self.runs, self.bindir = scale, duration, runs, bindir
        self.sessions, self.statement_rows, self._mechanisms = sessions, statement_rows, mechanisms

    def configured(self, given: Mapping[str, Any]) -> Study:
        super().configured(given)
        return PgTdeSmallCost(
            pgbench_runs.scale_of(given, self.scale, MOST_SCALE),
            pgbench_runs.duration_of(given, self.duration),
            in_turn.runs_of(given, self.runs),
            tde_pairs.bindirs(given["bindir"]) if "bindir" in given else self.bindir,
            tde_pairs.chosen(given["mechanism"]) if "mechanism" in given else self._mechanisms,
            self.sessions,
            self.statement_rows,
        )

    @functools.cached_property
    def pairs(self) -> list[tde_pairs.Pair]:
        """The pairs of arms. Raises UsageError, MissingServer."""
        return tde_pairs.pairs(self.bindir, self._mechanisms)

    def spec(self, engine: str, time: float, seed: int) -> Spec:
        """Each operation on each pair."""
        self.check_engine(engine)
        cells = [self._cell(engine, pair, operation) for pair in self.pairs for operation in self.operations]
        return Spec(cells=cells, seed=seed, time=time, sessions=self.sessions, latency=False)

    def _cell(self, engine: str, pair: tde_pairs.Pair, operation: str) -> CellSpec:
        small = operation == published.OLTP
        return CellSpec(
            engine,
            pair.mechanism,
            workload=f"{self.name}/{operation}",
            clients=CLIENTS if small else 1,
            rows=self.scale * pgbench.ROWS_A_SCALE if small else self.statement_rows,
            factors=dict(pair.factors),
            bindir=pair.bindir,
            variant=pair.server,
        )

    def procedure_cells(self, engine: str) -> list[CellSpec]:
        return [self._cell(engine, pair, published.OLTP) for pair in self.pairs]

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
                "clients": float(CLIENTS),
                in_turn.SECONDS: self.duration,
                in_turn.RUNS: float(self.runs),
            },
        )

    def procedure(self, stage: Stage) -> None:
        procedure.run(stage)

    def compare(self, record: StudyRecord, cells: list[Cell]) -> StudyResult:
        return compare.compare(self, record, cells)

    def headline(self, result: StudyResult) -> list[StudyFigure]:
        """Every operation on every pair."""
        return [cost for cost in published_costs(result) if not cost.operation.startswith("published alone")]

    def judged(self, result: StudyResult) -> Judged:
        figures = self.headline(result)
        return Judged(
            figures,
            printed_once=True,
            ratios={figure.figure: f"{figure.figure}, encrypted ÷ plain" for figure in figures},
        )

    def caveat(self, result: StudyResult) -> str:
        below = _below(result)
        if not below:
            return ""
        return (
            f"Published: pg_tde, which encrypts inside the server; here {' and '.join(below)}, below the server, so a limit that holds or fails here does "
            f"so for {'it' if len(below) == 1 else 'them'}, not for pg_tde."
        )

    def sheets(self, result: StudyResult) -> Iterator[Sheet]:
        yield from report.resolutions(result)
        costs = [figure for figure in result.figures if figure.figure not in precision.OF_THE_DESIGN]
        yield from table.sheets(msgspec.structs.replace(result, figures=[f for f in costs if not _alone(f)]))
        yield Sheet(
            "Published alone",
            ("", "as published"),
            [(figure.operation.partition(": ")[2], table.cited_claim(figure)) for figure in costs if _alone(figure)],
        )

    def judged_on(self, result: StudyResult, cells: Sequence[Cell]) -> list[str]:
        """What stands in for pg_tde, and what had no AES instructions."""
        below = _below(result)
        slow = dict.fromkeys(
            cell.mechanism for cell in cells for warning in cell.warnings if warning.text.endswith(aes.UNUSUAL)
        )
        return [
            f"Judged for {' and '.join(below)}, not for pg_tde." if below else "",
            *(f"{name} encrypted without AES instructions, {aes.UNUSUAL}." for name in slow),
        ]

    def method(self, result: StudyResult) -> list[str]:  # noqa: ARG002
        return [report.METHOD]


def _alone(figure: StudyFigure) -> bool:
    return figure.operation.startswith("published alone")


def _below(result: StudyResult) -> list[str]:
    """The mechanisms here that aren't part of the server."""
    return tde_pairs.stand_ins_of(cost for cost in published_costs(result) if not _alone(cost))


STUDY = PgTdeSmallCost()
