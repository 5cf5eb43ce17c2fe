"""wanted: what the user said about arms and columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ciphercost.importers import csv_columns
from ciphercost.model.spec import Arm


class Wanted(NamedTuple):
    """What the user said of arms and columns."""

    plain: Sequence[Path] = ()
    encrypted: Sequence[Path] = ()
    words: Sequence[tuple[Arm, str]] = ()
    """(arm, word or pattern of its files' names)."""
    only: Arm | None = None
    """All are of this arm."""
    columns: Sequence[csv_columns.Column] = ()
