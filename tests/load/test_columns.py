"""columns: each column gets the narrowest type that returns every value unchanged."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.load.tables import columns
from ciphercost.load.tables.columns import Column, ColumnDetector
from ciphercost.model.errors import UsageError


def inferred(*values: str) -> Column:
    gauge = ColumnDetector()
    for value in values:
        gauge.add(value)
    return gauge.column("c_x", "x")


@given(numbers=st.lists(st.integers(-999, 999).map(str), min_size=1), place=st.integers(0, 9))
def test_null_of_a_table_changes_neither_type_nor_length(numbers: list[str], place: int) -> None:
    with_null = [*numbers[:place], columns.NULL, *numbers[place:]]
    column, without = inferred(*with_null), inferred(*numbers)
    assert (column.kind, column.length, column.bytes) == (without.kind, without.length, without.bytes)
    assert [column.is_null(value) for value in with_null].count(True) == 1
    text = inferred("a", columns.NULL, "")
    assert [text.is_null(value) for value in ("a", columns.NULL, "")] == [False, True, False]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (("1", "-2", "0", ""), "integer"),
        (("2147483647",), "integer"),
        (("2147483648",), "bigint"),
        (("-9223372036854775808",), "bigint"),
        (("9223372036854775809",), "text"),  # no double holds it
        (("100000000000000000000",), "double"),
        (("1", "2.50"), "decimal"),
        ((".5", "-.25"), "decimal"),
        (("0.30000000000000004",), "decimal"),
        (("0.1000000000000000055",), "text"),
        (("1.7976931348623157e+308",), "text"),  # out of range for some servers
        (("1e-7", "3", "2.5"), "double"),
        (("1e999",), "text"),
        (("true", "FALSE"), "boolean"),
        (("true", "1"), "text"),
        (("2024-02-29",), "date"),
        (("2023-02-29",), "text"),
        (("0999-01-01",), "text"),
        (("2024-01-01 10:20", "2024-01-01T10:20:30.5"), "timestamp"),
        (("2024-01-01T10:20:30Z",), "text"),
        (("2024-01-01", "2024-01-01 00:00:00"), "text"),
        (("01067", "12345"), "text"),
        (("+5",), "text"),
        (("-0",), "text"),
        (("1,000",), "text"),
        (("1", "two"), "text"),
        (("nan",), "text"),
        (("1" * 65,), "text"),
        (("", ""), "text"),
    ],
    ids=lambda value: "·".join(value)[:30] if isinstance(value, tuple) else value,
)
def test_a_column_gets_the_narrowest_type_that_keeps_every_value(values: tuple[str, ...], kind: str) -> None:
    assert inferred(*values).kind == kind


def test_a_decimal_has_the_digits_and_a_text_the_length_that_the_values_need() -> None:
    money = inferred("1234.5", "-0.125", "99999")
    assert (money.kind, money.digits, money.scale) == ("decimal", 8, 3)
    assert inferred("größe", "x").length == 5
    assert inferred("größe", "x").bytes >= 7


@given(st.lists(st.sampled_from(["1", "2.5", "1e5", "true", "2024-01-01", "2024-01-01 00:00", "x", ""]), max_size=6))
def test_the_order_of_the_values_does_not_matter(values: list[str]) -> None:
    assert inferred(*values).kind == inferred(*reversed(values)).kind == inferred(*sorted(values)).kind


@given(st.lists(st.text(min_size=1).filter(lambda title: bool(title.strip())), min_size=1, max_size=8, unique=True))
def test_any_titles_become_names_that_every_server_takes_and_no_two_are_alike(titles: list[str]) -> None:
    names = columns.names([*titles, "some words"] if "some words" not in titles else titles, "t.csv")
    assert len({name.upper() for name in names}) == len(names)
    assert all(re.fullmatch(r"c_[a-z0-9_]{1,28}", name) for name in names)


def test_titles_may_be_keywords_or_begin_with_digits_or_be_alike_but_for_case() -> None:
    titles = ["select", "2019", "First Name", "first-name", "Größe", "日本"]
    assert columns.names(titles, "") == [
        "c_select",
        "c_2019",
        "c_first_name",
        "c_first_name_2",
        "c_große".replace("ß", ""),
        "c_column",
    ]


@pytest.mark.parametrize(
    ("titles", "words"),
    [
        (["a", " ", "c"], "column 2 has no name"),
        (["a", "b", "a"], "columns 1 and 3 are both named 'a'"),
        (["1", "2024-01-01", "true"], "these look like values, not names"),
        (["x\n" * 1000, "x\n" * 1000], "both named"),
    ],
)
def test_titles_that_name_nothing_are_refused(titles: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)) as caught:
        columns.names(titles, "t.csv, line 1")
    assert "t.csv, line 1" in str(caught.value)
    assert len(str(caught.value)) < 250
