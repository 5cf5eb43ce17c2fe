"""csv: a row for each figure of each cell, at full precision. Columns: `figures.COLUMNS`; FORMAT.md says what they mean.

A text that begins with =, +, - or @, or with a tab or a return, would be a formula to a spreadsheet ("CSV injection", OWASP): a `'` goes
before it, and before one that begins with `'` already, so that a reader gets the text back by taking one off.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any

from ciphercost.model.result import Result
from ciphercost.report.figures import COLUMNS, figures

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")


def render(result: Result) -> str:
    """RFC 4180 but for its line ends, which are \\n; a header line; an empty field is what is not known."""
    return table(COLUMNS, figures(result))


def table(columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as CSV, without the last line end."""
    text = io.StringIO()
    # A return alone ends a line for some readers, and Python's writer does not quote it.
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    names = list(columns)
    writer.writerow(names)
    writer.writerows([_safe(row.get(name)) for name in names] for row in rows)
    return text.getvalue().removesuffix("\n")


def _safe(value: object) -> object:
    if not isinstance(value, str):
        return "" if value is None else value
    value = value.replace("\0", "")
    return f"'{value}" if value.startswith(FORMULA) else value
