"""sheet: one table of a study, and what a study's report consists of; as text 80 columns wide. Pure.

Pages and Markdown render the same sheets as tables of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ciphercost.layout import WIDTH, row, wrap
from ciphercost.model import StudyFigure

INDENT = 2


class Cited(str):
    """A cell with a published number, and the published table that it comes from."""

    __slots__ = ("source",)
    source: str

    @property
    def anchor(self) -> str:
        return anchor(self.source)


def cite(text: str, *figures: StudyFigure | None) -> str:
    """The text of a cell, with the source of the first of these figures that has one. Pure."""
    found = next((each.source for each in figures if each and each.published is not None and each.source), "")
    if not found:
        return text
    cell = Cited(text)
    cell.source = found
    return cell


def anchor(source: str) -> str:
    """`published-table-ii`: where a page lists that table. Pure."""
    return "published-" + re.sub(r"[^a-z0-9]+", "-", source.lower()).strip("-")


def sources(sheet: Sheet) -> str:
    """`As published: Table VI (time); Table II (select: %user, %system).`, for texts, which have no links. Pure."""
    found: dict[str, list[tuple[str, str]]] = {}
    heading = ""
    for each in sheet.rows:
        if len(each) == 1:
            heading = each[0]
        for cell in each:
            if isinstance(cell, Cited):
                found.setdefault(cell.source, []).append((heading, each[0]))
    if len(found) < 2:
        return "".join(f"As published: {source}." for source in found)
    return f"As published: {'; '.join(f'{source} ({_rows(found, source)})' for source in found)}."


def _rows(found: dict[str, list[tuple[str, str]]], source: str) -> str:
    """The rows of one source; below which heading they stand, where another source has rows of the same name."""
    own = found[source]
    names = dict.fromkeys(name for _, name in own)
    if not any(name in names for other in found if other != source for _, name in found[other]):
        return ", ".join(names)
    by_heading: dict[str, list[str]] = {}
    for heading, name in own:
        by_heading.setdefault(heading, []).append(name)
    return "; ".join(
        f"{heading}: {', '.join(each)}" if heading else ", ".join(each) for heading, each in by_heading.items()
    )


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
    sources: Sequence[tuple[str, str]] = ()
    """The published tables and figures that the numbers come from, and what each holds."""


SOURCES = "Published tables and figures that these numbers come from"
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
