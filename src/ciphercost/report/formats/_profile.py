"""Where the CPU time goes, by function, in the terminal: 80 columns wide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ciphercost.model.result import Cell
from ciphercost.report.layout import WIDTH, named, wrap
from ciphercost.report.words import profile_text

NAMES = 30
"""Longest name of a part or function beside its figures."""


def lines(cells: Sequence[Cell]) -> Iterator[str]:
    """For each end of the cells: its parts, the functions with the largest differences, and how they were found."""
    for cell in cells:
        name = f"{cell.variant or cell.mechanism}: " if len(cells) > 1 else ""
        for end in cell.profile.ends if cell.profile else ():
            yield ""
            yield from wrap(f"{name}{profile_text.title(cell, end)}", "  ", "    ")
            yield from _row(*profile_text.HEAD)
            for line in profile_text.parts(end):
                yield from _row(*line)
            yield from wrap("functions with the largest differences, without what they call", "    ")
            for line in profile_text.symbols(end, profile_text.MOST_SYMBOLS):
                yield from _row(*line)
            for note in profile_text.notes(cell, end):
                yield from wrap(f"* {note}", "    ", "      ")


def _row(name: str, plain: str, encrypted: str, added: str, bounds: str) -> list[str]:
    return named(name, NAMES, [(plain, -42), (encrypted, -53), (added, -62), (bounds, -WIDTH)], "    ")
