"""A published study beside its repetition here, as text 80 columns wide. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ciphercost import studies
from ciphercost.model.result import Cell
from ciphercost.model.study import StudyResult
from ciphercost.report.layout import WIDTH, row, wrap
from ciphercost.studies.sheet import FINDINGS, INCOMPLETE, SOURCES, Report, Sheet, sources

INDENT = 2


def render(result: StudyResult, cells: Sequence[Cell] = ()) -> str:
    """The whole report of a study's result and of the same run's cells."""
    return text(studies.get(result.study).report(result, cells))


def text(report: Report) -> str:
    """The report as text."""
    return "\n".join(_report(report))


def _report(report: Report) -> Iterator[str]:
    if report.lost:
        yield from wrap(f"! {INCOMPLETE}: {report.lost}", "", "  ")
        yield ""
    yield from wrap(report.verdict, "", "  ")
    yield from wrap(report.compared, "  ", "  ")
    yield ""
    yield from wrap(report.title)
    for sheet in report.sheets:
        if not sheet.folded:
            yield ""
            yield from lines(sheet)
    for paragraph in report.method:
        yield ""
        yield from wrap(paragraph)
    if report.sources:
        yield ""
        yield f"{SOURCES}:"
        for source, what in report.sources:
            yield from wrap(f"- {source}: {what}" if what else f"- {source}", "", "  ")
    if report.findings:
        yield ""
        yield f"{FINDINGS}:"
        for finding in report.findings:
            yield from wrap(f"- {finding}", "", "  ")
    for sheet in report.sheets:
        if sheet.folded:
            yield ""
            yield from lines(sheet)


def lines(sheet: Sheet) -> Iterator[str]:
    """One table: names on the left, figures on the right, each column as wide as its texts."""
    heads = [column_head.split("\n") for column_head in sheet.head]
    deep = max(map(len, heads))
    head = [
        tuple(("", *[""] * (deep - len(head_lines)), *head_lines)[number + 1] for head_lines in heads)
        for number in range(deep)
    ]
    whole = [texts for texts in (*head, *sheet.rows) if len(texts) > 1]
    widths = [max(len(texts[at]) for texts in whole) for at in range(1, len(sheet.head))]
    # Rows below a subheading are indented further.
    inset = INDENT * (1 + any(len(texts) == 1 for texts in sheet.rows))
    wanted = max(len(texts[0]) for texts in whole) + inset
    gap = 2 if sum(widths) + 2 * len(widths) + wanted <= WIDTH else 1
    label = min(wanted, WIDTH - sum(widths) - gap * len(widths))
    ends, at = [], max(label, INDENT)
    for width in widths:
        at += gap + width
        ends.append(-at)
    if sheet.title:
        yield from wrap(sheet.title)
    for texts in (*head, *sheet.rows):
        if any(texts):
            yield from _row(texts, label, ends, inset)
    for note in (sheet.note, sources(sheet)):
        if note:
            yield from wrap(note, " " * INDENT, " " * INDENT)


def _row(cells: tuple[str, ...], label: int, ends: Sequence[int], inset: int) -> Iterator[str]:
    name, *figures = cells
    if not figures:
        yield from wrap(name, " " * INDENT)
        return
    columns = list(zip(figures, ends, strict=True))
    if len(name) + inset <= label:
        yield from row((" " * inset + name if name else "", 0), *columns)
        return
    yield from wrap(name, " " * inset)
    if any(figures):
        yield from row(*columns)
