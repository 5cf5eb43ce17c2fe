"""Rows: what was added, in its order, whatever was expected."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.estimate.rows import Rows

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(FINITE, FINITE), max_size=60), st.integers(0, 70))
def test_rows_are_kept_in_their_order(added: list[tuple[float, float]], expected: int) -> None:
    rows = Rows(2, expected)
    for number, row in enumerate(added):
        assert len(rows) == number
        rows.append(row)
    assert np.array_equal(rows.values, np.array(added).reshape(-1, 2))


def test_a_row_of_another_width_is_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        Rows(3).append([1.0, 2.0])
