"""Generated CSV files with any content, and checks that a server returns what was in them."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import msgspec
from hypothesis import strategies as st

from ciphercost.load.tables.columns import Kind


class Table(msgspec.Struct, frozen=True):
    titles: list[str]
    rows: list[list[str]]

    def write(self, path: Path, delimiter: str = ",", quoting: int = csv.QUOTE_ALL) -> Path:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter=delimiter, quoting=quoting)  # type: ignore[arg-type]
            writer.writerow(self.titles)
            writer.writerows(self.rows)
        return path


text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
"""Every text that servers accept: quotes, backslashes, line breaks, control characters, all of Unicode."""
number = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.integers(-100, 100).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=3).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)
values = st.sampled_from(
    [
        text,
        number,
        st.integers(-(2**31), 2**31 - 1).map(str),
        st.integers(-(2**63), 2**63 - 1).map(str),
        st.floats(-1e200, 1e200).map(repr),
        st.dates().map(str),
        st.datetimes().map(str),
        st.datetimes().map(lambda each: each.isoformat(timespec="minutes")),
        st.sampled_from(["true", "FALSE", "True", ""]),
        st.sampled_from(["007", "+1", "-0", "1e999", ".5", "1.", "NaN", "0x10", "1_000", "２", "2023-02-29", "24:00"]),
    ]
)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Named columns, each with values of one type, some of them empty."""
    titles = draw(
        st.lists(text.filter(lambda title: bool(title.strip())), min_size=1, max_size=5, unique=True).filter(
            lambda found: any(title.strip()[:1].isalpha() and len(title) > 5 for title in found)
        )
    )
    sorts = [draw(values) | st.just("") for _ in titles]
    return Table(titles, draw(st.lists(st.tuples(*sorts).map(list), min_size=1, max_size=8)))


def same(kind: Kind, value: str, got: object) -> bool:
    """Whether a returned value (text, number or None) equals the file's value."""
    if got is None or (not value and kind != "text"):
        return got is None and not value
    if kind == "double":
        # A number must be exactly equal; as text, a server may return 16 of its 17 digits.
        return (
            got == float(value)
            if isinstance(got, float)
            else math.isclose(float(str(got)), float(value), rel_tol=1e-15)
        )
    if kind in ("integer", "bigint", "decimal"):
        return Decimal(str(got)) == Decimal(value)
    if kind == "boolean":
        return str(got).lower() in (("t", "true", "1") if value.lower() == "true" else ("f", "false", "0"))
    if kind == "timestamp":
        return moment(str(got)) == moment(value)
    return str(got) == value


def moment(value: str) -> str:
    """Normalise a timestamp to the form `2020-01-01 00:00:00.500`."""
    whole, _, fraction = value.replace("T", " ").partition(".")
    return f"{whole}{':00' if len(whole) == 16 else ''}.{fraction.rstrip('0')}"


def differing(table: Table, kinds: Sequence[Kind], got: Sequence[Sequence[object]]) -> list[object]:
    """Every value that changed."""
    assert len(got) == len(table.rows)
    return [
        (kind, value, back)
        for row, back_row in zip(table.rows, got, strict=True)
        for kind, value, back in zip(kinds, row, back_row, strict=True)
        if not same(kind, value, back)
    ]
