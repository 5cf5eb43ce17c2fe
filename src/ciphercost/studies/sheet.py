"""The parts of a study's report: tables, cited cells, texts. Every format renders them in its own way. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ciphercost.model.study import StudyFigure


class Cited(str):
    """A cell with a published number and the published table that it comes from."""

    __slots__ = ("source",)
    source: str

    @property
    def anchor(self) -> str:
        return anchor(self.source)


def cite(text: str, *figures: StudyFigure | None) -> str:
    """Mark a cell's text with the source of the first of these figures that has one. Pure."""
    source = next(
        (figure.source for figure in figures if figure and figure.published is not None and figure.source), ""
    )
    if not source:
        return text
    cell = Cited(text)
    cell.source = source
    return cell


def worded(names: Iterable[object]) -> str:
    """`a, b and c`. Pure."""
    *first, last = [str(name) for name in names] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def anchor(source: str) -> str:
    """`published-table-ii`: the page anchor of that table's entry. Pure."""
    return "published-" + re.sub(r"[^a-z0-9]+", "-", source.lower()).strip("-")


def sources(sheet: Sheet) -> str:
    """`As published: Table VI (time); Table II (select: %user, %system).`, for text formats, which have no links. Pure."""
    places: dict[str, list[tuple[str, str]]] = {}
    heading = ""
    for row in sheet.rows:
        if len(row) == 1:
            heading = row[0]
        for cell in row:
            if isinstance(cell, Cited):
                places.setdefault(cell.source, []).append((heading, row[0]))
    if len(places) < 2:
        return "".join(f"As published: {source}." for source in places)
    return f"As published: {'; '.join(f'{source} ({_rows(places, source)})' for source in places)}."


def _rows(places: dict[str, list[tuple[str, str]]], source: str) -> str:
    """The rows of one source, with their headings if another source has rows of the same name."""
    rows = places[source]
    names = dict.fromkeys(name for _, name in rows)
    if not any(name in names for other in places if other != source for _, name in places[other]):
        return ", ".join(names)
    by_heading: dict[str, list[str]] = {}
    for heading, name in rows:
        by_heading.setdefault(heading, []).append(name)
    return "; ".join(
        f"{heading}: {', '.join(row_names)}" if heading else ", ".join(row_names)
        for heading, row_names in by_heading.items()
    )


class Sheet(NamedTuple):
    """A table: a title, a head, rows, and a note below it."""

    title: str
    head: tuple[str, ...]
    """One entry per column; `as published\\nMySQL 8.0.33` takes two lines."""
    rows: Sequence[tuple[str, ...]]
    """As long as the head; a row of one text is a heading for the rows below."""
    note: str = ""
    folded: bool = False
    """Single values that few readers want: pages and Markdown fold the table, and text has it at its end."""


class Report(NamedTuple):
    """Everything that is reported on a study, in order."""

    title: str
    verdict: str
    """Whether the published result was replicated: a sentence."""
    compared: str
    """What was compared with what: a sentence. The criterion stands below the first table."""
    sheets: list[Sheet]
    method: list[str]
    """Paragraphs on how the figures were measured."""
    findings: list[str]
    """What the published procedure could not show."""
    sources: Sequence[tuple[str, str]] = ()
    """The published tables and figures behind the numbers, and what each holds."""
    lost: str = ""
    """What the run has no number for, and why. It stands above everything else; empty: nothing is missing."""


INCOMPLETE = "Incomplete"
"""Word before a report's `lost`."""
SOURCES = "Published tables and figures that these numbers come from"
FINDINGS = "What the published procedure could not show"
