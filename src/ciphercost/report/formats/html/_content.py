"""content: result and traces -> what stands in each section of the page, as text, tables and drawn plots. Pure but for the drawing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from ciphercost.estimate import limit
from ciphercost.measure import round_trips
from ciphercost.model.result import Cell, Result
from ciphercost.model.spec import ARMS
from ciphercost.plan import toml
from ciphercost.report import advice, capacity, disturbed, plots, words
from ciphercost.report.formats.html import _method
from ciphercost.report.plots import Plot, Subject, Table
from ciphercost.report.plots._draw import patterns
from ciphercost.studies.sheet import Report

MOST_NAMED = 12
"""Cells named in a row of cost against protection."""
FOLD = 2
"""Cells whose details are open at once, at most."""


class Figure(NamedTuple):
    """A plot as it stands in the page."""

    title: str
    finding: str
    note: str
    wide: Markup
    """Empty where the plot has one width."""
    narrow: Markup
    """Empty where there is no chart: then the note says why."""
    table: Table
    key: str = ""
    """Which signs stand for the arms: `latency`'s or `slices`'s, where the chart does not say itself."""


class Item(NamedTuple):
    """A line with a word before it: of a proof, a finding, a warning."""

    word: str
    text: str
    tone: str = ""
    """`bad` where it says that something is wrong."""


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
    figures: list[words.Row]
    figure_notes: list[str]
    plots: list[Figure]
    proof: str
    proofs: list[Item]
    findings: list[Item]
    config_diff: list[tuple[str, str, str]]
    facts: list[tuple[str, str]]
    storage: Table | None
    clients: list[str]
    warnings: list[str]


class Protection(NamedTuple):
    """Cells that protect the same: their names and places in the page, what they cost, what they protect and leave open."""

    cells: list[tuple[str, str]]
    more: int
    """Cells that aren't named."""
    costs: list[str]
    protects: list[str]


class Entry(NamedTuple):
    """A line of the table of contents, and those below it."""

    anchor: str
    name: str
    below: Sequence[tuple[str, str]] = ()
    """(anchor, name)"""


class Page(NamedTuple):
    """All that the template says."""

    title: str
    subtitle: str
    warning: str
    """Where every slice of a cell was disturbed."""
    answer: Markup
    also: Markup
    """Of a study's page, which begins with its verdict: the answer by our method."""
    budget: str
    basis: str
    advice: list[tuple[bool, str]]
    """With a budget: (whether it belongs to the line above, a line)."""
    patterns: Markup
    forest: list[Figure]
    protection: list[Protection]
    where: list[Figure]
    curves: list[Figure]
    experiments: list[Table]
    cells: list[Shown]
    failed: list[Shown]
    study: Report | None
    published: list[Figure]
    """Its costs beside ours, drawn."""
    machine: list[tuple[str, str]]
    method: list[str]
    command: str
    spec: str
    versions: list[tuple[str, str]]
    ended: str
    contents: Sequence[Entry] = ()


def page(of: Subject) -> Page:
    result = of.result
    drawn = list(plots.every(of))
    labels = words.names(result.cells)
    cells = [_cell(result, number, labels[number], drawn) for number in range(len(result.cells))]
    kinds = {
        kind: [figure(each) for each in drawn if each.name.startswith(kind) and each.cell is None]
        for kind in plots.KINDS
    }
    study = _study(result)
    made = Page(
        title=f"What encryption costs · {result.id}",
        subtitle=words.in_common(result.cells),
        warning=disturbed.warning(result.cells),
        answer=_unbroken(study.verdict) if study else _sentences(result),
        also=Markup("By our method: ") + _sentences(result) if study else Markup(),
        budget=_budget(of),
        basis=_basis(result),
        advice=_advice(of),
        patterns=Markup(patterns("var(--server)", "var(--client)", "var(--ink)", "var(--strong)", "var(--page)")),  # noqa: S704 - nothing of the record
        forest=kinds["forest"],
        protection=list(_protection(result, labels)),
        where=kinds["where"],
        curves=kinds["curve"],
        experiments=list(_experiments(result, labels)),
        cells=cells,
        failed=[each for each in cells if not each.ok],
        study=study,
        published=kinds["published"],
        machine=list(_machine(result)),
        method=list(_method.sentences(of)),
        command=_command(result),
        spec=toml.dump(result.spec) if result.spec else "",
        versions=list(_versions(result)),
        ended=result.ended or "cut off before its end",
    )
    return made._replace(contents=tuple(_contents(made)))


def _contents(made: Page) -> Iterator[Entry]:
    """The sections that the page has, in their order."""
    sections: tuple[tuple[Any, str, str, list[tuple[str, str]]], ...] = (
        (made.study, "h-study", "The published study", []),
        (made.forest, "h-cost", "What it costs", []),
        (made.advice, "h-advice", "What stays within the budget", []),
        (made.failed, "h-failed", "Cells without a number", []),
        (made.protection, "h-protects", "What it costs and what it protects", []),
        (made.where, "h-where", "Where the cost goes", []),
        (made.curves, "h-curves", "Curves", []),
        (made.experiments, "h-experiment", "Cells against each other", []),
        (made.cells, "h-cells", "The cells", [(cell.anchor, cell.name) for cell in made.cells]),
        (made.method, "h-method", "How it was measured", []),
        (made.machine, "h-machine", "The machine", []),
        (True, "h-again", "How to repeat it", []),
    )
    yield from (Entry(anchor, name, below) for there, anchor, name, below in sections if there)


def figure(plot: Plot) -> Figure:
    """Drawn, in the widths that it has."""
    own = {width: Markup(plot.drawn(width, page=True)) for width in plot.charts}  # noqa: S704 - vl-convert escapes its texts
    key = plot.name.partition("-")[0] if plot.cell is not None else ""
    return Figure(
        plot.caption or plot.title,
        plot.finding,
        plot.note,
        own.get("wide", Markup()),
        own.get("narrow", Markup()),
        plot.table,
        key,
    )


def _sentences(result: Result) -> Markup:
    return Markup("<br>").join(_unbroken(each) for each in words.sentences(result))


def _unbroken(text: str) -> Markup:
    """A figure and its % stay in one line; the words are as they were."""
    parts = re.split(r"(95 % CI|[\d.,–×]*\d %|×[\d.,]+(?:–×[\d.,]+)?)", text)
    return Markup("").join(Markup("<span>{}</span>").format(each) if n % 2 else each for n, each in enumerate(parts))


# ── the first screen
# ────────────────────────────────────────────────────────────────────────────────────────────────────


def _budget(of: Subject) -> str:
    """How many cells are within the budget for certain, by their intervals."""
    if of.budget is None:
        return ""
    cells = [cell for cell in of.result.cells if not words.is_control(cell)] or of.result.cells
    known = [(words.main_metric(cell), cell) for cell in cells if words.main_metric(cell)]
    bounds = [words.loss(key, cell.overhead[key])[1:] for key, cell in known]
    within = sum(high <= of.budget for _, high in bounds)
    over = sum(low > of.budget for low, _ in bounds)
    if not bounds:
        return ""
    counts = ((within, "surely within it"), (over, "surely over it"), (len(bounds) - within - over, "not resolved"))
    said = ", ".join(f"{count} {what}" for count, what in counts if count)
    measured = "the one measured cell is" if len(bounds) == 1 else f"of {len(bounds)} measured cells"
    return f"Budget {of.budget * 100:g} %: {measured} {said.removeprefix('1 ') if len(bounds) == 1 else said}, by the intervals' ends."


def _advice(of: Subject) -> list[tuple[bool, str]]:
    """The cheapest mechanisms within the budget, set by set of cells that do the same."""
    if of.budget is None:
        return []
    said = advice.lines(advice.advise(of.result, (), of.budget), of.result)[1:]  # the first says what was asked
    return [(line.startswith(" "), line.strip()) for line in said if line.strip()]


def _basis(result: Result) -> str:
    """What the answer rests on, in one line."""
    known = [cell for cell in result.cells if cell.overhead]
    if not known:
        return ""
    if any(cell.imported for cell in known):
        return f"{words.imported_basis(known)}: neither arm was proven, and no run is paired with another."
    sessions, blocks = max(cell.sessions for cell in known), sum(cell.blocks for cell in known)
    said = f"{sessions} session{'s' * (sessions != 1)}, {blocks:,} blocks; both arms proven before any load"
    if all(cell.layer == "control" for cell in known):
        said = f"{sessions} session{'s' * (sessions != 1)}, {blocks:,} blocks; controls: nothing is encrypted in either arm"
    if any(cell.mode == "quick" for cell in known):
        said += "; one session speaks of this server pair only, a full run has eight"
    warned = sum(bool(cell.warnings) for cell in result.cells)
    if warned:
        said += f"; {warned} of {len(result.cells)} cells with warnings" if len(result.cells) > 1 else "; with warnings"
    return f"{said}."


def _protection(result: Result, labels: Sequence[str]) -> Iterator[Protection]:
    """What is protected alike stands together, with what it costs at least and at most."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for number, cell in enumerate(result.cells):
        if cell.overhead and cell.layer != "control" and cell.imported is None:
            times = Counter(words.protects(cell))
            said = tuple(f"{text} ({count} times)" if count > 1 else text for text, count in times.items())
            alike.setdefault(said, []).append(number)
    for protects, numbers in alike.items():
        cells = [result.cells[number] for number in numbers]
        shown = [(labels[number], f"cell-{number + 1}") for number in numbers]
        costs = list(words.costs(cells[0])) if len(cells) == 1 else list(_spans(cells))
        yield Protection(shown[:MOST_NAMED], max(0, len(shown) - MOST_NAMED), costs, list(protects))


def _spans(cells: Sequence[Cell]) -> Iterator[str]:
    """`operations/s: 15.8 to 75.4 % fewer`, of the figures that stand for a cost; unresolved ones are counted, not ranked."""
    for key in dict.fromkeys(key for cell in cells for key in words.cost_metrics(cell)):
        known = [cell for cell in cells if key in words.cost_metrics(cell)]
        resolved = [cell for cell in known if words.resolution(cell, key) != "unresolved"]
        shown = sorted((cell.overhead[key] for cell in resolved or known), key=lambda each: each.ratio)
        ends = (shown[-1], shown[0]) if key == "throughput" else (shown[0], shown[-1])
        least, most = (words.cost(key, each) for each in ends)
        lost = len(known) - len(resolved)
        doubt = words.UNRESOLVED if not resolved else f" ({lost} more unresolved)" * bool(lost)
        yield f"{words.short(known[0], key)}: {words.both(least, most, ' to ')}{doubt}"


def _experiments(result: Result, labels: Sequence[str]) -> Iterator[Table]:
    """Cells that shared their sessions, each against the reference of its experiment."""
    first: dict[str, str] = {}
    rows = []
    for cell, label in zip(result.cells, labels, strict=True):
        reference = first.setdefault(cell.group, label)
        if cell.against_reference is not None:
            rows.append((label, reference, words.beside(cell.against_reference)))
    if rows:
        yield Table(("cell", "reference", "throughput against the reference (encrypted ÷ plain, both)"), rows)


# ── a cell
# ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _cell(result: Result, number: int, label: str, drawn: Sequence[Plot]) -> Shown:
    cell = result.cells[number]
    ok = bool(cell.overhead)
    return Shown(
        anchor=f"cell-{number + 1}",
        name=label,
        heading=words.heading(cell),
        cost=words.priced(cell) if ok else f"no number: {cell.status.replace('-', ' ')}",
        ok=ok,
        open=len(result.cells) <= FOLD,
        reason=cell.reason,
        verdict=words.verdict(cell) if ok else "",
        figures=list(words.rows(cell)),
        figure_notes=list(_notes(cell, result.cells)),
        plots=[figure(each) for each in drawn if each.cell == number],
        proof=words.proof_line(cell) if ok else "",
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
                words.left_open(each),
                "bad" * (each.severity == "high"),
            )
            for each in words.by_severity(cell.findings)
        ],
        config_diff=[_differs(each) for each in cell.config_diff],
        facts=list(_facts(cell)),
        storage=_storage(cell),
        clients=[*words.logged(cell), *round_trips.lines(cell.chatter, cell.traffic), *_client(cell)],
        warnings=[each.text for each in cell.warnings],
    )


def _notes(cell: Cell, everything: Sequence[Cell]) -> Iterator[str]:
    """What else is said of a cell's figures."""
    if cell.predicted:
        yield words.prediction(cell)
    if planned := capacity.line(cell):
        yield planned
    if limited := limit.line(cell):
        yield limited
    yield from words.taken_apart(cell, everything)
    for what, growth, both in words.stored(cell):
        yield f"stored bytes, {what}: {growth} ({both})"
    if "rotation_s" in cell.key_life:
        yield f"a new key for the encrypted data took {words.number(cell.key_life['rotation_s'])} s"
    if cell.against_reference is not None:
        yield f"against the reference of its experiment: {words.beside(cell.against_reference)}"


def _client(cell: Cell) -> Iterator[str]:
    """What its client costs against the reference's, arm by arm."""
    for key, estimate in cell.client_against_reference.items():
        what, _, arm = key.rpartition("_")
        name = what.replace("_", " ").replace("cpu", "CPU")
        yield f"{name}, {arm} arm, against the reference's client: {words.worded(estimate)} ({words.interval(estimate)})"


def _differs(line: str) -> tuple[str, str, str]:
    """`name: plain | encrypted` in three."""
    name, _, values = line.partition(": ")
    plain, bar, encrypted = values.partition(" | ")
    return (name, plain, encrypted) if bar else (line, "", "")


def _facts(cell: Cell) -> Iterator[tuple[str, str]]:
    """What the cell was, in pairs of words."""
    yield "regime", cell.regime
    yield "rows", f"{cell.rows:,}" if cell.rows else ""
    yield "factors", ", ".join(f"{name}={value}" for name, value in cell.factors.items() if value)
    yield (
        "encryption, as achieved",
        ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in cell.encryption.items() if value),
    )
    yield "cores", ", ".join(f"{who} {where}" for who, where in cell.cores.items() if where)
    yield "slices", f"{cell.slice_seconds:.3g} s each" if cell.slice_seconds else ""
    yield "made the load", cell.client
    carried = cell.carryover
    if carried:
        yield (
            "carry-over between arms",
            f"{carried.get('lambda', 0.0):+.2%} (p = {carried.get('p_value', 1.0):.2g})".replace("%", " %"),
        )
    for arm in ARMS:
        if facts := cell.arms.get(arm, {}):
            kinds = ", ".join(f"{name} {count}" for name, count in facts.get("error_kinds", {}).items())
            done = f"{int(facts.get('operations', 0)):,} operations in {facts.get('seconds', 0.0):.1f} s counted"
            yield f"{arm} arm", f"{done}, {int(facts.get('errors', 0)):,} failed{f' ({kinds})' if kinds else ''}"


def _storage(cell: Cell) -> Table | None:
    """What fio says of both directories, without a server."""
    rows = list(words.storage(cell))
    return Table(("without a server (fio)", "encrypted", "95 % interval", "plain → encrypted"), rows) if rows else None


# ── the run
# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _study(result: Result) -> Report | None:
    if result.study is None:
        return None
    from ciphercost import studies

    return studies.get(result.study.study).report(result.study, result.cells)


MACHINE = {
    "cpu": "CPU",
    "aes": "AES instructions",
    "vaes": "VAES instructions",
    "kernel": "Linux",
    "virtual": "virtual machine",
}


def _machine(result: Result) -> Iterator[tuple[str, str]]:
    for key, value in result.machine.items():
        said = ("yes" if value else "no") if isinstance(value, bool) else str(value)
        if key == "memory" and isinstance(value, int | float):
            said = f"{value / 1e9:.1f} GB"
        yield MACHINE.get(key, key.replace("_", " ")), said


def _command(result: Result) -> str:
    """The command as typed, with this run's seed: so it makes the same random choices again."""
    if not result.command:
        return ""
    seeded = (
        ""
        if "--seed" in result.command
        or any(cell.imported for cell in result.cells)
        or result.command.partition(" ")[2].startswith("replicate")
        else f" --seed {result.seed}"
    )
    return f"{result.command}{seeded}"


def _versions(result: Result) -> Iterator[tuple[str, str]]:
    yield result.tool.get("name", "ciphercost"), result.tool.get("version", "")
    yield from _once((cell.engine, cell.version) for cell in result.cells)
    yield from _once(
        (f"{cell.engine}, {end}'s library", cell.encryption[f"{end}_library"])
        for cell in result.cells
        for end in ("server", "client")
        if cell.encryption.get(f"{end}_library")
    )
    yield from _once(("client", cell.client) for cell in result.cells)
    yield "seed", str(result.seed)


def _once(pairs: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
    yield from ((name, str(value)) for name, value in dict.fromkeys(pairs) if value)
