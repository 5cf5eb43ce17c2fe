"""GitHub Markdown, short enough for a comment on a pull request: the answer, one table, and folded details.

Every text of the record is escaped: a server's version or an error can't format, link or mention anyone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ciphercost.estimate import curves, notation
from ciphercost.host.volumes import disk
from ciphercost.model.profile import EndProfile
from ciphercost.model.result import Cell, Result
from ciphercost.report import advice, disturbed, document, first_screen
from ciphercost.report.advice import Report
from ciphercost.report.markdown import LONGEST, MOST, SHORT, code, escaped, fitting, fold, item, row
from ciphercost.report.renderers import md as blocks_as_markdown
from ciphercost.report.words import added_text, cell_text, figure_text, pair_text, profile_text, verdict_text
from ciphercost.studies.sheet import FINDINGS, INCOMPLETE, SOURCES, Sheet, sources
from ciphercost.studies.sheet import Report as StudyReport

SHOWS_MONEY = True
IMPORTED = {True: "runs differ", False: "unresolved", None: "differs before correction only"}
"""Verdicts of imported cells, after Holm's correction for their number."""


def render(result: Result) -> str:
    """At most MOST characters. If not everything fits, details and then rows are left out from the end, with a note."""
    screen = first_screen.of(result)
    first, *further = first_screen.in_order(screen)
    incomplete = ""
    if result.study is not None:
        from ciphercost import studies

        report = studies.get(result.study.study).report(result.study, result.cells)
        first, further = report.verdict, [report.compared, f"By our method: {first}", *further]
        incomplete = report.lost
    head = [f"**{INCOMPLETE}**: {escaped(incomplete, LONGEST)}", ""] if incomplete else []
    head += [f"**{escaped(screen.disturbed)}**", ""] if screen.disturbed else []
    head += [f"### {escaped(first)}", "", *(line for sentence in further for line in (escaped(sentence), ""))]
    head += [escaped(screen.basis), ""] if screen.basis else []
    head += [line for limit in screen.limits for line in (f"**Limited**: {escaped(limit, LONGEST)}", "")]
    foot = ["", f"<sub>{escaped(footer(result))}</sub>"]
    reason_given = verdict_text.told(result)
    rows = list(table(result.cells, reason_given))
    room = MOST - sum(len(line) + 1 for line in (*head, *foot)) - 400
    shown = list(fitting(rows, room))
    lost = len(rows) - len(shown)
    if lost:
        shown.append(f"\n{lost} more cells did not fit into a comment.")
    room -= sum(len(line) + 1 for line in shown)
    folded = [*(details(cell, result.cells, reason_given) for cell in result.cells), *whole_run(result)]
    details_shown = list(fitting(folded, room))
    if len(details_shown) < len(folded):
        details_shown.append(
            f"\nDetails of {len(folded) - len(details_shown)} more did not fit into a comment; see the full report."
        )
    return "\n".join([*head, *shown, "", *details_shown, *foot])


def table(cells: Sequence[Cell], reason_given: str = "") -> Iterator[str]:
    """A row per cell. One without a number has its reason, unless it is `reason_given`: that which the headline gives."""
    added = any(added_text.of(cell) for cell in cells)
    arms = pair_text.arrow(pair_text.of(cells))
    head = ("adds to CPU/op", "95 % interval", arms, "operations/s", "verdict") if added else RATIOS
    yield row("cell", *head)
    yield row("---", *("---" if column in (*LEFT, arms) else "---:" for column in head))
    for name, cell in zip(cell_text.names(cells), cells, strict=True):
        named = escaped(name, SHORT)
        standing = f"**{cell_text.standing(cell)}**" if cell_text.standing(cell) else ""
        if not figure_text.lead_metric(cell):
            reason = "" if cell.reason == reason_given else escaped(cell.reason, SHORT)
            yield row(named, standing, *[""] * (len(head) - 2), reason)
            continue
        outcome = IMPORTED[verdict_text.runs_differ(cell)] if cell.imported is not None else cell.verdict
        verdict = " ".join(word for word in (outcome, standing) if word)
        yield row(named, *(_added(cell) if added else _ratios(cell)), verdict)


RATIOS = ("cost", "95 % interval", "CPU/op", "95 % interval", "verdict")
LEFT = ("95 % interval", "verdict")


def _added(cell: Cell) -> list[str]:
    """What is added, to what, and what that does to the rate; the lead figure alone where CPU times are unknown."""
    if (added_cost := added_text.of(cell)) is None:
        key = figure_text.lead_metric(cell)
        estimate = cell.overhead[key]
        changed = notation.of_what(figure_text.cost(key, estimate), figure_text.short(cell, key))
        return [changed, figure_text.bounds(key, estimate), "", ""]
    rate = cell.overhead.get("throughput")
    return [
        *added_text.figures(added_cost),
        added_text.base(added_cost),
        figure_text.cost("throughput", rate) if rate else "",
    ]


def _ratios(cell: Cell) -> list[str]:
    key = figure_text.lead_metric(cell)
    estimate = cell.overhead[key]
    beside = cell.overhead.get(figure_text.cpu_metric(cell))
    others = (
        ["", ""]
        if beside is None or key == figure_text.cpu_metric(cell)
        else [
            figure_text.cost(figure_text.cpu_metric(cell), beside),
            figure_text.bounds(figure_text.cpu_metric(cell), beside),
        ]
    )
    changed = notation.of_what(figure_text.cost(key, estimate), figure_text.short(cell, key))
    return [changed, figure_text.bounds(key, estimate), *others]


def details(cell: Cell, everything: Sequence[Cell] = (), reason_given: str = "") -> str:
    """Every figure of a cell, its proofs and its warnings, folded. `reason_given`: the one that the headline gives."""
    heading = cell_text.heading(cell) + (f" · {cell.variant}" if cell.variant else "")
    return fold(heading, _details(cell, everything, reason_given))


def _details(cell: Cell, everything: Sequence[Cell], reason_given: str) -> Iterator[str]:
    known = (
        cell.reason if not cell.overhead and (cell.reason == reason_given or len(escaped(cell.reason)) <= SHORT) else ""
    )
    yield from blocks_as_markdown.lines(document.of_cell(cell, everything), known)
    for end in cell.profile.ends if cell.profile and cell.overhead else ():
        yield from profiled(cell, end)


def profiled(cell: Cell, end: EndProfile) -> Iterator[str]:
    """Where one end's CPU time goes: its parts, and how they were found."""
    yield ""
    yield f"**{escaped(profile_text.title(cell, end))}**"
    yield ""
    yield row(*profile_text.HEAD)
    yield row("---", *["---:"] * (len(profile_text.HEAD) - 1))
    yield from (row(escaped(line.name), *map(escaped, line[1:])) for line in profile_text.parts(end))
    yield ""
    yield from (item(note) for note in profile_text.notes(cell, end))


def advice_list(report: Report, result: Result) -> str:
    """The advice as a list."""
    lines = advice.lines(report, result)
    warning = disturbed.warning(result.cells)
    markdown = [*([f"**{escaped(warning)}**\n"] if warning else []), f"### {escaped(lines[0])}"]
    for line in lines[1:]:
        inset = len(line) - len(line.lstrip())
        markdown.append(
            f"{' ' * (inset - 2)}- {escaped(line.strip())}" if inset else f"\n**{escaped(line)}**\n" if line else ""
        )
    return "\n".join(markdown)


def whole_run(result: Result) -> Iterator[str]:
    """What concerns several cells together, as in the terminal."""
    from ciphercost.report.formats import terminal

    if result.study is not None:
        from ciphercost import studies

        report = studies.get(result.study.study).report(result.study, result.cells)
        yield fold(result.study.title, study(report))
        yield from (fold(sheet.title, sheet_lines(sheet)) for sheet in report.sheets if sheet.folded)
    if where := list(terminal.parts(result)):
        yield fold("where the cost comes from", [code("\n".join(where))])
    for curve in curves.shown(result.curves):
        lines = list(terminal.curve(curve))
        yield fold(lines[0], [code("\n".join(lines[1:]))])


def study(report: StudyReport) -> Iterator[str]:
    """Whether a published study was replicated, and its tables."""
    yield f"**{escaped(report.verdict)}**"
    yield ""
    yield escaped(report.compared)
    for sheet in report.sheets:
        if not sheet.folded:
            yield ""
            yield f"**{escaped(sheet.title)}**"
            yield ""
            yield from sheet_lines(sheet)
    for paragraph in report.method:
        yield ""
        yield escaped(paragraph)
    if report.sources:
        yield ""
        yield f"{SOURCES}:"
        yield ""
        yield from (item(f"{source}: {what}" if what else source, 0) for source, what in report.sources)
    yield ""
    yield f"{FINDINGS}:"
    yield ""
    yield from (item(finding, 0) for finding in report.findings)


def sheet_lines(sheet: Sheet) -> Iterator[str]:
    """A table of a study, and its note."""
    yield row(*(escaped(" ".join(column.split())) for column in sheet.head))
    yield row("---", *["---:"] * (len(sheet.head) - 1))
    for texts in sheet.rows:
        # Markdown has no cells that span columns, so a subheading is a row with empty cells.
        columns = (
            [f"**{escaped(texts[0])}**"] + [""] * (len(sheet.head) - 1) if len(texts) == 1 else map(escaped, texts)
        )
        yield row(*columns)
    for note in (sheet.note, sources(sheet)):
        if note:
            yield ""
            yield escaped(note)


def footer(result: Result) -> str:
    machine = result.machine
    if any(cell.imported for cell in result.cells):
        return f"imported: {cell_text.imported_basis(result.cells)} · run {result.id} · not measured by ciphercost"
    disk_words = disk.words(machine)
    below = f" · {escaped(disk_words)}" if disk_words else ""
    return (
        f"{machine.get('cpu')}, {machine.get('cores')} cores, Linux {machine.get('kernel')}{below} · run {result.id}, seed {result.seed} · "
        f"{result.tool.get('name', 'ciphercost')} {result.tool.get('version', '')}"
    )
