"""The content of the page of a document: of a trend, of a run over machines. Pure except for the drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ciphercost.report.blocks import Block, Document, Figures, Items, Note, Plotted, Section
from ciphercost.report.formats.html._content import AGAIN, Entry
from ciphercost.report.formats.html._figure import Figure, figure
from ciphercost.report.plots import Table


class Shown(NamedTuple):
    """One block as the template takes it."""

    kind: str
    """Its type: `Note`."""
    block: Block
    anchor: str = ""
    text: str = ""
    """A note, as a sentence."""
    table: Table | None = None
    plot: Figure | None = None
    inner: Sequence[Shown] = ()
    """The blocks of a section."""


class Page(NamedTuple):
    """Everything that the template shows."""

    title: str
    kind: str
    warning: str
    answer: str
    blocks: list[Shown]
    command: str
    ended: str
    contents: Sequence[Entry]


def page(of: Document) -> Page:
    """The page."""
    blocks = [
        shown
        for number, block in enumerate(of.blocks, 1)
        for shown in _shown([block], f"section-{number}")
        if not (isinstance(block, Items) and block.summary)
    ]
    contents = [Entry(shown.anchor, shown.block.title) for shown in blocks if isinstance(shown.block, Section)]
    contents += [AGAIN] * bool(of.command)
    return Page(of.title, of.kind, of.warning, of.answer, blocks, of.command, of.ended, contents)


def _shown(blocks: Sequence[Block], anchor: str = "") -> Iterator[Shown]:
    for block in blocks:
        kind = type(block).__name__
        match block:
            case Note():
                sentence = str(block)
                yield Shown(kind, block, text=f"{sentence[0].upper()}{sentence[1:]}.")
            case Figures():
                yield Shown(kind, block, table=Table(block.head, block.rows))
            case Plotted():
                yield Shown(kind, block, plot=figure(block.draw()))
            case Section():
                yield Shown(kind, block, anchor, inner=list(_shown(block.blocks)))
            case _:
                yield Shown(kind, block)
