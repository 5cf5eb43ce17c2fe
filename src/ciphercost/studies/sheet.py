"""The parts of a study's report: tables, cited cells, texts. Every format renders them in its own way. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
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
    found = next((each.source for each in figures if each and each.published is not None and each.source), "")
    if not found:
        return text
    cell = Cited(text)
    cell.source = found
    return cell


def anchor(source: str) -> str:
    """`published-table-ii`: the page anchor of that table's entry. Pure."""
    return "published-" + re.sub(r"[^a-z0-9]+", "-", source.lower()).strip("-")


def sources(sheet: Sheet) -> str:
    """`As published: Table VI (time); Table II (select: %user, %system).`, for text formats, which have no links. Pure."""
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
    """The rows of one source, with their headings if another source has rows of the same name."""
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
    """One entry per column; `as published\\nMySQL 8.0.33` takes two lines."""
    rows: Sequence[tuple[str, ...]]
    """As long as the head; a row of one text is a heading for the rows below."""
    note: str = ""


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


SOURCES = "Published tables and figures that these numbers come from"
FINDINGS = "What the published procedure could not show"
