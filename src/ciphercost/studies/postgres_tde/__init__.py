"""postgres-tde: pgbench's TPC-B-like load on PostgreSQL with and without encryption at rest (Ahsan et al., 2025)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ciphercost import workloads
from ciphercost.errors import UsageError, nearest
from ciphercost.model import ARMS, FORMAT, Cell, CellSpec, Spec, StudyFigure, StudyRecord, StudyResult
from ciphercost.spec import check
from ciphercost.studies import Stage, Study
from ciphercost.studies.agreement import Judged
from ciphercost.studies.postgres_tde import compare, procedure, published, servers

PAIR_SECONDS = 20.0
"""Of each arm of the procedure, beside its load: making the cluster, proof, `pgbench -i`."""


class PostgresTde(Study):
    """Its sizes are the command line's `--scale`, `--duration` and `--clients`; `--bindir` names a server that has TDE."""

    name = "postgres-tde"
    title = "PostgreSQL with and without encryption at rest: pgbench's TPC-B-like load, 50 clients (Ahsan et al., 2025)"
    published_server = "PGEE 15.8"
    engine = "postgresql"
    engines = ("postgresql",)
    operations = (procedure.OPERATION,)
    sources = published.SOURCES
    options = ("scale", "duration", "clients", "bindir")

    def __init__(
        self,
        scale: int = 50,
        clients: int = 50,
        duration: float = 600.0,
        bindir: str = "",
        mechanisms: tuple[str, ...] = (),
        sessions: int = 8,
    ) -> None:
        """`mechanisms`: what encrypts; none: what the server of `bindir` has, and without one `servers.FILE_SYSTEMS`."""
        self.scale, self.clients, self.duration, self.bindir = scale, clients, duration, bindir
        self.sessions = sessions
        self._mechanisms = mechanisms

    def configured(self, given: Mapping[str, Any]) -> Study:
        super().configured(given)
        for name in ("scale", "clients", "duration"):
            if name in given and given[name] < 1:
                raise UsageError(f"--{name} {given[name]:g}: must be at least 1")
        mine: dict[str, Any] = {
            "scale": self.scale,
            "clients": self.clients,
            "duration": self.duration,
            "bindir": self.bindir,
        }
        return PostgresTde(**(mine | dict(given)), mechanisms=self._mechanisms, sessions=self.sessions)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """What encrypts, a pair of arms each. Raises UsageError, MissingServer."""
        if self._mechanisms:
            return self._mechanisms
        return (servers.mechanism_of(self.bindir),) if self.bindir else servers.FILE_SYSTEMS

    def workload(self, operation: str) -> workloads.Workload:
        if operation not in self.operations:
            raise UsageError(f"study {self.name} has no workload '{operation}': {nearest(operation, self.operations)}")
        own = workloads.get("tpcb")
        return msgspec.structs.replace(
            own,
            name=f"{self.name}/{operation}",
            clients=self.clients,
            parameters=own.parameters | {"scale": self.scale},
        )

    def spec(self, engine: str, time: float, seed: int) -> Spec:
        self.check_engine(engine)
        cells = self.procedure_cells(engine)
        return check(Spec(cells=cells, seed=seed, time=time, sessions=self.sessions, latency=False))

    def procedure_cells(self, engine: str) -> list[CellSpec]:
        return [
            CellSpec(
                engine,
                mechanism,
                workload=f"{self.name}/{procedure.OPERATION}",
                clients=self.clients,
                factors={"scale": str(self.scale)},
                bindir=self.bindir,
            )
            for mechanism in self.mechanisms
        ]

    def procedure_seconds(self, time: float) -> float:  # noqa: ARG002
        return len(self.mechanisms) * len(ARMS) * (self.duration + PAIR_SECONDS)

    def begin(self, engine: str) -> StudyRecord:
        settings: dict[str, float] = {
            "scale": self.scale,
            "clients": self.clients,
            "threads": self.clients,
            "duration_s": self.duration,
            "interval_s": 1.0,
        }
        # In the study's order: TDE first, then without.
        arms: list[str] = list(ARMS[::-1])
        own = self.mechanisms
        return StudyRecord(FORMAT, self.name, engine, own[0], arms=arms, mechanisms=list(own), settings=settings)

    def procedure(self, stage: Stage) -> None:
        procedure.run(stage)

    def judged(self, result: StudyResult) -> Judged:
        """Published is encryption by the server; where a file system does it here, that is another product."""
        figures = self.headline(result)
        return Judged(figures, direction_only=bool(_below(figures)), printed_once=True)

    def caveat(self, result: StudyResult) -> str:
        names = _below(self.headline(result))
        return (
            f"Published: encryption by the server (TDE); here: by {' and '.join(names)}, below the server."
            if names
            else ""
        )

    def compare(self, record: StudyRecord, cells: list[Cell]) -> StudyResult:
        return compare.compare(self, record, cells)


def _below(figures: Sequence[StudyFigure]) -> list[str]:
    """What encrypts here and is no server."""
    own = dict.fromkeys(each.operation.rpartition(", ")[2] for each in figures)
    return [name for name in own if name not in servers.VENDORS]


STUDY = PostgresTde()
