"""script: pgbench's language becomes variables and statements."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.load import script
from ciphercost.model.errors import UsageError


def test_variables_become_numbered_parameters_in_order_of_use() -> None:
    parsed = script.parse(
        "\\set a random(1, 10)\n\\set b random(1, 5)\nUPDATE t SET x = :b WHERE y = :a OR z = :b;", {}
    )
    assert parsed.statements[0].sql == "UPDATE t SET x = $1 WHERE y = $2 OR z = $1"
    assert parsed.statements[0].parameters == ("b", "a")


def test_workload_parameters_are_written_in_as_numbers() -> None:
    parsed = script.parse("\\set a random(1, 100000 * :scale)\nSELECT :scale, :a", {"scale": 3})
    assert parsed.variables[0].high == 300_000
    assert parsed.statements[0].sql == "SELECT 3, $1"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ':a; not a variable'",
        "SELECT n::text -- :a ; comment",
        'SELECT ":a;b"',
        "SELECT /* ; :a */ 1",
        "SELECT 'it''s :a;'",
    ],
)
def test_strings_casts_comments_and_quoted_names_are_left_alone(text: str) -> None:
    parsed = script.parse(text, {})
    assert len(parsed.statements) == 1
    assert "$1" not in parsed.statements[0].sql


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\\set aid randon(1, 2)\nSELECT :aid", "did you mean 'random'"),
        ("\\set aid random(1)\nSELECT :aid", "random takes (low, high), got 1"),
        ("\\set aid random(5, 1)\nSELECT :aid", "the lower bound of random, 5, is above its upper bound, 1"),
        ("\\slep 5\nSELECT 1", "did you mean 'sleep'"),
        ("\\shell date\nSELECT 1", "\\shell is not supported"),
        ("\\set 1a random(1, 2)\nSELECT 1", "write '\\set NAME EXPRESSION'"),
        ("\\set aid random(1, 2)\nSELECT :aidd", "did you mean 'aid'"),
        ("SELECT $1", "instead of '$1'"),
        ("-- nothing here\n", "contains no SQL statement"),
        ("SELECT 'open", "is not closed"),
        ("\\set a 1 / 0\nSELECT :a", "division by zero"),
        ("\\set a random_zipfian(1, 9, 1)\nSELECT :a", "skew above 0 other than 1"),
    ],
)
def test_nonsense_is_refused_with_the_place_and_the_mend(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)) as caught:
        script.parse(text, {}, where="my.sql")
    assert "my.sql" in str(caught.value)


def test_the_line_of_a_bad_statement_is_named() -> None:
    with pytest.raises(UsageError, match=r"my\.sql, line 4"):
        script.parse("\\set a random(1, 2)\nSELECT :a;\n\nSELECT :nobody;\n", {}, where="my.sql")


@given(st.integers(-1000, 1000), st.integers(-1000, 1000), st.integers(1, 50))
def test_arithmetic_is_that_of_integers(a: int, b: int, c: int) -> None:
    assert script.evaluate(f"({a} + :b) * {c} - min(:b, {a}) / {c}", {"b": b}) == (a + b) * c - min(b, a) // c


@given(st.text(max_size=200))
def test_any_text_is_parsed_or_refused_but_never_breaks(text: str) -> None:
    try:
        parsed = script.parse(text, {"rows": 5})
    except UsageError:
        return
    assert all(statement.sql.strip() for statement in parsed.statements)


def test_what_looks_like_a_comment_inside_a_string_is_left_alone() -> None:
    text = "SELECT 'a/*b*/c', 'x -- y' /* said */ -- aside"
    assert script.parse(text, {}).statements[0].sql == text


def test_reading_is_told_from_writing() -> None:
    assert script.parse("SELECT 1; VALUES (1);", {}).read_only
    assert script.parse("-- why\nWITH a AS (SELECT 'delete') SELECT * FROM a", {}).read_only
    assert not script.parse("SELECT 1; DELETE FROM t;", {}).read_only
    assert not script.parse("WITH gone AS (DELETE FROM t RETURNING *) SELECT * FROM gone", {}).read_only


# ── thinking ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", 0),
        ("\\set t 500\nTHINK :t; SELECT 1; THINK :t", 1000),
        ("\\set t random(1000, 3000)\nTHINK :t", 2000),
        ("THINK :rows", 7),
        ("GET /THINK; POST /x THINK", 0),
    ],
)
def test_how_long_a_script_thinks(text: str, expected: float) -> None:
    assert script.think_us(script.parse(text, {"rows": 7})) == expected


@pytest.mark.parametrize(
    "text",
    [
        "THINK",
        "THINK soon",
        "THINK 1 2",
        "\\set t random(-1, 5)\nTHINK :t",
        "\\set t random_text(5)\nTHINK :t",
        "\\set t 3600000001\nTHINK :t",
    ],
)
def test_a_thought_without_a_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="THINK"):
        script.think_us(script.parse(text, {}), "visit")
