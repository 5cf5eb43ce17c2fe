"""Tables of engines, mechanisms, workloads, studies, runs and grants for `list` and `doctor`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ciphercost import engines, mechanisms, studies
from ciphercost.load import workloads
from ciphercost.model import checked, grants, run_directory
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.machines import MACHINES_FILE, MACHINES_FORMAT, MachinesRun
from ciphercost.report.layout import wrap

Row = tuple[str, str]
"""Name and text; the name is empty in a row that continues the one above."""


def show(what: str | None, only: str | None = None) -> str:
    """The table of that name, or all of them. `only`: just its entry of that name. Raises UsageError with the nearest name."""
    if what is None:
        return "\n\n".join(f"{name}\n{table(rows())}" for name, rows in TABLES.items())
    if what not in TABLES:
        raise UsageError(f"unknown list '{what}': {nearest(what, TABLES)}")
    rows = TABLES[what]()
    return table(rows if only is None else _entry(what, rows, only))


def _entry(what: str, rows: Sequence[Row], only: str) -> list[Row]:
    """The row of that name and those below it that continue it."""
    first = next((number for number, (name, _) in enumerate(rows) if name == only), None)
    if first is None:
        raise UsageError(
            f"`ciphercost list {what}` has no '{only}': {nearest(only, [name for name, _ in rows if name])}"
        )
    return [rows[first], *itertools.takewhile(lambda row: not row[0], rows[first + 1 :])]


def engines_rows() -> list[Row]:
    rows: list[Row] = []
    for name in engines.names():
        engine = engines.get(name)
        found = list(engine.available())
        none = "your own server, with --url" if engine.foreign else f"none found; run `ciphercost install {name}`"
        where = [f"{each.version} ({each.source}) {each.location}".strip() for each in found] or [none]
        rows += [(name if n == 0 else "", place) for n, place in enumerate(where)]
        rows.append(("", f"mechanisms: {', '.join(mechanisms.folded(mechanisms.of(engine)))}"))
    return rows


def mechanisms_rows() -> list[Row]:
    """One row per family and protection. A family is one mechanism in several modes or key lengths."""
    rows: list[Row] = []
    known = set()
    for mechanism in map(mechanisms.get, mechanisms.names()):
        if mechanism.family and (mechanism.family, mechanism.protects) in known:
            continue
        known.add((mechanism.family, mechanism.protects))
        rows.append((mechanism.name, f"{mechanism.title}; layer: {mechanism.layer}"))
        if mechanism.family:
            alike = [each for each in map(mechanisms.get, mechanisms.names()) if each.family == mechanism.family]
            those = [each.name for each in alike if each.protects == mechanism.protects]
            rows.append(("", f"same family: {', '.join(mechanisms.folded(those))}"))
            rows += [("", f"{engine} has {modes}") for engine, modes in _modes(those)]
        rows.append(("", f"protects {mechanisms.protection(mechanism)}"))
        for factor in mechanism.factors:
            values = " | ".join(value or "default" for value in factor.values) or "…"
            rows.append(("", f"--set {factor.name}={values}: {factor.text}"))
    return rows


def _modes(names: list[str]) -> Iterator[tuple[str, str]]:
    """(engine, those of the family's mechanisms that it has)."""
    for engine in engines.names():
        if has := [name for name in names if engine in mechanisms.get(name).engines]:
            yield engine, ", ".join(mechanisms.folded(has))


def workloads_rows() -> list[Row]:
    rows: list[Row] = []
    for name in workloads.names():
        workload = workloads.get(name)
        rows.append((name, f"{workload.title}; {workload.measures}"))
        if workload.parameters:
            rows.append(("", "--set " + " ".join(f"{key}={value}" for key, value in workload.parameters.items())))
    return rows


def studies_rows() -> list[Row]:
    rows: list[Row] = []
    for name in studies.names():
        study = studies.get(name)
        rows.append((name, study.title))
        rows.append(("", f"published on {study.published_server}; runs on {', '.join(study.engines)}"))
        rows.append(("", f"--workload {' | '.join(study.offered)}"))
    return rows


def runs_rows() -> list[Row]:
    rows: list[Row] = []
    for path in run_directory.runs():
        try:
            cells = ", ".join(
                f"{cell.spec.engine}:{cell.spec.mechanism} {cell.workload or cell.spec.workload} {cell.status or 'cut off'}"
                for cell in run_directory.read_facts(path).cells
            )
        except UsageError as error:
            cells = f"can't be read: {error}"
        rows.append((str(path.relative_to("runs")), cells))
    for path in sorted(Path("runs").glob(f"*/{MACHINES_FILE}")):
        try:
            run = checked.whole(path, MachinesRun, MACHINES_FORMAT)
            cells = ", ".join(f"{cell.engine}:{cell.mechanism} {cell.workload}" for cell in run.spec.cells)
            cells = f"over {len(run.machines)} machines: {cells}"
        except UsageError as error:
            cells = f"can't be read: {error}"
        rows.append((path.parent.name, cells))
    return sorted(rows)


def grants_rows() -> list[Row]:
    return list(grants.rows())


TABLES: dict[str, Callable[[], list[Row]]] = {
    "engines": engines_rows,
    "mechanisms": mechanisms_rows,
    "workloads": workloads_rows,
    "studies": studies_rows,
    "runs": runs_rows,
    "grants": grants_rows,
}


def table(rows: Sequence[Row]) -> str:
    if not rows:
        return "  none in ./runs"
    width = max((len(name) for name, _ in rows), default=0)
    lines: list[str] = []
    for name, text in rows:
        lines += wrap(text, f"  {name:<{width}}  ", " " * (width + 6))
    return "\n".join(lines)
