"""Rows of logs and tables in CSV. Pure."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ciphercost.importers.logs._sql import text

LONGEST = 1 << 26
"""Characters of a field."""


class Row(NamedTuple):
    """A row, which takes several lines if a field has ends of lines."""

    line: int
    """The line at which it begins, from 1 on."""
    lines: int
    """How many lines it takes."""
    values: list[str] | None
    """None: these lines are not CSV."""


def rows(lines: Iterable[bytes], delimiter: str = ",") -> Iterator[Row]:
    """Yield every row. `lines`: without their ends."""
    # The csv module has one limit for the whole process, so never lower it.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST))
    # A field may hold ends of lines, which the parser needs.
    reader = csv.reader((text(line).replace("\0", "") + "\n" for line in lines), delimiter=delimiter)
    while True:
        begin = reader.line_num + 1
        values: list[str] | None = None
        try:
            values = next(reader)
        except StopIteration:
            return
        except csv.Error:
            pass
        yield Row(begin, max(1, reader.line_num - begin + 1), values)
