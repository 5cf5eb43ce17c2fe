"""mysql-tls: four files of statements over one connection, in clear and then over TLS, as mysqlslap ran them (Haikal et al., 2023)."""

from __future__ import annotations

from ciphercost.model import FORMAT, Cell, CellSpec, Spec, StudyRecord, StudyResult
from ciphercost.spec import check
from ciphercost.studies import Stage, Study, transit
from ciphercost.studies.mysql_tls import compare, procedure, published


class MysqlTls(Study):
    """Its sizes are arguments so that a test can have it small."""

    name = "mysql-tls"
    title = "MySQL with TLS required or disabled: four files of statements, mysqlslap and sar (Haikal et al., 2023)"
    published_server = "MySQL 8.0.33"
    engine = "mysql"
    engines = ("mysql", "mariadb", "postgresql", "firebird")
    operations = ("insert", "select", "update", "delete")
    sources = published.SOURCES

    def __init__(
        self,
        rows: int = 10_000,
        iterations: int = 5,
        queries: int = 10_000,
        least_queries: int = 100,
        interval: float = 5.0,
        sessions: int = 8,
    ) -> None:
        self.table_rows = rows
        self.sessions = sessions
        self.settings: dict[str, float] = {
            "rows": rows,
            "iterations": iterations,
            "queries": queries,
            "least_queries": least_queries,
            "interval_s": interval,
        }

    def spec(self, engine: str, time: float, seed: int) -> Spec:
        self.check_engine(engine)
        cells = [
            CellSpec(engine, transit(engine), workload=f"{self.name}/{name}", clients=1, rows=self.table_rows)
            for name in self.operations
        ]
        return check(Spec(cells=cells, seed=seed, time=time, sessions=self.sessions, latency=False))

    def procedure_cells(self, engine: str) -> list[CellSpec]:
        mechanism = transit(engine)
        # mysqlslap's REQUIRED encrypts and checks nothing.
        factors = {"verify": "require"} if mechanism == "tls" else {}
        return [
            CellSpec(
                engine, mechanism, workload=f"{self.name}/select", clients=1, rows=self.table_rows, factors=factors
            )
        ]

    def procedure_seconds(self, time: float) -> float:
        return len(self.operations) * time * 2 / 3

    def begin(self, engine: str) -> StudyRecord:
        arms = ["plain", "encrypted"]
        return StudyRecord(FORMAT, self.name, engine, transit(engine), arms=arms, settings=self.settings)

    def procedure(self, stage: Stage) -> None:
        procedure.run(stage, self.operations)

    def compare(self, record: StudyRecord, cells: list[Cell]) -> StudyResult:
        return compare.compare(self, record, cells)


STUDY = MysqlTls()
