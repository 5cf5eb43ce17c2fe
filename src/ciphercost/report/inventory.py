"""Tables of engines, mechanisms, workloads, studies, runs and grants for `list` and `doctor`.

A table knows its names before it loads any entry, so that one entry, or an error, costs no more than it must.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ciphercost import engines, mechanisms
from ciphercost.load import drivers, workloads
from ciphercost.model import checked, grants, run_directory
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.machines import MACHINES_FILE, MACHINES_FORMAT, MachinesRun
from ciphercost.report.layout import wrap
from ciphercost.studies import catalogue

Row = tuple[str, str]
"""Name and text; the name is empty in a row that continues the one above."""


class Table(NamedTuple):
    """One table of `list`."""

    names: Callable[[], Sequence[str]]
    texts: Callable[[str], Iterator[str]]
    """The rows of the entry with that name."""

    def rows(self, only: str | None = None) -> list[Row]:
        wanted = self.names() if only is None else [only]
        return [("" if number else name, text) for name in wanted for number, text in enumerate(self.texts(name))]


def show(what: str | None, only: str | None = None) -> str:
    """The table of that name, or all of them. `only`: just its entry of that name. Raises UsageError with the nearest name."""
    if what is None:
        return "\n\n".join(f"{name}\n{table(named_table.rows())}" for name, named_table in TABLES.items())
    if what not in TABLES:
        raise UsageError(f"unknown list '{what}': {nearest(what, TABLES)}")
    if only is not None and only not in (known := TABLES[what].names()):
        raise UsageError(f"`ciphercost list {what}` has no '{only}': {nearest(only, known) if known else NO_RUNS}")
    return table(TABLES[what].rows(only))


def engine_texts(name: str) -> Iterator[str]:
    engine = engines.get(name)
    none = "your own server, with --url" if engine.foreign else f"none found; run `ciphercost install {name}`"
    yield from [
        f"{installation.version} ({installation.source}) {installation.location}".strip()
        for installation in engine.available()
    ] or [none]
    yield f"mechanisms: {', '.join(mechanisms.folded(mechanisms.of(engine)))}"


def mechanism_names() -> list[str]:
    """The first of each family and protection. A family is one mechanism in several modes or key lengths."""
    firsts: dict[tuple[str, str], str] = {}
    for mechanism in map(mechanisms.get, mechanisms.names()):
        firsts.setdefault((mechanism.family or mechanism.name, mechanism.protects), mechanism.name)
    return list(firsts.values())


def mechanism_texts(name: str) -> Iterator[str]:
    mechanism = mechanisms.get(name)
    yield f"{mechanism.title}; layer: {mechanism.layer}"
    if mechanism.family:
        alike = [member for member in map(mechanisms.get, mechanisms.names()) if member.family == mechanism.family]
        those = [member.name for member in alike if member.protects == mechanism.protects]
        yield f"same family: {', '.join(mechanisms.folded(those))}"
        for engine, modes in _modes(those):
            yield f"{engine} has {modes}"
    yield f"protects {mechanisms.protection(mechanism)}"
    for factor in mechanism.factors:
        values = " | ".join(value or "default" for value in factor.values) or "…"
        yield f"--set {factor.name}={values}: {factor.text}"


def _modes(names: list[str]) -> Iterator[tuple[str, str]]:
    """(engine, those of the family's mechanisms that it has)."""
    for engine in engines.names():
        if has := [name for name in names if engine in mechanisms.get(name).engines]:
            yield engine, ", ".join(mechanisms.folded(has))


def workload_texts(name: str) -> Iterator[str]:
    workload = workloads.get(name)
    yield f"{workload.title}; {workload.measures}"
    if workload.parameters:
        yield "--set " + " ".join(f"{key}={value}" for key, value in workload.parameters.items())


def driver_texts(name: str) -> Iterator[str]:
    versions = drivers.named(name)
    newest = versions[-1]
    language = drivers.language(newest.language)
    yield f"{language.name}, for {' and '.join(newest.engines)}; versions {', '.join(driver.version for driver in versions)}"
    for option in newest.options:
        yield f"--set {option.name}={' | '.join(option.values)}: {option.text}"


def study_texts(name: str) -> Iterator[str]:
    study = catalogue.entry(name)
    yield study.title
    yield f"published on {study.published_server}; runs on {', '.join(study.engines)}"
    yield f"--workload {' | '.join(study.workloads)}"


def run_names() -> list[str]:
    over_machines = [path.parent.name for path in Path("runs").glob(f"*/{MACHINES_FILE}")]
    return sorted([*(str(path.relative_to("runs")) for path in run_directory.runs()), *over_machines])


def run_texts(name: str) -> Iterator[str]:
    path = Path("runs") / name
    try:
        if (path / MACHINES_FILE).is_file():
            run = checked.whole(path / MACHINES_FILE, MachinesRun, MACHINES_FORMAT)
            cells = ", ".join(f"{cell.engine}:{cell.mechanism} {cell.workload}" for cell in run.spec.cells)
            yield f"over {len(run.machines)} machines: {cells}"
        else:
            yield ", ".join(
                f"{cell.spec.engine}:{cell.spec.mechanism} {cell.workload or cell.spec.workload} {cell.status or 'cut off'}"
                for cell in run_directory.read_facts(path).cells
            )
    except UsageError as error:
        yield f"can't be read: {error}"


TABLES: dict[str, Table] = {
    "engines": Table(engines.names, engine_texts),
    "mechanisms": Table(mechanism_names, mechanism_texts),
    "workloads": Table(workloads.names, workload_texts),
    "drivers": Table(drivers.names, driver_texts),
    "studies": Table(catalogue.names, study_texts),
    "runs": Table(run_names, run_texts),
    "grants": Table(lambda: list(grants.GRANTS), grants.texts),
}
NO_RUNS = "there is none in ./runs"


def table(rows: Sequence[Row]) -> str:
    if not rows:
        return "  none in ./runs"
    width = max((len(name) for name, _ in rows), default=0)
    lines: list[str] = []
    for name, text in rows:
        lines += wrap(text, f"  {name:<{width}}  ", " " * (width + 6))
    return "\n".join(lines)
