"""What was read in the files of `--csv`: one line for each, and a warning if its first line looks like data. Printed before
the load.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ciphercost.load.tables.columns import Column
    from ciphercost.plan.dump_rows import Table
    from ciphercost.plan.planned import PlannedCell

MOST_COLUMNS = 40
"""Columns that are listed with their types."""


def lines(cells: Sequence[PlannedCell]) -> Iterator[str]:
    """Yield the lines for the cells' files."""
    seen = set()
    for planned in cells:
        cell = planned.spec
        if planned.rows is not None:
            key = (str(planned.rows.file), False, planned.secret_columns)
            if key not in seen:
                seen.add(key)
                yield _of_table(planned.rows, planned.secret_columns)
            continue
        key = (cell.csv, cell.no_header, planned.secret_columns)
        # The register's file has its own columns, which its reader checks.
        if not cell.csv or planned.workload.records or key in seen:
            continue
        seen.add(key)
        yield from _of_file(cell.csv, cell.no_header, planned.secret_columns)


def _of_file(file: str, no_header: bool, secret: tuple[str, ...]) -> Iterator[str]:
    from pathlib import Path

    from ciphercost.load import tables
    from ciphercost.load.tables import described
    from ciphercost.load.tables.columns import shown

    known = tables.survey(Path(file), header=not no_header)
    columns = described.typed(known)
    hidden = [shown(column.title) for column in columns if {column.title, column.name} & set(secret)]
    yield (
        f"read {file}: {known.rows:,} rows, {len(columns)} columns ({_listed(columns)}), separated by {described.separator(known)}, "
        f"{described.encoding(known)}{', no header line' if no_header else ''}; secret: {', '.join(hidden) or 'no column'}"
    )
    if looks := described.like_data(known):
        yield (
            f"WARNING: the first line of {file} names the columns, but looks like a row ({', '.join(shown(title) for title in looks[:4])}). "
            "If it is one, use --no-header"
        )


def _of_table(table: Table, secret: tuple[str, ...]) -> str:
    from ciphercost.load import tables
    from ciphercost.load.tables import described
    from ciphercost.load.tables.columns import shown
    from ciphercost.plan.dump_rows import APART

    known = tables.survey(table.file)
    columns = described.typed(known)
    left_out = ", ".join(f"{shown(column.name)} {column.type}" for column in table.left_out)
    without = f"; left out, because their values are no text: {left_out}" if left_out else ""
    return (
        f"read table {shown(table.name)} of {table.dump}: {known.rows:,} rows, {len(columns)} columns ({_listed(columns)}); secret: "
        f"{', '.join(map(shown, secret))}{without}; {APART}"
    )


def _listed(columns: Sequence[Column]) -> str:
    """The columns with their types."""
    from ciphercost.load.tables import described
    from ciphercost.load.tables.columns import shown

    listed = [f"{shown(column.title)} {described.type_words(column)}" for column in columns[:MOST_COLUMNS]]
    listed += [f"and {len(columns) - MOST_COLUMNS} more"] if len(columns) > MOST_COLUMNS else []
    return ", ".join(listed)
