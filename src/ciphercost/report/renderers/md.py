"""Blocks as GitHub Markdown, short enough for a comment on a pull request. Pure.

Every text of the record is escaped: a server's version or an error can't format, link or mention anyone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
from ciphercost.report.markdown import LONGEST, MOST, SHORT, escaped, fitting, fold, in_row, item, row
from ciphercost.report.words import cell_text

ALARM = 1000
"""Longest text of a warning above everything else, in characters."""
TITLES = {
    "cost": "figure",
    "storage": "without a server (fio)",
    "stored": "size",
    "storm": "in a storm",
    "memory": "held by",
    "replication": "of a replica",
}
"""Heads of the first column."""
TABLES = (Figures, Curve, Table, Plotted)
"""Blocks that an empty line separates from what is around them."""
ROOM = 400
"""Characters for the notes on what did not fit."""


def text(of: Document) -> str:
    """A whole document of at most MOST characters. What does not fit is left out from the end, with a note.

    The answer and what may turn it over stand first, then tables and lists, then folded sections.
    """
    head = [f"**{escaped(of.warning, ALARM)}**", ""] if of.warning else []
    head += [f"### {f'{of.sign} '.lstrip()}{escaped(of.answer)}", ""]
    for block in of.blocks:
        if isinstance(block, Alarm | Text):
            head += [*lines([block]), ""]
    rows = list(lines([block for block in of.blocks if not isinstance(block, Alarm | Text | Section)]))
    rows += [""] * bool(rows and rows[-1])
    sections = [_section(block) for block in of.blocks if isinstance(block, Section)]
    room = MOST - sum(len(line) + 1 for line in head) - ROOM
    shown, room = _fitted(rows, room, "{} more rows did not fit into a comment.")
    details, _ = _fitted(sections, room, "Details of {} more did not fit into a comment.")
    return "\n".join([*head, *shown, *details]).rstrip("\n")


def _fitted(pieces: Sequence[str], room: int, lost: str) -> tuple[list[str], int]:
    """The first pieces that fit, with a note on how many don't, and the room that is left."""
    shown = list(fitting(pieces, room))
    if missing := sum(bool(piece) for piece in pieces[len(shown) :]):
        shown.append(f"\n{lost.format(missing)}")
    return shown, room - sum(len(line) + 1 for line in shown)


def _section(of: Section) -> str:
    inner_lines = list(lines(of.blocks))
    if of.folded:
        return fold(f"{of.title}: {of.differs}" if of.differs else of.title, inner_lines)
    return "\n".join([f"**{escaped(of.title, SHORT)}**", "", *inner_lines, ""])


def lines(blocks: Sequence[Block], known: str = "") -> Iterator[str]:
    """The lines of blocks. `known`: the reason that a cell has no figures, if the answer or a table gives it already."""
    last = ""
    for block in blocks:
        if last and isinstance(block, TABLES):
            yield ""
        for last in _block(block, known):
            yield last


def _block(block: Block, known: str) -> Iterator[str]:
    match block:
        case Standing():
            yield item(block.word if block.reason in ("", known) else f"{block.word}: {block.reason}")
            yield from (item(cell_text.failed_proof(proof)) for proof in block.failed)
        case Figures():
            named = block.of in TITLES
            head = (TITLES[block.of], block.head[0], "95 % interval", block.head[3]) if named else block.head
            yield from (row(*map(in_row, head)), row("---", "---:", "---", "---"))
            yield from (row(*map(in_row, texts)) for texts in block.rows)
            yield ""
        case Curve():
            yield from (row(*block.head), row("---:", "---:", "---:"), *(row(*texts) for texts in block.rows), "")
        case Note():
            yield item(str(block), 2 * LONGEST if block.topic == "proof" else LONGEST)
        case Findings():
            yield from (
                item(f"finding, {finding.severity}: {cell_text.left_open(finding)}") for finding in block.findings
            )
        case Warnings():
            yield from (item(f"warning: {warning}") for warning in block.texts)
        case Text():
            yield escaped(block.text)
        case Alarm():
            yield f"> **{escaped(block.title)}**"
            yield from (f"> {escaped(line, ALARM)}" for line in block.lines)
        case Items():
            for one in block.items:
                item_text = f"{one.text}: {one.details}" if one.details else one.text
                most = LONGEST * (1 + block.summary)
                yield f"- {one.sign} {escaped(item_text, most)}" if one.sign else item(item_text, most)
        case Table():
            yield from _table(block)
        case Plotted():
            yield from _table(block.table)
        case Section():
            yield _section(block)


def _table(of: Table) -> Iterator[str]:
    """A table, below its title if the report folds it elsewhere."""
    if of.minor:
        yield f"**{escaped(of.title, SHORT)}**"
        yield ""
    yield row(*map(in_row, of.head))
    yield row(*("---:" if number in of.right else "---" for number in range(len(of.head))))
    yield from (row(*map(in_row, texts)) for texts in of.rows)
    yield ""
