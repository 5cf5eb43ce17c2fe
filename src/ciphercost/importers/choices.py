"""The user's choices about arms and columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ciphercost.importers import csv_columns
from ciphercost.model.spec import Arm


class Choices(NamedTuple):
    """The user's choices about arms and columns."""

    plain: Sequence[Path] = ()
    encrypted: Sequence[Path] = ()
    words: Sequence[tuple[Arm, str]] = ()
    """(arm, a word or pattern of its file names)."""
    only: Arm | None = None
    """All files are of this arm."""
    columns: Sequence[csv_columns.Column] = ()
    header: bool = True
    """Whether the first line of a table names its columns; if not, they are column1, column2 …"""
