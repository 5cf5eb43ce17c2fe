"""sheet: one table of a study, and what a study's report consists of; as text 80 columns wide. Pure.

Pages and Markdown render the same sheets as tables of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ciphercost.layout import WIDTH, row, wrap

INDENT = 2


class Sheet(NamedTuple):
    """A table: a title, a head, rows, and a note below it."""

    title: str
    head: tuple[str, ...]
    """Of each column; `as published\\nMySQL 8.0.33` stands in two lines."""
    rows: Sequence[tuple[str, ...]]
    """As long as the head; a row of one text is a heading of those below it."""
    note: str = ""


class Report(NamedTuple):
    """All that is reported of a study, in order."""

    title: str
    verdict: str
    """Whether the published result was replicated: a sentence."""
    compared: str
    """What was compared with what: a sentence. The criterion stands below the first table."""
    sheets: list[Sheet]
    method: list[str]
    """Paragraphs on how the figures were measured."""
    findings: list[str]
    """What the published procedure could not have shown."""


FINDINGS = "What the published procedure could not have told"


def text(report: Report) -> str:
    """As plain words and figures."""
    return "\n".join(_report(report))


def _report(report: Report) -> Iterator[str]:
    yield from wrap(report.verdict, "", "  ")
    yield from wrap(report.compared, "  ", "  ")
    yield ""
    yield from wrap(report.title)
    for sheet in report.sheets:
        yield ""
        yield from lines(sheet)
    for paragraph in report.method:
        yield ""
        yield from wrap(paragraph)
    if report.findings:
        yield ""
        yield f"{FINDINGS}:"
        for finding in report.findings:
            yield from wrap(f"- {finding}", "", "  ")


def lines(sheet: Sheet) -> Iterator[str]:
    """One table: names left, figures right, each as wide as it needs."""
    heads = [each.split("\n") for each in sheet.head]
    deep = max(map(len, heads))
    head = [tuple(("", *[""] * (deep - len(each)), *each)[number + 1] for each in heads) for number in range(deep)]
    whole = [each for each in (*head, *sheet.rows) if len(each) > 1]
    widths = [max(len(each[at]) for each in whole) for at in range(1, len(sheet.head))]
    # Rows below a heading of their own stand further in.
    inset = INDENT * (1 + any(len(each) == 1 for each in sheet.rows))
    wanted = max(len(each[0]) for each in whole) + inset
    gap = 2 if sum(widths) + 2 * len(widths) + wanted <= WIDTH else 1
    label = min(wanted, WIDTH - sum(widths) - gap * len(widths))
    ends, at = [], max(label, INDENT)
    for width in widths:
        at += gap + width
        ends.append(-at)
    if sheet.title:
        yield from wrap(sheet.title)
    for each in (*head, *sheet.rows):
        if any(each):
            yield from _row(each, label, ends, inset)
    if sheet.note:
        yield from wrap(sheet.note, " " * INDENT, " " * INDENT)


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
