"""rows: a table of floats that grows row by row. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

LEAST = 8


class Rows:
    """Rows of `width` floats, in the order in which they were added. The first `expected` ones take no more memory than none."""

    def __init__(self, width: int, expected: int = 0) -> None:
        # Written, because the kernel gives memory only to what is written.
        self._kept = np.full((max(LEAST, expected), width), np.nan)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, row: Sequence[float]) -> None:
        """Add a row. Raises ValueError if it has another width."""
        if self._count == len(self._kept):
            self._kept = np.concatenate([self._kept, np.full_like(self._kept, np.nan)])
        self._kept[self._count] = row
        self._count += 1

    @property
    def values(self) -> NDArray[np.float64]:
        """All rows (rows, width); valid until another one is added."""
        return self._kept[: self._count]
