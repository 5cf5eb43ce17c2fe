"""mysql-openssl: point-select and reconnect over TLS with OpenSSL 3.0, 3.5 and 3.6 (posts on MySQL and on MariaDB, 2026)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.result import Cell
from ciphercost.model.spec import Arm, CellSpec, Spec
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.studies import Stage, Study, figures, in_turn, table
from ciphercost.studies.agreement import Judged
from ciphercost.studies.mysql_openssl import compare, published
from ciphercost.studies.mysql_openssl.compare import RECONNECT, SELECT, VERSIONS
from ciphercost.studies.sheet import Sheet

CLIENTS = 16
GROUPS = {"mariadb": "x25519", "mysql": "p256"}
"""The key exchange of all versions: MySQL's servers offer no X25519."""
NEWER_GROUP = "x25519mlkem768"
"""What MariaDB with OpenSSL 3.5 and a client of the same age agree on, if nobody chooses."""
METHOD = (
    "Our method changes the OpenSSL below one and the same server program, in both arms, and alternates all versions in the same sessions. A "
    "row of versions is the cost of TLS with the newer one ÷ that with 3.0. So what the libraries cost without TLS cancels out, and so does "
    "whatever the machine does. The client keeps its own OpenSSL."
)


class MysqlOpenssl(Study):
    """Its sizes are arguments, so that a test can run it small."""

    name = "mysql-openssl"
    operations = (SELECT, RECONNECT)
    sources = published.SOURCES
    seconds = 40.0
    arms: tuple[Arm, ...] = ("encrypted",)
    """The published procedure's: no run that we saw was without TLS."""

    def __init__(
        self, duration: float = 10.0, runs: int = 3, sessions: int = 8, rows: int = 0, clients: int = CLIENTS
    ) -> None:
        """`duration`: seconds of a published run; `runs`: of each version; `rows`: of the table, 0: the workload's default."""
        self.duration, self.runs, self.sessions, self.table_rows, self.clients = duration, runs, sessions, rows, clients

    def configured(self, given: Mapping[str, Any]) -> Study:
        super().configured(given)
        duration, runs = in_turn.duration_of(given, self.duration), in_turn.runs_of(given, self.runs)
        return MysqlOpenssl(duration, runs, self.sessions, self.table_rows, self.clients)

    def spec(self, engine: str, time: float, seed: int) -> Spec:
        """For each operation one experiment of all versions. On MariaDB reconnecting is also measured with the newer key exchange."""
        self.check_engine(engine)
        cells = [self._cell(engine, name, version, name) for name in self.operations for version in VERSIONS]
        if engine == "mariadb":
            cells.append(self._cell(engine, RECONNECT, "3.5", RECONNECT, NEWER_GROUP))
        return Spec(cells=cells, seed=seed, time=time, sessions=self.sessions, latency=False)

    def _cell(self, engine: str, operation: str, version: str, group: str, exchange: str = "") -> CellSpec:
        return CellSpec(
            engine,
            "tls",
            workload=SELECT,
            factors={"library": f"openssl-{version}", "group": exchange or GROUPS[engine]},
            clients=self.clients,
            rows=self.table_rows,
            per_request=operation == RECONNECT,
            group=group,
            variant=compare.variant(version, exchange),
        )

    def procedure_cells(self, engine: str) -> list[CellSpec]:
        cells = [self._cell(engine, SELECT, version, "") for version in VERSIONS]
        # Whether the client checked a certificate is not said; sysbench doesn't.
        return [msgspec.structs.replace(cell, factors={**cell.factors, "verify": "require"}) for cell in cells]

    def procedure_seconds(self, time: float) -> float:  # noqa: ARG002 - its runs decide
        return len(VERSIONS) * len(self.operations) * self.runs * self.duration

    def begin(self, engine: str) -> StudyRecord:
        return StudyRecord(
            FORMAT,
            self.name,
            engine,
            "tls",
            arms=list(self.arms),
            mechanisms=["tls"] * len(VERSIONS),
            servers=[compare.variant(version) for version in VERSIONS],
            settings={in_turn.SECONDS: self.duration, in_turn.RUNS: self.runs},
        )

    def procedure(self, stage: Stage) -> None:
        in_turn.run(stage, self.operations, per_request=(RECONNECT,))

    def compare(self, record: StudyRecord, cells: list[Cell]) -> StudyResult:
        compared = compare.compare(self, record, cells)
        return msgspec.structs.replace(compared, published_server=published.SERVERS[record.engine])

    def headline(self, result: StudyResult) -> list[StudyFigure]:
        """The newer versions compared with 3.0, where something is published."""
        return [figure for figure in figures.between(result.figures) if figure.published is not None]

    def judged(self, result: StudyResult) -> Judged:
        return Judged(
            figures.between(result.figures), changed="the version of OpenSSL", ratios={compare.RATE: COMPARED}
        )

    def caveat(self, result: StudyResult) -> str:
        if not any(figure.bound == "either" for figure in self.headline(result)):
            return ""
        return "The limits are inferred: each version is published as at most so far below the same best library."

    def sheets(self, result: StudyResult) -> Iterator[Sheet]:
        levels = msgspec.structs.replace(result, figures=figures.own(result.figures))
        yield table.by_variant("Every version: queries a second", levels, compare.RATE, "1/s", self.arms)
        yield table.by_variant("Every version: the server's CPU time of a query", levels, figures.CPU, "µs", self.arms)

    def method(self, result: StudyResult) -> list[str]:  # noqa: ARG002
        return [METHOD]


COMPARED = "queries a second over TLS as published, the cost of TLS here, with the newer OpenSSL ÷ with 3.0"
"""What a row of two versions compares."""


STUDY = MysqlOpenssl()
