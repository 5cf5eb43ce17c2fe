"""studies: one folder a published study: its figures, its procedure, its workload. Found by name; adding a study is adding a folder.

A study's folder defines `STUDY`, an instance of a subclass of `Study`, and keeps the published figures beside it as CSV.
"""

from __future__ import annotations

import csv
import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

import msgspec

from ciphercost import engines, mechanisms
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.result import Cell
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.model.study import StudyFigure, StudyRecord, StudyResult, StudyRun
from ciphercost.studies import table
from ciphercost.studies.agreement import Judged
from ciphercost.studies.sheet import Report, Sheet

if TYPE_CHECKING:
    from ciphercost.load.agent import Agent
    from ciphercost.provision.bench import Bench
    from ciphercost.provision.server_pair import ServerPair


class Stage(msgspec.Struct):
    """What a study's procedure is run on: one server that is up, proven and loaded, and an agent."""

    bench: Bench
    pair: ServerPair
    agent: Agent
    record: StudyRecord
    seconds: float
    """How long the whole procedure may take, as far as it can be told beforehand."""
    say: Callable[[str], None]
    keep: Callable[[StudyRun], None]
    """Writes what was measured into the run's directory, at once."""
    renew: Callable[[Stage], None]
    """Ends the server and the agent and starts both anew, of the same data, proven again: another session."""
    client: Callable[[], Agent]
    """Starts a client process of its own, on the same cores and under the same limits as `agent`. Close it after use."""
    seed: int = 0
    """Of the run's random choices."""


class Study(ABC):
    """One published study: what it printed, how it was run, and what to measure by our own method."""

    name: str
    title: str
    """One line, for `list studies` and the reports."""
    published_server: str
    """What it was run on."""
    engine: str
    """Where nothing else is asked for."""
    engines: tuple[str, ...]
    operations: tuple[str, ...]
    """Each of them is a workload too, STUDY/OPERATION, unless `offered` names others."""
    options: tuple[str, ...] = ()
    """What `configured` takes, by the names of the command line: `scale`, `duration`, …"""
    seconds: float = 60.0
    """Load of each operation by our method, where nothing else is asked for."""
    sources: Mapping[str, str] = {}
    """The published tables and figures that its numbers come from: `Table II` and what it holds. `StudyFigure.source` names one."""
    one_core: bool = False
    """Whether its procedure has server and client on one core."""

    @property
    def offered(self) -> tuple[str, ...]:
        """What `--workload` takes of it."""
        return tuple(f"{self.name}/{each}" for each in self.operations)

    def configured(self, given: Mapping[str, Any]) -> Study:
        """This study, with these of its options in the place of its own. Raises UsageError."""
        for name in given:
            if name not in self.options:
                having = [each for each in names() if name in get(each).options]
                others = f"{' and '.join(having) or 'no study'} {'have' if len(having) > 1 else 'has'}"
                raise UsageError(f"study {self.name} has no --{name}; {others}")
        return self

    @abstractmethod
    def spec(self, engine: str, time: float, seed: int) -> Spec:
        """The study's operations as cells, to be measured by our method for `time` seconds each."""

    @abstractmethod
    def procedure_cells(self, engine: str) -> list[CellSpec]:
        """What the procedure's servers are, and what they hold: a cell for each pair of arms that it is run on."""

    @abstractmethod
    def procedure_seconds(self, time: float) -> float:
        """How long the published procedure takes beside cells of `time` seconds."""

    @property
    def memory_limit(self) -> int:
        """Bytes of memory that server and client may use together during the procedure; 0: as much as there is."""
        return 0

    @abstractmethod
    def begin(self, engine: str) -> StudyRecord:
        """An empty record that says what will be run."""

    @abstractmethod
    def procedure(self, stage: Stage) -> None:
        """Run the study as it was published. Raises RunError."""

    @abstractmethod
    def compare(self, record: StudyRecord, cells: list[Cell]) -> StudyResult:
        """Published, repeated, and measured by our method, side by side. Pure: reads the record only."""

    def result(
        self, server: str, procedure: str, figures: list[StudyFigure], findings: list[str], *, complete: bool
    ) -> StudyResult:
        """What `compare` gives, of this study. `server`: what it ran on here."""
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
        """What the study comes down to, for a page that has several: its first figure whose cost was published, wherever it was. Pure."""
        costs = [each for each in result.figures if each.arm == "cost" and each.published is not None]
        own = [each for each in costs if not each.operation.startswith("published alone")]
        return [each for each in own if each.figure == own[0].figure]

    def judged(self, result: StudyResult) -> Judged:
        """The published costs by which `agreement` says whether the study was replicated. Pure."""
        return Judged(self.headline(result))

    def caveat(self, result: StudyResult) -> str:  # noqa: ARG002
        """What else limits that comparison; empty: nothing. Pure."""
        return ""

    def sheets(self, result: StudyResult) -> Iterator[Sheet]:
        """Its tables, below the one of the verdict. Pure."""
        return table.sheets(result)

    def method(self, result: StudyResult) -> list[str]:  # noqa: ARG002
        """Paragraphs on how our own figures were measured, where the tables don't say. Pure."""
        return []

    def report(self, result: StudyResult, cells: Sequence[Cell] = ()) -> Report:
        """All that pages and texts say of its result, and of the cells of the same run. Pure."""
        return table.report(self, result, cells)

    def file(self, name: str) -> str:
        """Text of one of the study's own files."""
        return resources.files(f"{__name__}.{folder(self.name)}").joinpath(name).read_text(encoding="utf-8")

    def rows(self, name: str) -> Iterator[dict[str, str]]:
        """Rows of one of its tables of published figures."""
        yield from csv.DictReader(self.file(name).splitlines())

    def check_engine(self, engine: str) -> None:
        """Raises UsageError for a server that the study can't be run on."""
        if engine not in self.engines:
            raise UsageError(f"study {self.name} does not run on '{engine}': {nearest(engine, self.engines)}")


def ran_on(name: str, record: StudyRecord, cells: list[Cell]) -> str:
    """`PostgreSQL 18.1`, of the procedure, or of our own cells where it never began. Pure."""
    return f"{name} {record.version or next((cell.version for cell in cells if cell.version), '')}".strip()


def transit(engine: str) -> str:
    """The engine's own mechanism on the connection: `tls`, or whatever it has in its place. Raises UsageError."""
    own = engines.get(engine)
    found = mechanisms.of(own, "transit")
    if not found:
        raise UsageError(f"{engine} has no encryption on the connection (it has: {', '.join(mechanisms.of(own))})")
    return "tls" if "tls" in found else found[0]


def names() -> list[str]:
    """Names of all studies, by folder ('_' in a folder's name is '-' in the study's)."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__) if module.ispkg)


def folder(name: str) -> str:
    return name.replace("-", "_")


def get(name: str) -> Study:
    """The study of that name. Raises UsageError with the nearest name."""
    if name not in names():
        raise UsageError(f"unknown study '{name}': {nearest(name, [*names(), 'all'])}")
    study: Study = importlib.import_module(f"{__name__}.{folder(name)}").STUDY
    return study
