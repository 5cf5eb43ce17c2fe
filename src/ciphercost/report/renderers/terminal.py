"""Blocks as terminal text, 80 columns wide. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ciphercost.model.result import Cell
from ciphercost.model.slices import Finding
from ciphercost.report.blocks import (
    Alarm,
    Block,
    Curve,
    Document,
    Figures,
    Findings,
    Items,
    Note,
    Plotted,
    Section,
    Standing,
    Table,
    Text,
    Warnings,
)
from ciphercost.report.layout import figure_row, figure_rows, lines_of_figures, row, wrap
from ciphercost.report.words.cell_text import by_severity, left_open, proof_line
from ciphercost.report.words.figure_text import printable

FURTHER = dict.fromkeys(("agents", "hop", "link", "log", "statements"), "          ")
"""Indent of a note's further lines: below a proof, aligned with its text."""
MOST_ROWS = 30
"""Rows of a table of figures that are printed, where a longer one has something to say instead."""


def text(of: Document) -> str:
    """A whole document: its answer, then its blocks."""
    lines = [*wrap(of.warning), *wrap(of.answer)]
    for block in of.blocks:
        lines += block_lines(block)
    return printable("\n".join(lines))


def block_lines(block: Block, above: Cell | None = None) -> Iterator[str]:
    """The lines of one block.

    `above`: the cell printed before this one's, with perhaps the same proof and findings; None if they do not count for this cell.
    """
    match block:
        case Standing():
            yield from wrap(f"{block.word}: {block.reason}", "  ")
        case Figures():
            yield from _figures(block)
        case Note(topic="proof"):
            proven = "proven: as above" if above and proof_line(above) == block.text else block.text
            yield from wrap(proven, "  ", "          ")
        case Note(topic="reference" | "client"):
            pass  # a table of the experiment has these
        case Note(topic="cause" | "between"):
            yield from wrap(str(block), "    ", "      ")
        case Note():
            further = " " * (len(block.label) + 4) if block.label else FURTHER.get(block.topic, "    ")
            yield from wrap(str(block), "  ", further)
        case Curve():
            for texts in (block.head, *block.rows):
                yield from row(*zip(texts, (-20, -40, -60), strict=True))
        case Findings():
            if above and list(map(_kind, by_severity(above.findings))) == list(map(_kind, block.findings)):
                yield "  findings: as above"
            else:
                yield from findings_lines(block.findings)
        case Warnings():
            for warning in block.texts:
                yield from wrap(f"! {warning}", "  ", "    ")
        case Text():
            yield from wrap(block.text)
        case Alarm():
            yield from wrap(f"=== {block.title} ===")
            for line in block.lines:
                yield from wrap(line, "    ", "      ")
        case Items():
            for item in [] if block.summary else block.items:
                yield from wrap(item.text, "  ", "    ")
        case Table():
            yield from _table(block)
        case Plotted():
            yield from _table(block.table)
        case Section():
            yield from _section(block)


def _section(of: Section) -> Iterator[str]:
    if of.background:
        return
    yield ""
    yield from wrap(of.title, "", "  ")
    if of.differs:
        yield from wrap(f"compared: {of.differs}", "  ", "    ")
    for block in of.blocks:
        yield from block_lines(block)


def _figures(of: Figures) -> Iterator[str]:
    if of.of in ("cost", "storm", "memory", "replication"):
        yield from figure_rows([(of.head[0], "", "95 % CI", of.head[3]), *of.rows])
    elif of.of in ("change", "level"):
        yield from figure_rows([_head(of.head), *of.rows])
    else:
        if of.of == "storage":
            yield "  storage speed of the same directories, without a server (fio)"
        for figures in of.rows:
            yield from figure_row(*figures)


def _head(head: Sequence[str]) -> tuple[str, str, str, str]:
    """The first line of a table of figures: what the figures are stands above the names of its rows."""
    name, figure, interval, beside = head
    between = " " if figure.endswith(" by") else ": "
    return f"{name}{between}{figure}", "", interval.replace("95 % interval", "95 % CI"), beside


def _table(of: Table) -> Iterator[str]:
    """A table of figures has a row for each; of another table each row is a line; a summary is left out."""
    if of.kind == "summary":
        return
    if of.kind == "list":
        for first, *others in of.rows:
            yield from wrap(f"{first}: {', '.join(filter(None, others))}", "  ", "    ")
        return
    if of.many and len(of.rows) > MOST_ROWS:
        yield from wrap(f"{len(of.rows)} {of.many}", "  ", "    ")
        return
    last = of.narrow or len(of.head) - of.notes
    figures = [_row(texts, of.names, last) for texts in of.rows]
    head, *lines = lines_of_figures([_head(_row(of.head, 1, last, of.names - 1)), *figures])
    yield from head
    for texts, row_lines in zip(of.rows, lines, strict=True):
        yield from row_lines
        if note := "; ".join(filter(None, texts[len(texts) - of.notes :])):
            yield from wrap(note, "       ↑ ", "         ")


def _row(texts: Sequence[str], names: int, last: int, skip: int = 0) -> tuple[str, str, str, str]:
    """(name, figure, its interval, what stands beside it). `skip`: further columns of names."""
    figure, interval, beside = (*texts[names + skip : last], "", "")[:3]
    return _name(texts[:names]), figure, interval, beside


def _name(names: Sequence[str]) -> str:
    """What names a row; a number stands before its name."""
    first, *others = names
    return "  ".join([f"{first:>3}" if others else first, *others])


def findings_lines(findings: list[Finding]) -> Iterator[str]:
    """The findings, the worst first, each with its fix."""
    if findings:
        yield "  findings: what it does not protect"
    for finding in by_severity(findings):
        yield from wrap(f"{finding.severity}: {left_open(finding)}.", "    ", "      ")


def _kind(finding: Finding) -> tuple[str, ...]:
    """What is equal in the same finding of two cells: its text without counts and names of temporary files."""
    return finding.severity, finding.code, re.sub(r"\S*\d\S*", "", finding.text), finding.closes
