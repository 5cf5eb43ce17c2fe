"""Reads a table in portions of a few megabytes, however long its rows are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ciphercost.engines.capabilities.dumps import Rows

FIRST_ROWS, MOST_ROWS = 200, 20_000
WANTED_LETTERS = 2_000_000
"""Characters of a portion, as far as the rows before tell how long the next ones are."""
COPY = "ciphercost_copied_rows"
"""A table with a number for each row, made where a server reads no table bit by bit."""


def portions(read: Callable[[int, int], Rows]) -> Iterator[Rows]:
    """Yield portions until one is empty. `read`: returns rows, given how many were read before and how many to read at most."""
    done, count = 0, FIRST_ROWS
    while rows := read(done, count):
        yield rows
        done += len(rows)
        letters = sum(len(value) for row in rows for value in row if value) + len(rows)
        count = max(1, min(MOST_ROWS, count * 4, WANTED_LETTERS * len(rows) // letters))
