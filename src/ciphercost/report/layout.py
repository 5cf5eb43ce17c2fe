"""Wraps text and aligns columns in 80 columns, without cutting words or merging columns. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

WIDTH = 80
DELIMITERS = re.compile(r"(?<=[;,/&|:])")
"""A word longer than a line breaks after one of these: lists of options and paths have no spaces."""


def wrap(text: str, indent: str = "", further: str | None = None, width: int = WIDTH) -> list[str]:
    """The text in lines: `indent` before the first, `further` before the others. A figure and its % stay on one line."""
    behind = further if further is not None else indent + "  "
    lines, line, empty = [], indent, True
    for space, word in re.findall(r"(\s*)(\S+(?: %\S*)?)", text):
        for number, piece in enumerate(_pieces(word, width - len(behind))):
            glue = "" if number else re.sub(r"\s", " ", space)
            if not empty and len(line) + len(glue) + len(piece) > width:
                lines.append(line.rstrip())
                line, glue = behind, ""
            line, empty = line + ("" if empty and lines else glue) + piece, False
    return lines if empty else [*lines, line.rstrip()]


def _pieces(word: str, room: int) -> list[str]:
    """The word, or its parts if no line can hold it: cut after delimiters, or anywhere if there are none."""
    if len(word) <= room:
        return [word]
    pieces = [""]
    for part in DELIMITERS.split(word):
        for at in range(0, len(part), room):
            piece = part[at : at + room]
            if len(pieces[-1]) + len(piece) <= room:
                pieces[-1] += piece
            else:
                pieces.append(piece)
    return [piece for piece in pieces if piece]


Column = tuple[str, int]
"""A text and its place: the column where it begins, or the negative of the column where it ends."""


def row(*columns: Column, width: int = WIDTH) -> list[str]:
    """One row of a table, usually one line. A text that is too long moves the next ones; a text without room gets its own line."""
    texts = [text for text, _ in columns if text]
    if (starts := _side_by_side([column for column in columns if column[0]], width)) is not None:
        line = ""
        for text, at in zip(texts, starts, strict=True):
            line = line.ljust(at) + text
        return [line.rstrip()]
    lines: list[str] = []
    line = ""
    for text, place in columns:
        if not text:
            continue
        at = place if place >= 0 else -place - len(text)
        at = max(at, len(line) + bool(line.strip()), 0)
        if at + len(text) > width and line.strip():
            lines.append(line)
            line, at = "", max(4, width - len(text))
        if at + len(text) > width:
            more = wrap(text, " " * min(at, 4), width=width)
            lines += more[:-1]
            line = more[-1]
        else:
            line = line.ljust(at) + text
    return [*lines, line.rstrip()]


def _side_by_side(columns: Sequence[Column], width: int) -> list[int] | None:
    """Where each text begins if all fit on one line with spaces between them; None if the line is too short."""
    starts: list[int] = []
    free = 0
    for text, place in columns:
        at = max(place if place >= 0 else -place - len(text), free)
        starts.append(at)
        free = at + len(text) + 1
    first = starts[:1]
    free = width + 1
    for number in range(len(starts) - 1, -1, -1):
        starts[number] = min(starts[number], free - 1 - len(columns[number][0]))
        free = starts[number]
    return starts if starts[:1] == first else None


def named(name: str, room: int, columns: Sequence[Column], indent: str = "  ") -> list[str]:
    """A row that starts with its name. A name longer than `room` gets lines of its own above the row."""
    if len(name) <= room:
        return row((f"{indent}{name}", 0), *columns)
    return [*wrap(name, indent), *row(*columns)]


def figure_row(label: str, cost: str, bounds: str, both: str) -> list[str]:
    """One figure of a cell: its label, the cost of encryption, the interval, both arms' levels."""
    return row((label, 2), (cost, -41), (bounds, 43), (both, 61))


GAP = 2
"""Least number of spaces between columns."""


def figure_rows(rows: Sequence[Figure]) -> list[str]:
    """A table of figures with columns as wide as their texts. A row with a longer interval has its label on the line above."""
    return [line for lines in lines_of_figures(rows) for line in lines]


def lines_of_figures(rows: Sequence[Figure]) -> list[list[str]]:
    """The same, row by row."""
    short = [figure for figure in rows if " to " not in figure[2]]
    label = max((len(figure[0]) for figure in rows), default=0)
    bounds, both = (max((len(figure[at]) for figure in short), default=0) for at in (2, 3))
    cost = max((len(figure[1]) for figure in rows), default=0)
    costs_end = max(2 + label + GAP + cost, min(41, WIDTH - 2 * GAP - bounds - both))
    lines: list[list[str]] = []
    for name, change, interval, levels in rows:
        at = costs_end + GAP
        if at + max(len(interval), bounds) + bool(levels) * GAP + len(levels) <= WIDTH:
            levels_at = at + max(len(interval), bounds) + GAP
            lines.append(row((name, 2), (change, -costs_end), (interval, at), (levels, levels_at)))
        else:
            at = max(4 + len(change), min(costs_end, WIDTH - 2 * GAP - len(interval) - len(levels)))
            figures = row((change, -at), (interval, at + GAP), (levels, at + 2 * GAP + len(interval)))
            lines.append([*wrap(name, "  "), *figures])
    return lines


Figure = tuple[str, str, str, str]
"""(label, cost, interval, both arms' levels)."""
