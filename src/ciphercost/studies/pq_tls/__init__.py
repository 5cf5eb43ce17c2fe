"""pq-tls: time to the last byte over new connections, with post-quantum key exchange and certificate (Kampanakis and Childs-Klein, 2024)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell
from ciphercost.model.spec import Arm, CellSpec, Spec
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult
from ciphercost.plan.conditions import bits_per_second, round_trip
from ciphercost.studies import Stage, Study, figures, in_turn, table
from ciphercost.studies.agreement import Judged
from ciphercost.studies.pq_tls import compare, published, ways
from ciphercost.studies.sheet import Sheet

ALL = "files"
"""The workload with all files."""
MOST_FETCHES = 10_000
FETCH_SECONDS = 1.5
"""At most, of the largest file over the slow link."""
METHOD = (
    "Our method compares the cost of TLS, with ML-KEM or with ML-KEM and ML-DSA ÷ with classical algorithms, in one experiment for each file and link: "
    "the cost of each is its time ÷ that of HTTP over the same link, and all of them take turns. One client fetches file after file, each over a new "
    "connection with a full handshake and a checked certificate, so time is 1 ÷ rate."
)


class PqTls(Study):
    """Its sizes are arguments, so that a test can run it small."""

    name = "pq-tls"
    operations = ways.FILES
    sources = published.SOURCES
    seconds = 30.0
    arms: tuple[Arm, ...] = ("encrypted",)
    """The published procedure's: time with one kind of TLS beside time with another."""

    def __init__(
        self, fetches: int = 20, links: tuple[ways.Link, ...] = (ways.FAST, ways.SLOW), sessions: int = 4
    ) -> None:
        """`fetches`: of each file by the published procedure."""
        self.fetches, self.links, self.sessions = fetches, links, sessions

    def configured(self, given: Mapping[str, Any]) -> Study:
        super().configured(given)
        fetches = int(given.get("runs", self.fetches))
        if not 1 <= fetches <= MOST_FETCHES:
            raise UsageError(f"--runs {fetches}: must be from 1 to {MOST_FETCHES:,} fetches of each file")
        fast, slow = self.links
        slow = slow._replace(bandwidth=given.get("bandwidth", slow.bandwidth), delay=given.get("delay", slow.delay))
        bits_per_second(slow.bandwidth)
        round_trip(slow.delay)
        return PqTls(fetches, (fast, slow), self.sessions)

    def spec(self, engine: str, time: float, seed: int) -> Spec:
        """One experiment for each link and file, with every way to connect; without the smallest file over the fast link, of which nothing
        is published.
        """
        self.check_engine(engine)
        cells = [
            self._cell(engine, link, way, file, ways.operation(link.name, file))
            for link in self.links
            for file in self.operations
            for way in ways.FACTORS
            if link.name != ways.FAST.name or file != ways.FILES[0]
        ]
        return Spec(cells=cells, seed=seed, time=time, sessions=self.sessions, latency=False)

    def _cell(self, engine: str, link: ways.Link, way: str, workload: str, group: str) -> CellSpec:
        return CellSpec(
            engine,
            "tls",
            workload=f"{self.name}/{workload}",
            factors=dict(ways.FACTORS[way]),
            clients=1,
            bandwidth=link.bandwidth,
            delay=link.delay,
            group=group,
            variant=way if group else compare.server_of(link.name, way),
        )

    def procedure_cells(self, engine: str) -> list[CellSpec]:
        return [self._cell(engine, link, way, ALL, "") for link in self.links for way in ways.FACTORS]

    def procedure_seconds(self, time: float) -> float:  # noqa: ARG002 - its fetches decide
        return len(self.links) * len(ways.FACTORS) * len(self.operations) * self.fetches * FETCH_SECONDS / 2

    def begin(self, engine: str) -> StudyRecord:
        names = [compare.server_of(link.name, way) for link in self.links for way in ways.FACTORS]
        return StudyRecord(
            FORMAT,
            self.name,
            engine,
            "tls",
            arms=list(self.arms),
            mechanisms=["tls"] * len(names),
            servers=names,
            settings={in_turn.FETCHES: self.fetches, in_turn.RUNS: 1},
            conditions={link.name: link.words for link in self.links},
        )

    def procedure(self, stage: Stage) -> None:
        in_turn.run(stage, self.operations, transactions=True, per_request=self.operations)

    def compare(self, record: StudyRecord, cells: list[Cell]) -> StudyResult:
        return compare.compare(self, record, cells)

    def headline(self, result: StudyResult) -> list[StudyFigure]:
        """Post-quantum times compared with classical ones, where something is published."""
        return [figure for figure in figures.between(result.figures) if figure.published is not None]

    def judged(self, result: StudyResult) -> Judged:
        return Judged(figures.between(result.figures), changed="post-quantum TLS", ratios={compare.TIME: COMPARED})

    def caveat(self, result: StudyResult) -> str:  # noqa: ARG002
        return "The abstract gives neither the links' figures nor the parameter sets; ours are stated below."

    def sheets(self, result: StudyResult) -> Iterator[Sheet]:
        levels = msgspec.structs.replace(result, figures=figures.own(result.figures))
        yield table.by_variant("Every way to connect: time to the last byte", levels, compare.TIME, "ms", self.arms)
        yield table.by_variant("Every way to connect: bytes on the wire", levels, compare.WIRE, "KB", self.arms)

    def method(self, result: StudyResult) -> list[str]:  # noqa: ARG002
        return [METHOD]


COMPARED = "time to the last byte, post-quantum ÷ classical"
"""What a row of two ways compares."""


STUDY = PqTls()
