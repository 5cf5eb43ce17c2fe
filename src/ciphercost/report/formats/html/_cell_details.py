"""The texts, tables and plots of a cell's details. Pure except for the drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ciphercost.estimate import notation
from ciphercost.measure import round_trips
from ciphercost.model.errors import kind
from ciphercost.model.result import Cell, Result
from ciphercost.model.spec import ARMS
from ciphercost.report import objective
from ciphercost.report.formats.html._figure import Figure, figure
from ciphercost.report.plots import Plot, Table
from ciphercost.report.words import cell_notes, cell_text, figure_text, profile_text, verdict_text

FOLD = 2
"""Details are open by default up to this many cells."""


class Item(NamedTuple):
    """A line with a label: a proof or a finding."""

    word: str
    text: str
    tone: str = ""
    """`bad` if something is wrong."""


class Profiled(NamedTuple):
    """Where one end's CPU time goes."""

    title: str
    tables: list[tuple[str, Table]]
    """With their captions: by part, by process, by library."""
    figures: list[Figure]
    notes: list[str]


class Shown(NamedTuple):
    """One cell's details."""

    anchor: str
    name: str
    heading: str
    cost: str
    ok: bool
    open: bool
    reason: str
    verdict: str
    figures: list[figure_text.Row]
    figure_notes: list[str]
    plots: list[Figure]
    profile: list[Profiled]
    proof: str
    proofs: list[Item]
    findings: list[Item]
    config_diff: list[tuple[str, str, str]]
    facts: list[tuple[str, str]]
    storage: Table | None
    clients: list[str]
    warnings: list[str]


def shown_cell(result: Result, number: int, label: str, drawn: Sequence[Plot]) -> Shown:
    cell = result.cells[number]
    ok = bool(cell.overhead)
    return Shown(
        anchor=f"cell-{number + 1}",
        name=label,
        heading=cell_text.heading(cell),
        cost=figure_text.priced(cell) if ok else f"no number: {cell.status.replace('-', ' ')}",
        ok=ok,
        open=len(result.cells) <= FOLD,
        reason=cell.reason,
        verdict=verdict_text.verdict(cell) if ok else "",
        figures=list(figure_text.rows(cell)),
        figure_notes=list(_notes(cell, result.cells)),
        plots=[figure(each) for each in drawn if each.cell == number and not each.name.startswith("profile")],
        profile=list(_profile(cell, f"profile-cell-{number + 1}-", drawn)),
        proof=cell_text.proof_line(cell) if ok else "",
        proofs=[
            Item(
                f"{each.arm} arm, {each.witness}",
                each.detail + ("" if each.passed else " (FAILED)"),
                "" if each.passed else "bad",
            )
            for each in cell.proofs
        ],
        findings=[
            Item(
                each.severity,
                cell_text.left_open(each),
                "bad" * (each.severity == "high"),
            )
            for each in cell_text.by_severity(cell.findings)
        ],
        config_diff=[_differs(each) for each in cell.config_diff],
        facts=list(_facts(cell)),
        storage=_storage(cell),
        clients=[
            *cell_notes.load(cell),
            *round_trips.lines(cell.chatter, cell.traffic),
            *_client(cell, result.cells),
        ],
        warnings=[each.text for each in cell.warnings],
    )


def _notes(cell: Cell, everything: Sequence[Cell]) -> Iterator[str]:
    """Notes below a cell's figures."""
    yield from filter(None, (*figure_text.without_ratio(cell), figure_text.opening(cell)))
    if cell.predicted:
        yield figure_text.prediction(cell)
    yield from map(str, cell_notes.consequences(cell))
    if cell.objective is not None:
        yield objective.line(cell)
    yield from cell_text.taken_apart(cell, everything)
    for what, growth, both in cell_text.stored(cell):
        yield f"stored bytes, {what}: {growth} ({both})"
    if "rotation_s" in cell.key_life:
        yield f"key rotation took {notation.number(cell.key_life['rotation_s'])} s"
    if cell.against_reference is not None:
        yield f"against {cell_text.against(everything, cell)}: {figure_text.beside(cell.against_reference)}"


def _profile(cell: Cell, prefix: str, drawn: Sequence[Plot]) -> Iterator[Profiled]:
    """Where the CPU time of each end goes."""
    for end in cell.profile.ends if cell.profile else ():
        own = [each for each in drawn if each.name.startswith(f"{prefix}{end.end}")]
        by = [
            (f"CPU time by {name}", Table((f"by {name}", *profile_text.HEAD[1:]), rows))
            for name, rows in profile_text.groups(end)
        ]
        title = profile_text.title(cell, end)
        yield Profiled(
            f"{title[0].upper()}{title[1:]}",
            [("What encryption adds to each part", own[0].table), *by],
            [figure(each._replace(table=Table((), ())) if place == 0 else each) for place, each in enumerate(own)],
            list(profile_text.notes(cell, end)),
        )


def _client(cell: Cell, everything: Sequence[Cell]) -> Iterator[str]:
    """What its client costs compared with that of the experiment's first cell, arm by arm."""
    for key, estimate in cell.client_against_reference.items():
        what, _, arm = key.rpartition("_")
        name = what.replace("_", " ").replace("cpu", "CPU")
        yield f"{name}, {arm} arm, against the client of {cell_text.against(everything, cell)}: {notation.worded(estimate)} ({notation.interval(estimate)})"


def _differs(line: str) -> tuple[str, str, str]:
    """`name: plain | encrypted` as a triple."""
    name, _, values = line.partition(": ")
    plain, bar, encrypted = values.partition(" | ")
    return (name, plain, encrypted) if bar else (line, "", "")


def _facts(cell: Cell) -> Iterator[tuple[str, str]]:
    """(name, value) of the cell's conditions and counts."""
    yield "regime", cell.regime
    yield "rows", f"{cell.rows:,}" if cell.rows else ""
    yield "factors", ", ".join(f"{name}={value}" for name, value in cell.factors.items() if value)
    yield (
        "encryption in force",
        ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in cell.encryption.items() if value),
    )
    yield "cores", ", ".join(f"{who} {where}" for who, where in cell.cores.items() if where)
    yield "slices", f"{cell.slice_seconds:.3g} s each" if cell.slice_seconds else ""
    yield "load generator", cell.client
    carried = cell.carryover
    if carried:
        yield (
            "carry-over between arms",
            f"{carried.get('lambda', 0.0):+.2%} (p = {carried.get('p_value', 1.0):.2g})".replace("%", " %"),
        )
    for arm in ARMS:
        if facts := cell.arms.get(arm, {}):
            kinds = ", ".join(f"{kind(code)} {count}" for code, count in facts.get("error_kinds", {}).items())
            done = f"{int(facts.get('operations', 0)):,} operations in {facts.get('seconds', 0.0):.1f} s counted"
            yield f"{arm} arm", f"{done}, {int(facts.get('errors', 0)):,} failed{f' ({kinds})' if kinds else ''}"


def _storage(cell: Cell) -> Table | None:
    """fio's measurement of both directories, without a server."""
    rows = list(cell_text.storage(cell))
    return (
        Table(("without a server (fio)", "cost of encryption", "95 % interval", "plain → encrypted"), rows)
        if rows
        else None
    )
