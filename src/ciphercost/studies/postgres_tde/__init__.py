"""postgres-tde: pgbench's TPC-B-like load on PostgreSQL with and without encryption at rest (Ahsan et al., 2025)."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from ciphercost.measure import fio
from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS, CellSpec, Spec
from ciphercost.model.study import StudyRecord, StudyResult
from ciphercost.studies import Stage, Study, tde_pairs
from ciphercost.studies.agreement import Judged
from ciphercost.studies.postgres_tde import compare, findings, grid, procedure, published, report
from ciphercost.studies.sheet import Sheet

PAIR_SECONDS, LOAD_SECONDS = 20.0, 5.0
"""Time per arm of the procedure besides its load: to create and prove the cluster, and for `pgbench -i` of each size."""
MOST_SCALE = grid.MOST_ROWS // grid.ROWS_A_SCALE


class PostgresTde(Study):
    """Its options are those of the command line; see `replicate --help`."""

    name = "postgres-tde"
    operations = (grid.TPCB, grid.SELECT)
    sources = published.SOURCES

    def __init__(
        self,
        sizes: tuple[int, ...] = (50 * grid.ROWS_A_SCALE,),
        clients: tuple[int, ...] = grid.STUDYS_CLIENTS,
        duration: float = 600.0,
        bindir: tuple[str, ...] = (),
        mechanisms: tuple[str, ...] = (),
        *,
        select_only: bool = False,
        sessions: int = 8,
    ) -> None:
        """`sizes`: rows of pgbench_accounts. `bindir`: servers, each `DIR` or `NAME=DIR`; empty: any server found.

        `mechanisms`: what encrypts if the server has no TDE; empty: `tde_pairs.FILE_SYSTEMS`.
        """
        self.sizes, self.clients, self.duration, self.bindir = sizes, clients, duration, bindir
        self.select_only, self.sessions = select_only, sessions
        self._mechanisms = mechanisms

    def configured(self, given: Mapping[str, Any]) -> Study:
        super().configured(given)
        if "scale" in given and "rows" in given:
            raise UsageError("--scale and --rows both set the size of the data; leave one of them out")
        if given.get("duration", 1) < 1:
            raise UsageError(f"--duration {given['duration']:g}: must be at least 1 second")
        sizes = self.sizes
        if "scale" in given:
            sizes = tuple(scale * grid.ROWS_A_SCALE for scale in grid.numbers(given["scale"], "--scale", MOST_SCALE))
        elif "rows" in given:
            sizes = grid.numbers(given["rows"], "--rows")
        return PostgresTde(
            sizes,
            grid.numbers(given["clients"], "--clients") if "clients" in given else self.clients,
            given.get("duration", self.duration),
            tde_pairs.bindirs(given["bindir"]) if "bindir" in given else self.bindir,
            tde_pairs.chosen(given["mechanism"]) if "mechanism" in given else self._mechanisms,
            select_only=bool(given.get("select_only", self.select_only)),
            sessions=self.sessions,
        )

    @property
    def points(self) -> list[grid.Point]:
        return grid.points(self.sizes, self.clients, self.operations if self.select_only else (grid.TPCB,))

    @functools.cached_property
    def pairs(self) -> list[tde_pairs.Pair]:
        """The pairs of arms. Raises UsageError, MissingServer."""
        return tde_pairs.pairs(self.bindir, self._mechanisms)

    def spec(self, engine: str, time: float, seed: int) -> Spec:
        """One cell per pair and point. Cells that differ only in clients share their servers, and their blocks alternate."""
        self.check_engine(engine)
        cells = [self._cell(engine, pair, point) for pair in self.pairs for point in self.points]
        return Spec(cells=cells, seed=seed, time=time, sessions=self.sessions, latency=False)

    def _cell(self, engine: str, pair: tde_pairs.Pair, point: grid.Point) -> CellSpec:
        several = len(self.clients) > 1
        group = f"{pair.name}, {point.title}, {point.rows:,} rows" if several else ""
        variant = [pair.server, f"rows={point.rows}" * (len(self.sizes) > 1), f"clients={point.clients}" * several]
        return CellSpec(
            engine,
            pair.mechanism,
            workload=f"{self.name}/{point.operation}",
            clients=point.clients,
            rows=point.rows,
            factors=dict(pair.factors),
            bindir=pair.bindir,
            group=group,
            variant=" ".join(filter(None, variant)),
            fio_bytes=grid.fio_bytes(point.rows) if len(self.sizes) > 1 else 0,
        )

    def procedure_cells(self, engine: str) -> list[CellSpec]:
        """One cell per pair: the procedure creates the tables of every point itself, on one pair of servers."""
        return [
            CellSpec(
                engine,
                pair.mechanism,
                workload=f"{self.name}/{grid.TPCB}",
                clients=max(self.clients),
                rows=max(self.sizes),
                factors=dict(pair.factors),
                bindir=pair.bindir,
                variant=pair.server,
            )
            for pair in self.pairs
        ]

    def procedure_seconds(self, time: float) -> float:  # noqa: ARG002
        runs = len(self.points) * self.duration + len(self.sizes) * LOAD_SECONDS
        return len(self.pairs) * len(ARMS) * (runs + PAIR_SECONDS)

    def begin(self, engine: str) -> StudyRecord:
        main = grid.studys(self.points, max(grid.STUDYS_CLIENTS))
        settings: dict[str, float] = {**main.load, "duration_s": self.duration, "interval_s": 1.0}
        return StudyRecord(
            FORMAT,
            self.name,
            engine,
            self.pairs[0].mechanism,
            # The study's order: first with TDE, then without.
            arms=list(ARMS[::-1]),
            mechanisms=[pair.mechanism for pair in self.pairs],
            servers=[pair.server for pair in self.pairs] if any(pair.server for pair in self.pairs) else [],
            settings=settings,
            tools={findings.FIO: "installed" if fio.find() else "not installed"},
            grid=[point.load for point in self.points],
        )

    def procedure(self, stage: Stage) -> None:
        procedure.run(stage)

    def sheets(self, result: StudyResult) -> Iterator[Sheet]:
        return report.sheets(result)

    def judged(self, result: StudyResult) -> Judged:
        """The study's server encrypts; a file system that encrypts here is a different product."""
        figures = self.headline(result)
        return Judged(figures, direction_only=bool(tde_pairs.stand_ins_of(figures)), printed_once=True)

    def caveat(self, result: StudyResult) -> str:
        names = tde_pairs.stand_ins_of(self.headline(result))
        return (
            f"Published: encryption by the server (TDE); here: by {' and '.join(names)}, below the server."
            if names
            else ""
        )

    def compare(self, record: StudyRecord, cells: list[Cell]) -> StudyResult:
        return compare.compare(self, record, cells)


STUDY = PostgresTde()
