"""volume-encryption: pgbench's reads, transactions and loads on encrypted volumes (Scaleway, December 2024)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS, CellSpec, Spec
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.studies import Stage, Study, in_turn, pgbench, pgbench_runs, published_costs, table, tde_pairs
from ciphercost.studies.agreement import Judged
from ciphercost.studies.sheet import Sheet
from ciphercost.studies.volume_encryption import compare, procedure, published

MOST_SCALE = 2000
PAIR_SECONDS = 30.0
"""Time for each arm besides its runs: to create and prove the cluster, and for `pgbench -i`."""
METHOD = (
    "Our method has two servers for each way to encrypt, which differ in the directory below them alone, and alternates between them while the "
    "other one is stopped. Reads and transactions are pgbench's own; a load replaces 1,000 rows in one transaction. Which resource was "
    "saturated stands in a table of its own: where the disk is, encryption's CPU time costs no throughput."
)


class VolumeEncryption(Study):
    """Its options are those of the command line; see `replicate --help`."""

    name = "volume-encryption"
    operations = tuple(compare.WORKLOADS)
    sources = published.SOURCES
    seconds = 40.0

    def __init__(
        self,
        scale: int = 10,
        duration: float = 20.0,
        runs: int = 2,
        mechanisms: tuple[str, ...] = tde_pairs.FILE_SYSTEMS,
        sessions: int = 8,
    ) -> None:
        """`scale`: the smaller of the published ones; `duration`, `runs`: of pgbench, neither stated."""
        self.scale, self.duration, self.runs = scale, duration, runs
        self.mechanisms, self.sessions = mechanisms, sessions

    def configured(self, given: Mapping[str, Any]) -> Study:
        super().configured(given)
        return VolumeEncryption(
            pgbench_runs.scale_of(given, self.scale, MOST_SCALE),
            pgbench_runs.duration_of(given, self.duration),
            in_turn.runs_of(given, self.runs),
            tde_pairs.chosen(given["mechanism"]) if "mechanism" in given else self.mechanisms,
            self.sessions,
        )

    def spec(self, engine: str, time: float, seed: int) -> Spec:
        """Each workload on each way to encrypt."""
        self.check_engine(engine)
        cells = [
            self._cell(engine, mechanism, workload) for mechanism in self.mechanisms for workload in compare.WORKLOADS
        ]
        return Spec(cells=cells, seed=seed, time=time, sessions=self.sessions, latency=False)

    def _cell(self, engine: str, mechanism: str, workload: str) -> CellSpec:
        name = compare.WORKLOADS[workload]
        return CellSpec(
            engine,
            mechanism,
            workload=name,
            clients=published.CLIENTS,
            rows=0 if workload == published.LOAD else self.scale * pgbench.ROWS_A_SCALE,
            factors=tde_pairs.factors_of(mechanism, ""),
        )

    def procedure_cells(self, engine: str) -> list[CellSpec]:
        return [self._cell(engine, mechanism, published.OLTP) for mechanism in self.mechanisms]

    def procedure_seconds(self, time: float) -> float:  # noqa: ARG002 - its runs decide
        of_pgbench = len(procedure.MODES) * self.runs * self.duration
        return len(self.mechanisms) * len(ARMS) * (of_pgbench + PAIR_SECONDS)

    def begin(self, engine: str) -> StudyRecord:
        return StudyRecord(
            FORMAT,
            self.name,
            engine,
            self.mechanisms[0],
            arms=list(ARMS),
            mechanisms=list(self.mechanisms),
            settings={
                "scale": float(self.scale),
                "clients": float(published.CLIENTS),
                in_turn.SECONDS: self.duration,
                in_turn.RUNS: float(self.runs),
            },
        )

    def procedure(self, stage: Stage) -> None:
        procedure.run(stage)

    def compare(self, record: StudyRecord, cells: list[Cell]) -> StudyResult:
        return compare.compare(self, record, cells)

    def headline(self, result: StudyResult) -> list[StudyFigure]:
        """Every workload on every way to encrypt."""
        return published_costs(result)

    def judged(self, result: StudyResult) -> Judged:
        return Judged(self.headline(result), direction_only=True, printed_once=True, ratios=compare.COMPARED)

    def caveat(self, result: StudyResult) -> str:  # noqa: ARG002
        return (
            "Published: LUKS below a managed server, as rounded per cent; here file systems that encrypt stand in for it. No interval confirms "
            'that there is "no impact": the figures below say how large one can be.'
        )

    def sheets(self, result: StudyResult) -> Iterator[Sheet]:
        yield from table.sheets(result)
        yield compare.beside(self)

    def below_verdict(self, cells: Sequence[Cell]) -> Iterator[Sheet]:
        """What was saturated in each cell."""
        yield from compare.saturated(cells)

    def method(self, result: StudyResult) -> list[str]:  # noqa: ARG002
        return [METHOD]


STUDY = VolumeEncryption()
