"""Describes a file of `--csv` in words: its columns' types, its delimiter, its encoding. Pure, except for its first bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciphercost.load.tables import csvfile
from ciphercost.load.tables.columns import Column, ColumnDetector, names

if TYPE_CHECKING:
    from ciphercost.load.tables import Survey

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


def typed(known: Survey) -> list[Column]:
    """Return the columns with the types of their values. A server may need others. Raises UsageError for bad names."""
    column_names = names(known.titles, f"--csv {known.path}, line 1")
    return [
        gauge.column(name, title) for name, title, gauge in zip(column_names, known.titles, known.gauges, strict=True)
    ]


def type_words(column: Column) -> str:
    """`decimal(4,2) with decimal commas`."""
    size = f"({column.digits},{column.scale})" if column.kind == "decimal" else ""
    return f"{column.kind}{size}{' with decimal commas' if column.comma else ''}"


def separator(known: Survey) -> str:
    return SEPARATORS[known.delimiter]


def encoding(known: Survey) -> str:
    """UTF-8, with or without a byte order mark. Raises UsageError if the file can't be read."""
    return "UTF-8 with byte order mark" if csvfile.has_mark(known.path) else "UTF-8"


def like_data(known: Survey) -> list[str]:
    """Return the names in the first line if they look like a row: each has the type of its column's values, and not all are
    text. Empty if they don't.
    """
    if not known.header:
        return []
    kinds = [gauge.column("", title).kind for title, gauge in zip(known.titles, known.gauges, strict=True)]
    if all(kind == "text" for kind in kinds):
        return []
    for title, kind in zip(known.titles, kinds, strict=True):
        detector = ColumnDetector()
        detector.add(title.strip())
        if kind != "text" and _family(detector.column("", title).kind) != _family(kind):
            return []
    return list(known.titles)


def _family(kind: str) -> str:
    return "number" if kind in ("integer", "bigint", "decimal", "double") else kind
