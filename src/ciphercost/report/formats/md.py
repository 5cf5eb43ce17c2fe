"""GitHub Markdown, short enough for a comment on a pull request: the answer, one table, and folded details.

Every text of the record is escaped: a server's version or an error can't format, link or mention anyone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ciphercost.estimate import curves, notation
from ciphercost.host.volumes import disk
from ciphercost.model.profile import EndProfile
from ciphercost.model.result import Cell, Result
from ciphercost.report import advice, disturbed, objective
from ciphercost.report.advice import Report
from ciphercost.report.words import cell_notes, cell_text, figure_text, profile_text, verdict_text
from ciphercost.studies.sheet import FINDINGS, SOURCES, sources
from ciphercost.studies.sheet import Report as StudyReport

SHOWS_MONEY = True
MOST = 65_536
"""Longest comment on GitHub, in characters."""
LONGEST = 300
"""Longest reason or warning, in characters."""
SHORT = 120
"""Longest text in a table, which may have many."""

BREAK = "\u200b"
"""A zero-width space."""

IMPORTED = {True: "runs differ", False: "unresolved", None: "differs before correction only"}
"""Verdicts of imported cells, after Holm's correction for their number."""

_SPECIAL = re.compile(r"[\\`*|<>\[\]&~$^!{}]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|:(?=//)|(?<=www)\.")
_MENTIONS = re.compile(r"[@#]|(?i:gh)-(?=\d)|:(?=[\w+-]+:)")
"""GitHub mentions, links and draws emoji even from character references; a zero-width space prevents it."""
_LEADING = re.compile(r"^(?:[-+=#]|\d+[.)])")


def render(result: Result) -> str:
    """At most MOST characters. If not everything fits, details and then rows are left out from the end, with a note."""
    first, *further = verdict_text.sentences(result)
    if result.study is not None:
        from ciphercost import studies

        report = studies.get(result.study.study).report(result.study, result.cells)
        first, further = report.verdict, [report.compared, f"By our method: {first}", *further]
    warning = disturbed.warning(result.cells)
    head = [f"**{escaped(warning)}**", ""] if warning else []
    head += [f"### {escaped(first)}", "", *(line for each in further for line in (escaped(each), ""))]
    foot = ["", f"<sub>{escaped(footer(result))}</sub>"]
    said = verdict_text.told(result)
    rows = list(table(result.cells, said))
    room = MOST - sum(len(line) + 1 for line in (*head, *foot)) - 400
    shown = list(fitting(rows, room))
    lost = len(rows) - len(shown)
    if lost:
        shown.append(f"\n{lost} more cells did not fit into a comment.")
    room -= sum(len(line) + 1 for line in shown)
    folded = [*(details(cell, result.cells, said) for cell in result.cells), *whole_run(result)]
    details_shown = list(fitting(folded, room))
    if len(details_shown) < len(folded):
        details_shown.append(
            f"\nDetails of {len(folded) - len(details_shown)} more did not fit into a comment; see the full report."
        )
    return "\n".join([*head, *shown, "", *details_shown, *foot])


def fitting(pieces: Iterable[str], room: int) -> Iterator[str]:
    """The first pieces that fit into `room` characters, including line ends."""
    for piece in pieces:
        room -= len(piece) + 1
        if room < 0:
            return
        yield piece


def table(cells: Sequence[Cell], said: str = "") -> Iterator[str]:
    """A row per cell. A cell without a number has its reason, unless it is what the headline `said`."""
    leads = [figure_text.lead_metric(cell) for cell in cells]
    other = "operations/s" if leads and all("cpu" in lead for lead in leads if lead) and any(leads) else "CPU/op"
    yield row("cell", "cost", "95 % interval", other, "95 % interval", "verdict")
    yield row("---", "---:", "---", "---:", "---", "---")
    for name, cell in zip(cell_text.names(cells), cells, strict=True):
        key = figure_text.lead_metric(cell)
        if not key:
            yield row(
                escaped(name, SHORT),
                f"**{cell_text.standing(cell)}**",
                "",
                "",
                "",
                "" if cell.reason == said else escaped(cell.reason, SHORT),
            )
            continue
        estimate = cell.overhead[key]
        second = "throughput" if other == "operations/s" else figure_text.cpu_metric(cell)
        beside = cell.overhead.get(second)
        others = ("", "") if beside is None else (figure_text.cost(second, beside), figure_text.bounds(second, beside))
        named = escaped(name, SHORT)
        standing = f"**{cell_text.standing(cell)}**" if cell_text.standing(cell) else ""
        found = IMPORTED[verdict_text.runs_differ(cell)] if cell.imported is not None else cell.verdict
        verdict = " ".join(word for word in (found, standing) if word)
        changed = notation.of_what(figure_text.cost(key, estimate), figure_text.short(cell, key))
        yield row(named, changed, figure_text.bounds(key, estimate), *others, verdict)


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def details(cell: Cell, everything: Sequence[Cell] = (), said: str = "") -> str:
    """Every figure of a cell, its proofs and its warnings, folded. `said`: the reason that the headline gives."""
    heading = cell_text.heading(cell) + (f" · {cell.variant}" if cell.variant else "")
    return fold(heading, _details(cell, everything, said))


def _details(cell: Cell, everything: Sequence[Cell], said: str) -> Iterator[str]:
    figures = list(figure_text.rows(cell))
    if figures:
        yield row("figure", "what encryption costs", "95 % interval", "plain → encrypted")
        yield row("---", "---:", "---", "---")
        yield from (row(each.label, each.cost, each.interval, each.levels) for each in figures)
        yield ""
        yield from (item(each) for each in (*figure_text.without_ratio(cell), figure_text.opening(cell)) if each)
    if cell.status != "ok":
        # The headline or the table has the reason of a cell without figures, unless it is too long for the table.
        known = not figures and (cell.reason == said or len(escaped(cell.reason)) <= SHORT)
        yield item(cell_text.standing(cell) if known else f"{cell_text.standing(cell)}: {cell.reason}")
    yield from map(item, cell_notes.failed_proofs(cell))
    if not figures:
        return
    if cell.against_reference is not None:
        yield item(f"against {cell_text.against(everything, cell)}: {figure_text.beside(cell.against_reference)}")
    yield from (item(f"{note}") for note in cell_notes.consequences(cell))
    if cell.objective is not None:
        yield item(objective.line(cell))
    yield item(f"verdict: {verdict_text.verdict(cell)}")
    yield item(cell_text.proof_line(cell), 2 * LONGEST)
    yield from map(item, cell_notes.load(cell))
    for end in cell.profile.ends if cell.profile else ():
        yield from profiled(cell, end)
    for each in cell_text.by_severity(cell.findings):
        yield item(f"finding, {each.severity}: {cell_text.left_open(each)}")
    for warning in cell.warnings:
        yield item(f"warning: {warning.text}")


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
    said = [*([f"**{escaped(warning)}**\n"] if warning else []), f"### {escaped(lines[0])}"]
    for line in lines[1:]:
        inset = len(line) - len(line.lstrip())
        said.append(
            f"{' ' * (inset - 2)}- {escaped(line.strip())}" if inset else f"\n**{escaped(line)}**\n" if line else ""
        )
    return "\n".join(said)


def whole_run(result: Result) -> Iterator[str]:
    """What concerns several cells together, as in the terminal."""
    from ciphercost.report.formats import terminal

    if result.study is not None:
        from ciphercost import studies

        yield fold(result.study.title, study(studies.get(result.study.study).report(result.study, result.cells)))
    if result.parts:
        yield fold("where the cost comes from", [code("\n".join(terminal.parts(result)))])
    for each in curves.shown(result.curves):
        lines = list(terminal.curve(each))
        yield fold(lines[0], [code("\n".join(lines[1:]))])


def study(report: StudyReport) -> Iterator[str]:
    """Whether a published study was replicated, and its tables."""
    yield f"**{escaped(report.verdict)}**"
    yield ""
    yield escaped(report.compared)
    for sheet in report.sheets:
        yield ""
        yield f"**{escaped(sheet.title)}**"
        yield ""
        yield row(*(escaped(" ".join(each.split())) for each in sheet.head))
        yield row("---", *["---:"] * (len(sheet.head) - 1))
        for each in sheet.rows:
            # Markdown has no cells that span columns, so a subheading is a row with empty cells.
            own = [f"**{escaped(each[0])}**"] + [""] * (len(sheet.head) - 1) if len(each) == 1 else map(escaped, each)
            yield row(*own)
        for note in (sheet.note, sources(sheet)):
            if note:
                yield ""
                yield escaped(note)
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
    yield from (item(each, 0) for each in report.findings)


def fold(title: str, lines: Iterable[str]) -> str:
    return "\n".join([f"<details><summary>{escaped(title, LONGEST)}</summary>", "", *lines, "", "</details>"])


def item(text: str, most: int = LONGEST) -> str:
    return f"- {escaped(text, most)}"


def code(text: str) -> str:
    """The text unchanged, in a fence longer than any fence inside it."""
    text = figure_text.printable(text)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def footer(result: Result) -> str:
    machine = result.machine
    if any(cell.imported for cell in result.cells):
        return f"imported: {cell_text.imported_basis(result.cells)} · run {result.id} · not measured by ciphercost"
    said = disk.words(machine)
    below = f" · {escaped(said)}" if said else ""
    return (
        f"{machine.get('cpu')}, {machine.get('cores')} cores, Linux {machine.get('kernel')}{below} · run {result.id}, seed {result.seed} · "
        f"{result.tool.get('name', 'ciphercost')} {result.tool.get('version', '')}"
    )


def escaped(text: str, most: int = 0) -> str:
    """One line, escaped for Markdown: formatting characters become character references.

    A zero-width space follows what would mention or link on GitHub (`@name`, `#12`, `GH-12`, `:tada:`). `most`: longest text in
    characters; an ellipsis replaces the rest.
    """
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    if most and len(line) > most:
        line = line[: most - 1].rstrip() + "…"
    # The text itself can't contain zero-width spaces, which are not printable. They go in before the references, which contain a #.
    line = _MENTIONS.sub(lambda match: f"{match[0]}{BREAK}", line)
    line = _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", line).replace(BREAK, "&#8203;")
    # These begin a list or underline a heading, but only at the start of a line.
    return _LEADING.sub(lambda match: "".join(f"&#{ord(letter)};" for letter in match[0]), line)
