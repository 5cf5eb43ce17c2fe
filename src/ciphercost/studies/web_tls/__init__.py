"""web-tls: eight files of a web server, each fetched once over HTTP and once over HTTPS, with four counters (Alnatheer, 2014)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ciphercost.host.link import check_rights
from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS, CellSpec, Spec
from ciphercost.model.study import StudyRecord, StudyResult
from ciphercost.plan.matrix import with_controls
from ciphercost.studies import Stage, Study
from ciphercost.studies.agreement import Judged
from ciphercost.studies.sheet import Report, Sheet
from ciphercost.studies.web_tls import compare, counters, measured, procedure, published, report

ALL = "files"
"""The workload with all files."""
SPEED_UP = 5.0
FETCH_SECONDS = 0.5
"""Time per window besides the window: connecting, and dropping the file from the page cache."""
CONTROLLED = (3, 30, 250)
"""Megabytes of the files that are also fetched over HTTP without sendfile."""
MANY_CLIENTS = (1, 16, 64)
MANY_BYTES = (100_000, 3 * published.MEGABYTE)
LEAST_WINDOW, MOST_WINDOW = 0.5, 3600.0


class WebTls(Study):
    """Its one size is `--duration`, the length of each window. Link speed and sampling scale with it."""

    name = "web-tls"
    operations = tuple(procedure.name_of(size) for size in published.SIZES)
    seconds = 14.0

    def __init__(
        self,
        duration: float = published.WINDOW / SPEED_UP,
        *,
        megabyte: int = published.MEGABYTE,
        sizes: tuple[int, ...] = published.SIZES,
        clients: tuple[int, ...] = MANY_CLIENTS,
        sessions: int = 4,
    ) -> None:
        """`megabyte`: its bytes, so that a test's files are small; `sizes`: which files; `clients`: those of the second table."""
        self.duration, self.megabyte, self.sizes, self.clients = duration, megabyte, sizes, clients
        self.sessions = sessions

    @property
    def sources(self) -> Mapping[str, str]:  # type: ignore[override]
        return published.sources(self)

    @property
    def speed_up(self) -> float:
        """How many times faster than published the whole procedure runs."""
        return published.WINDOW / self.duration

    def configured(self, given: Mapping[str, Any]) -> Study:
        super().configured(given)
        duration = given.get("duration", self.duration)
        if not LEAST_WINDOW <= duration <= MOST_WINDOW:
            raise UsageError(
                f"--duration {duration:g}s: the window of a fetch must last {LEAST_WINDOW:g} s to {MOST_WINDOW:g} s; "
                f"the study's was {published.WINDOW:g} s, as inferred from its bytes a second"
            )
        return WebTls(duration, megabyte=self.megabyte, sizes=self.sizes, clients=self.clients, sessions=self.sessions)

    def spec(self, engine: str, time: float, seed: int) -> Spec:
        """Two experiments: each file with one client, some also without sendfile; then two files with one and with many clients."""
        self.check_engine(engine)

        def cell(size: int, clients: int, group: str, variant: str) -> CellSpec:
            of = {"size": str(size)}
            return CellSpec(engine, "tls", workload="file", factors=of, clients=clients, group=group, variant=variant)

        one_client = [
            cell(size * self.megabyte, 1, measured.ONE_CLIENT, procedure.name_of(size)) for size in self.sizes
        ]
        beside = {str(size * self.megabyte) for size in CONTROLLED}
        one = [
            cell_spec
            for cell_spec in with_controls(one_client)
            if cell_spec.mechanism == "tls" or cell_spec.factors["size"] in beside
        ]
        scale = self.megabyte / published.MEGABYTE
        many = [
            cell(
                max(1, round(size * scale)),
                clients,
                measured.MANY,
                f"{published.bytes_in_words(size)}, {clients} client{'s' * (clients != 1)}",
            )
            for size in MANY_BYTES
            for clients in self.clients
        ]
        return Spec(cells=[*one, *many], seed=seed, time=time, sessions=self.sessions, latency=False)

    def procedure_cells(self, engine: str) -> list[CellSpec]:
        return [
            CellSpec(
                engine,
                "tls",
                workload=f"{self.name}/{ALL}",
                clients=1,
                factors={"megabyte": str(self.megabyte)},
                bandwidth=f"{self.link_bits / 1e3:.0f}kbit" if can_shape() else "",
            )
        ]

    @property
    def link_bits(self) -> float:
        return published.LINK_BITS * self.speed_up

    def procedure_seconds(self, time: float) -> float:  # noqa: ARG002 - its windows decide
        return len(ARMS) * len(self.sizes) * (self.duration + FETCH_SECONDS)

    def begin(self, engine: str) -> StudyRecord:
        settings: dict[str, float] = {
            "window_s": self.duration,
            "interval_s": published.INTERVAL / self.speed_up,
            "speed_up": self.speed_up,
            # 0: no link could be made, so loopback.
            "link_bits": self.link_bits if can_shape() else 0.0,
            "megabyte": self.megabyte,
            "cpus": counters.CPUS,
        }
        return StudyRecord(FORMAT, self.name, engine, "tls", arms=list(ARMS), settings=settings)

    def procedure(self, stage: Stage) -> None:
        procedure.run(stage, self.sizes)

    def compare(self, record: StudyRecord, cells: list[Cell]) -> StudyResult:
        return compare.compare(self, record, cells)

    def judged(self, result: StudyResult) -> Judged:
        """Published processor time beside our server CPU time per fetch, which has the interval."""
        ours = {
            cost.operation: cost
            for cost in result.figures
            if (cost.figure, cost.arm, cost.workload) == (measured.SERVER_CPU, "cost", "")
        }
        costs = []
        for cost in self.headline(result):
            our_cost = ours.get(cost.operation)
            known = {"ours": our_cost.ours, "low": our_cost.low, "high": our_cost.high} if our_cost else {"ours": None}
            costs.append(msgspec.structs.replace(cost, **known))
        return Judged(costs, direction_only=True, ratios=COMPARED)

    def caveat(self, result: StudyResult) -> str:  # noqa: ARG002
        return (
            "Published: the machine's processor time over a fixed window, including idle time; ours: the server's own CPU time per fetch, "
            "without the window."
        )

    def sheets(self, result: StudyResult) -> Iterator[Sheet]:
        return report.sheets(result)

    def report(self, result: StudyResult, cells: Sequence[Cell] = ()) -> Report:
        """The report of every study, plus what limited each cell."""
        common_report = super().report(result, cells)
        return common_report._replace(sheets=[*common_report.sheets, *report.limits(cells)])

    def method(self, result: StudyResult) -> list[str]:  # noqa: ARG002
        return [report.METHOD]


COMPARED = {
    "processor time, mean": "processor time over a window as published, the server's CPU time of a fetch here, encrypted ÷ plain"
}
"""What its one judged figure compares."""


def can_shape() -> bool:
    """Whether this machine can create a link of fixed bandwidth."""
    try:
        check_rights()
    except UsageError:
        return False
    return True


STUDY = WebTls()
