"""Published studies, one folder each: published figures (CSV), the published procedure and workloads.

A folder has `study.toml`, which `list` and error messages read (`catalogue.py`), and defines `STUDY`, an instance of a subclass of
`Study`. Studies are found by folder name, so adding a folder adds a study.
"""

from __future__ import annotations

import csv
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

import msgspec

from ciphercost import engines, mechanisms
from ciphercost.host.versions import matches, version_key
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.registry import Registry
from ciphercost.model.result import Cell
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult, StudyRun
from ciphercost.studies import catalogue, table
from ciphercost.studies.agreement import Judged
from ciphercost.studies.catalogue import folder as folder
from ciphercost.studies.catalogue import names as names
from ciphercost.studies.sheet import Report, Sheet, worded

if TYPE_CHECKING:
    from ciphercost.load.agent import Agent
    from ciphercost.provision.prepared_cell import PreparedCell
    from ciphercost.provision.server_pair import ServerPair


class Stage(msgspec.Struct):
    """What a study's procedure runs on: one server pair that is up, proven and loaded, and an agent."""

    bench: PreparedCell
    pair: ServerPair
    agent: Agent
    record: StudyRecord
    seconds: float
    """Estimated time limit of the whole procedure."""
    say: Callable[[str], None]
    keep: Callable[[StudyRun], None]
    """Writes a measured run into the run directory at once."""
    renew: Callable[[Stage], None]
    """Starts a new session: restarts server and agent on the same data and proves both arms again."""
    client: Callable[[], Agent]
    """Starts a separate client process on the same cores and under the same limits as `agent`. Close it after use."""
    seed: int = 0
    """Seed of the run's random choices."""


class Study(ABC):
    """A published study: its figures, its procedure, and what to measure by our own method."""

    name: str
    operations: tuple[str, ...]
    seconds: float = 60.0
    """Default seconds of load for each operation by our method."""
    sources: Mapping[str, str] = {}
    """Published tables and figures, by name (`Table II`), and what each holds. `StudyFigure.source` names one."""
    one_core: bool = False
    """Whether the procedure runs server and client on one core."""
    newer_servers: bool = False
    """Whether a server newer than the one that its cells name serves as well."""

    @property
    def title(self) -> str:
        """One line, for `list studies` and the reports."""
        return catalogue.entry(self.name).title

    @property
    def published_server(self) -> str:
        """Server and version of the publication."""
        return catalogue.entry(self.name).published_server

    @property
    def engine(self) -> str:
        """Default server."""
        return catalogue.entry(self.name).engine

    @property
    def engines(self) -> tuple[str, ...]:
        """All servers on which it runs."""
        return catalogue.entry(self.name).engines

    @property
    def options(self) -> tuple[str, ...]:
        """Options that `configured` accepts, by their command-line names: `scale`, `duration`, …"""
        return catalogue.entry(self.name).options

    def configured(self, given: Mapping[str, Any]) -> Study:
        """Return this study with the given options applied. Raises UsageError for an option it doesn't have."""
        for name in given:
            if name not in self.options:
                having = catalogue.having(name)
                others = f"{worded(having) or 'no study'} {'have' if len(having) > 1 else 'has'}"
                option = name.replace("_", "-")
                raise UsageError(f"study {self.name} has no option --{option}, which {others}; leave it out")
        return self

    @abstractmethod
    def spec(self, engine: str, time: float, seed: int) -> Spec:
        """The study's operations as cells that our method measures for `time` seconds each. Nothing has checked them yet."""

    @abstractmethod
    def procedure_cells(self, engine: str) -> list[CellSpec]:
        """The servers and data of the procedure: one cell for each pair of arms."""

    @abstractmethod
    def procedure_seconds(self, time: float) -> float:
        """Estimated duration of the published procedure beside cells of `time` seconds."""

    @property
    def memory_limit(self) -> int:
        """Bytes of memory that server and client may use together during the procedure; 0: no limit."""
        return 0

    @abstractmethod
    def begin(self, engine: str) -> StudyRecord:
        """An empty record that describes the planned run."""

    @abstractmethod
    def procedure(self, stage: Stage) -> None:
        """Run the study as published. Raises RunError."""

    @abstractmethod
    def compare(self, record: StudyRecord, cells: list[Cell]) -> StudyResult:
        """Published, repeated and our own figures side by side. Pure: reads the record only."""

    def result(
        self, server: str, procedure: str, figures: list[StudyFigure], findings: list[str], *, complete: bool
    ) -> StudyResult:
        """Assemble the StudyResult of `compare`. `server`: what it ran on here."""
        return StudyResult(
            study=self.name,
            title=self.title,
            published_server=self.published_server,
            server=server,
            complete=complete,
            procedure=procedure,
            figures=figures,
            findings=findings,
        )

    def headline(self, result: StudyResult) -> list[StudyFigure]:
        """The study's main costs, for a page with several studies: its first figure with a published cost, for each operation. Pure."""
        comparable = [cost for cost in published_costs(result) if not cost.operation.startswith("published alone")]
        return [cost for cost in comparable if cost.figure == comparable[0].figure]

    def judged(self, result: StudyResult) -> Judged:
        """The published costs from which `agreement` decides whether the study was replicated. Pure."""
        return Judged(self.headline(result))

    def caveat(self, result: StudyResult) -> str:  # noqa: ARG002
        """A further limit of that comparison; empty: none. Pure."""
        return ""

    def sheets(self, result: StudyResult) -> Iterator[Sheet]:
        """The study's tables, below the verdict table. Pure."""
        return table.sheets(result)

    def method(self, result: StudyResult) -> list[str]:  # noqa: ARG002
        """Paragraphs on how our own figures were measured, as far as the tables don't show it. Pure."""
        return []

    def below_verdict(self, cells: Sequence[Cell]) -> Iterator[Sheet]:  # noqa: ARG002
        """Tables on the cells of the run, which stand before the study's own. Pure."""
        yield from ()

    def judged_on(self, result: StudyResult, cells: Sequence[Cell]) -> list[str]:  # noqa: ARG002
        """Sentences that the verdict needs: on what it was judged here. Pure."""
        return []

    def report(self, result: StudyResult, cells: Sequence[Cell] = ()) -> Report:
        """Everything that pages and texts report on its result and on the cells of the same run. Pure."""
        return table.report(self, result, cells)

    def file(self, name: str) -> str:
        """Text of one of the study's own files."""
        return resources.files(f"{__name__}.{folder(self.name)}").joinpath(name).read_text(encoding="utf-8")

    def rows(self, name: str) -> Iterator[dict[str, str]]:
        """Rows of one of its CSV tables of published figures."""
        yield from csv.DictReader(self.file(name).splitlines())

    def finding(self, name: str) -> str:
        """A finding that no run changes: the paragraph below `## name` in its `findings.md`."""
        for section in self.file("findings.md").split("\n## ")[1:]:
            heading, _, text = section.partition("\n")
            if heading == name:
                return " ".join(text.split())
        raise KeyError(name)

    def check_engine(self, engine: str) -> None:
        """Raises UsageError for a server on which the study can't run."""
        if engine not in self.engines:
            raise UsageError(f"study {self.name} does not run on '{engine}': {nearest(engine, self.engines)}")


def named(engine: str) -> tuple[str, dict[str, str]]:
    """`mariadb,postgresql` and {"mariadb": "11.8"} for `mariadb@11.8,postgresql`. Pure. Raises UsageError."""
    versions: dict[str, str] = {}
    listed = []
    for part in (text.strip() for text in engine.split(",")):
        name, at, version = part.partition("@")
        if at and not (name and re.fullmatch(r"[\w.]+", version)):
            raise UsageError(
                f"--engine {engine}: '{part}' is not a server and its version; write ENGINE@VERSION, e.g. mariadb@11.8"
            )
        if versions.setdefault(name, version) != version:
            raise UsageError(f"--engine {engine}: names {name} in two versions; a study runs on one")
        listed.append(name)
    return ",".join(listed), {name: version for name, version in versions.items() if version}


def at_versions(study: Study, cells: Sequence[CellSpec], versions: Mapping[str, str]) -> list[CellSpec]:
    """The cells on these versions of their servers. Raises UsageError if the study itself needs another one."""
    for cell in cells:
        version = versions.get(cell.engine, "")
        newer = study.newer_servers and version_key(version) > version_key(cell.version)
        if version and not newer and not matches(version, cell.version):
            needed = f"{cell.engine} {cell.version}{' or newer' if study.newer_servers else ''}"
            raise UsageError(f"study {study.name} needs {needed}: write --engine {cell.engine}, without @{version}")
    return [msgspec.structs.replace(cell, version=versions.get(cell.engine, cell.version)) for cell in cells]


def published_costs(result: StudyResult) -> list[StudyFigure]:
    """The costs that stand beside a published one. Pure."""
    return [figure for figure in result.figures if figure.arm == "cost" and figure.published is not None]


def ran_on(name: str, record: StudyRecord, cells: list[Cell]) -> str:
    """`PostgreSQL 18.1`: version from the procedure, or from our own cells if the procedure never began. Pure."""
    return f"{name} {record.version or next((cell.version for cell in cells if cell.version), '')}".strip()


def without_runs(record: StudyRecord) -> StudyRecord:
    """The same record without its runs, which were on arms that were not proven. Pure."""
    return StudyRecord(record.format, record.study, record.engine, record.mechanism, settings=record.settings)


def transit(engine: str) -> str:
    """The engine's main mechanism in transit: `tls`, or its first one without TLS. Raises UsageError."""
    server = engines.get(engine)
    transit_names = mechanisms.of(server, "transit")
    if not transit_names:
        raise UsageError(
            f"{engine} can't encrypt connections, which this study needs; its mechanisms: {', '.join(mechanisms.of(server))}"
        )
    return "tls" if "tls" in transit_names else transit_names[0]


REGISTRY = Registry(__name__)


def get(name: str) -> Study:
    """Return the study with that name. Raises UsageError with the nearest name."""
    if name not in names():
        raise UsageError(f"unknown study '{name}': {nearest(name, [*names(), 'all'])}")
    study: Study = REGISTRY.load(name).STUDY
    return study
