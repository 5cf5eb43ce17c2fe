"""CSV: a row per figure and cell, at full precision. Columns: `figures.COLUMNS`; FORMAT.md defines them.

A spreadsheet takes a text that begins with =, +, - or @, or with a tab or a return, for a formula ("CSV injection", OWASP). So it gets a `'`
in front, and so does a text that already begins with `'`: removing one `'` restores the text.
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
    """RFC 4180 except for line ends, which are \\n. It has a header line; an empty field is unknown."""
    return table(COLUMNS, figures(result))


def table(columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as CSV, without the last line end."""
    text = io.StringIO()
    # Some readers end a line at a lone return, and Python's writer does not quote it.
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
