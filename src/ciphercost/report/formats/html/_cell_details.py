"""The texts, tables and plots of a cell's details. Pure except for the drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ciphercost.model.errors import kind
from ciphercost.model.result import Cell, Result
from ciphercost.model.shares import in_percent
from ciphercost.model.spec import ARMS
from ciphercost.report import document
from ciphercost.report.blocks import Figures, Findings, Note, Topic, Warnings, notes, only, text_on
from ciphercost.report.formats.html._figure import Figure, figure
from ciphercost.report.plots import Plot, Table
from ciphercost.report.words import added_text, cell_text, figure_text, pair_text, profile_text

FOLD = 2
"""Details are open by default up to this many cells."""


LOAD: tuple[Topic, ...] = ("agents", "hop", "link", "log", "retries", "statements", "client")
"""Notes on what made the load."""
ELSEWHERE: tuple[Topic, ...] = ("verdict", "proof")
"""Notes that have a place of their own."""
MINOR = frozenset(
    figure_text.LABELS[key]
    for key in (*sorted(figure_text.DETAILS), "wire_bytes_per_op", "memory", "start_time", "host_busy")
)
"""Labels of figures that are folded."""
BESIDE = {
    "storm": "Established connections in a storm",
    "memory": "Memory per connection",
    "replication": "Replication over the encrypted link",
}
"""Captions of tables of figures that have their own head."""
STORAGE = ("without a server (fio)", "cost of encryption", "95 % interval", "plain → encrypted")


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
    figures: list[tuple[str, str, str, str]]
    """(label, cost, interval, levels)"""
    minor: list[tuple[str, str, str, str]]
    """The same of what says why an operation costs more, or hardly differs."""
    sizes: list[tuple[str, str, str, str]]
    """The same of stored bytes."""
    notes: list[str]
    plots: list[Figure]
    profile: list[Profiled]
    proof: str
    proofs: list[Item]
    findings: list[Item]
    config_diff: list[tuple[str, str, str]]
    facts: list[tuple[str, str]]
    connections: list[tuple[str, Table]]
    """Storms, and memory per connection, with their captions."""
    storage: Table | None
    clients: list[str]
    warnings: list[str]
    arms: tuple[str, str] = ("plain", "encrypted")
    """What they are called."""


def shown_cell(result: Result, number: int, label: str, drawn: Sequence[Plot]) -> Shown:
    cell = result.cells[number]
    ok = bool(cell.overhead)
    blocks = document.of_cell(cell, result.cells)
    tables = {block.of: block.rows for block in only(Figures, blocks)}
    return Shown(
        anchor=f"cell-{number + 1}",
        name=label,
        heading=cell_text.heading(cell),
        cost=(added_text.line(cell) or figure_text.priced(cell))
        if ok
        else f"no number: {cell.status.replace('-', ' ')}",
        ok=ok,
        open=len(result.cells) <= FOLD,
        reason=cell.reason,
        verdict=text_on(blocks, "verdict"),
        figures=[row for row in tables.get("cost", []) if row[0] not in MINOR],
        minor=[row for row in tables.get("cost", []) if row[0] in MINOR],
        sizes=tables.get("stored", []),
        notes=[str(note) for note in only(Note, blocks) if note.topic not in (*ELSEWHERE, *LOAD)],
        plots=[figure(plot) for plot in drawn if plot.cell == number and not plot.name.startswith("profile")],
        profile=list(_profile(cell, f"profile-cell-{number + 1}-", drawn)),
        proof=text_on(blocks, "proof"),
        proofs=[
            Item(
                f"{pair_text.name(cell, proof.arm)} arm, {proof.witness}",
                proof.detail + ("" if proof.passed else " (FAILED)"),
                "" if proof.passed else "bad",
            )
            for proof in cell.proofs
        ],
        findings=[
            Item(finding.severity, cell_text.left_open(finding), "bad" * (finding.severity == "high"))
            for block in only(Findings, blocks)
            for finding in block.findings
        ],
        config_diff=[_differs(line) for line in cell.config_diff],
        facts=pair_text.worded(list(_facts(cell)), cell.pair),
        connections=[
            (BESIDE[block.of], Table(pair_text.worded((block.head[0], *STORAGE[1:]), cell.pair), block.rows))
            for block in only(Figures, blocks)
            if block.of in BESIDE
        ],
        storage=Table(pair_text.worded(STORAGE, cell.pair), tables["storage"]) if "storage" in tables else None,
        clients=[str(note) for note in notes(blocks, *LOAD)],
        warnings=[text for block in only(Warnings, blocks) for text in block.texts],
        arms=(pair_text.name(cell, "plain"), pair_text.name(cell, "encrypted")),
    )


def _profile(cell: Cell, prefix: str, drawn: Sequence[Plot]) -> Iterator[Profiled]:
    """Where the CPU time of each end goes."""
    for end in cell.profile.ends if cell.profile else ():
        end_plots = [plot for plot in drawn if plot.name.startswith(f"{prefix}{end.end}")]
        by = [
            (f"CPU time by {name}", Table((f"by {name}", *profile_text.HEAD[1:]), rows))
            for name, rows in profile_text.groups(end)
        ]
        title = profile_text.title(cell, end)
        yield Profiled(
            f"{title[0].upper()}{title[1:]}",
            [("What encryption adds to each part", end_plots[0].table), *by],
            [
                figure(plot._replace(table=Table((), ())) if place == 0 else plot)
                for place, plot in enumerate(end_plots)
            ],
            list(profile_text.notes(cell, end)),
        )


def _differs(line: str) -> tuple[str, str, str]:
    """`name: plain | encrypted` as a triple."""
    name, _, values = line.partition(": ")
    plain, bar, encrypted = values.partition(" | ")
    return (name, plain, encrypted) if bar else (line, "", "")


def _facts(cell: Cell) -> Iterator[tuple[str, str]]:
    """(name, value) of the cell's conditions and counts."""
    yield "regime", cell.regime
    yield "rows", f"{cell.rows:,}" if cell.rows else ""
    chosen = {name: value for name, value in cell.factors.items() if name not in cell.fixed_factors}
    yield "factors", ", ".join(f"{name}={value}" for name, value in chosen.items() if value)
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
            f"{in_percent(carried.get('lambda', 0.0), 2, '+')} (p = {carried.get('p_value', 1.0):.2g})",
        )
    for arm in ARMS:
        if facts := cell.arms.get(arm, {}):
            kinds = ", ".join(f"{kind(code)} {count}" for code, count in facts.get("error_kinds", {}).items())
            done = f"{int(facts.get('operations', 0)):,} operations in {facts.get('seconds', 0.0):.1f} s counted"
            yield f"{arm} arm", f"{done}, {int(facts.get('errors', 0)):,} failed{f' ({kinds})' if kinds else ''}"
