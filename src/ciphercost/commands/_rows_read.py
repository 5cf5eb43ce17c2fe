"""What was read in the files of `--csv`: one line for each, and a warning if its first line looks like data. Printed before
the load.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ciphercost.plan.planned import PlannedCell

MOST_COLUMNS = 40
"""Columns that are listed with their types."""


def lines(cells: Sequence[PlannedCell]) -> Iterator[str]:
    """Yield the lines for the cells' files."""
    seen = set()
    for planned in cells:
        cell = planned.spec
        own = (cell.csv, cell.no_header, planned.secret_columns)
        # The register's file has its own columns, which its reader checks.
        if not cell.csv or planned.workload.records or own in seen:
            continue
        seen.add(own)
        yield from _of_file(cell.csv, cell.no_header, planned.secret_columns)


def _of_file(file: str, no_header: bool, secret: tuple[str, ...]) -> Iterator[str]:
    from pathlib import Path

    from ciphercost.load import tables
    from ciphercost.load.tables import described
    from ciphercost.load.tables.columns import shown

    known = tables.survey(Path(file), header=not no_header)
    columns = described.typed(known)
    listed = [f"{shown(each.title)} {described.type_words(each)}" for each in columns[:MOST_COLUMNS]]
    listed += [f"and {len(columns) - MOST_COLUMNS} more"] if len(columns) > MOST_COLUMNS else []
    hidden = [shown(each.title) for each in columns if {each.title, each.name} & set(secret)]
    yield (
        f"read {file}: {known.rows:,} rows, {len(columns)} columns ({', '.join(listed)}), separated by {described.separator(known)}, "
        f"{described.encoding(known)}{', no header line' if no_header else ''}; secret: {', '.join(hidden) or 'no column'}"
    )
    if looks := described.like_data(known):
        yield (
            f"WARNING: the first line of {file} names the columns, but looks like a row ({', '.join(shown(each) for each in looks[:4])}). "
            "If it is one, use --no-header"
        )
