"""Logged statements: their shapes, what they do, the operations that they make, and the workload that repeats these."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.importers.logs import _sql
from ciphercost.importers.logs._sql import Ignored, Logged
from ciphercost.importers.statements import scripts, workload
from ciphercost.importers.statements.classes import MOST_CLASSES, SAMPLES, Written
from ciphercost.importers.statements.fingerprint import Unreadable, shape, split
from ciphercost.importers.statements.found import Found
from ciphercost.importers.statements.sorts import sort
from ciphercost.importers.statements.transactions import FAILED, OUTSIDE, UNFINISHED, UNREADABLE, Transactions
from ciphercost.load import script
from ciphercost.load.script_parts import Variable
from ciphercost.load.workloads import Workload
from ciphercost.model.errors import UsageError
from ciphercost.model.traffic import Traffic
from test_sql_logs import TEXTS, VALUES, events, found_in, quoted, statements


@pytest.mark.parametrize(
    ("sql", "dialect", "expected"),
    [
        ("SELECT  a\nFROM T WHERE x = -5 AND s='it''s' -- why", "postgresql", "select a from t where x = ? and s=?"),
        ("select a from t where x in (1, 2,3)", "postgresql", "select a from t where x in (?+)"),
        ("select a from t where x in ($1, $2)", "postgresql", "select a from t where x in (?+)"),
        ("insert into t1 values (1,'a'),(2,$$b'c$$)", "postgresql", "insert into t1 values (?+)"),
        ("select a1 from t2 limit 10;", "postgresql", "select a1 from t2 limit ?"),
        (
            r"select `a1`, \"x\" from t where b='it\'s' # c".replace('\\"', '"'),
            "mysql",
            "select `a1`, ? from t where b=?",
        ),
        ("select /* id 7 */ 1e5, 0xAF, t.a-5 from t", "mysql", "select ?, ?, t.a-? from t"),
    ],
)
def test_the_shape_of_a_statement(sql: str, dialect: str, expected: str) -> None:
    assert shape(sql, dialect) == expected


@given(st.lists(st.integers(), min_size=1, max_size=5), st.lists(st.integers(), min_size=1, max_size=5), TEXTS, TEXTS)
def test_values_do_not_change_the_shape(some: list[int], others: list[int], text: str, other: str) -> None:
    def written(numbers: list[int], value: str) -> str:
        return f"SELECT a FROM t WHERE id IN ({', '.join(map(str, numbers))}) AND name = {quoted(value)} AND n = {numbers[0]}"

    assert shape(written(some, text), "postgresql") == shape(written(others, other), "postgresql")


def test_numbers_in_quoted_names_tell_tables_apart() -> None:
    assert shape('SELECT 1 FROM "2023" WHERE a = 5', "postgresql") == 'select ? from "2023" where a = ?'
    assert shape("SELECT 1 FROM `2024`", "mysql") == "select ? from `2024`"
    assert shape("SELECT a-1, 'it''s', x2 FROM t1", "mysql") == "select a-?, ?, x2 from t1"


def test_a_statement_that_is_cut_off_has_no_shape() -> None:
    for sql, dialect in (
        ("SELECT 'a", "postgresql"),
        ("SELECT /* a", "mysql"),
        ("SELECT `a", "mysql"),
        ("SELECT $$a", "postgresql"),
    ):
        with pytest.raises(Unreadable):
            shape(sql, dialect)


def test_statements_that_travel_together_are_apart() -> None:
    assert split("BEGIN; SELECT ';' ; COMMIT;", "postgresql") == ["BEGIN", "SELECT ';'", "COMMIT"]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select 1", "read"),
        ("with a as (select 1) select * from a", "read"),
        ("with a as (delete from t returning *) select * from a", "write"),
        ("select a from t for update", "write"),
        ("insert into t values (1)", "write"),
        ("select pg_sleep(1)", "left out"),
        ("select nextval('s')", "write"),
        ("copy t from stdin", "left out"),
        ("set search_path to a", "left out"),
        ("set autocommit = 0", "autocommit off"),
        ("rollback to savepoint a", "savepoint"),
        ("start transaction read only", "begin"),
        ("end", "end"),
        ("drop table t", "left out"),
        ("explain analyze select 1", "left out"),
        ("ünknown", "left out"),
    ],
)
def test_what_a_statement_does(sql: str, expected: str) -> None:
    what, why = sort(shape(sql, "postgresql"))
    assert what == expected
    assert bool(why) == (expected in ("left out", "write"))


def run(
    *statements_: str, writes: bool = True, dialect: str = "postgresql", session: str = "1"
) -> list[tuple[list[str], str]]:
    """(statements, reason) of the operations that one session's statements make."""
    transactions = Transactions(dialect, writes=writes)
    made = []
    for number, sql in enumerate(statements_, 1):
        made += list(transactions.take(Logged(session, number, sql)))
    made += list(transactions.finish())
    return [([step.logged.sql for step in operation.steps], operation.why) for operation in made]


def test_a_transaction_is_one_operation() -> None:
    assert run("BEGIN", "SELECT 1", "SELECT 2", "COMMIT", "SELECT 3") == [
        (["BEGIN", "SELECT 1", "SELECT 2", "COMMIT"], ""),
        (["SELECT 3"], ""),
    ]


def test_what_can_not_be_replayed_takes_its_transaction_with_it() -> None:
    ((_, why),) = run("BEGIN", "SELECT 1", "DROP TABLE t", "COMMIT")
    assert why.startswith("definitions")
    ((_, why),) = run("BEGIN", "UPDATE t SET a = 1", "COMMIT", writes=False)
    assert why.startswith("writes")
    assert [why for _, why in run("COMMIT", "BEGIN", "SELECT 1")] == [OUTSIDE, UNFINISHED]
    assert [why for _, why in run("SELECT 'a")] == [UNREADABLE]


def test_settings_within_a_transaction_are_dropped_from_it() -> None:
    assert run("BEGIN", "SET LOCAL a = 1", "SELECT 1", "COMMIT") == [(["BEGIN", "SELECT 1", "COMMIT"], "")]


def test_without_autocommit_a_statement_begins_a_transaction() -> None:
    assert run("SET autocommit=0", "SELECT 1", "SELECT 2", "COMMIT", "SET autocommit=1", "SELECT 3", dialect="mysql")[
        1:
    ] == [
        (["START TRANSACTION", "SELECT 1", "SELECT 2", "COMMIT"], ""),
        (["SET autocommit=1"], "SET, RESET, USE and other settings of a session"),
        (["SELECT 3"], ""),
    ]


def test_a_failed_statement_counts_for_nothing_and_the_one_before_it_does() -> None:
    transactions = Transactions("postgresql")
    made = list(transactions.take(Logged("1", 1, "SELECT 1")))
    transactions.failed("1", "SELECT wrong")  # a log of durations does not hold it
    made += list(transactions.take(Logged("1", 2, "SELECT 2")))
    transactions.failed("1", "SELECT 2")
    made += list(transactions.finish())
    assert [(operation.steps[0].logged.sql, operation.why) for operation in made] == [
        ("SELECT 1", ""),
        ("SELECT 2", FAILED),
    ]


def test_sessions_do_not_mix() -> None:
    transactions = Transactions("postgresql")
    logged = [("1", "BEGIN"), ("2", "SELECT 2"), ("1", "SELECT 1"), ("2", "BEGIN"), ("1", "COMMIT"), ("2", "ROLLBACK")]
    made = [
        operation
        for number, (session, sql) in enumerate(logged)
        for operation in transactions.take(Logged(session, number, sql))
    ]
    made += transactions.finish()
    assert sorted([step.logged.sql for step in operation.steps] for operation in made) == [
        ["BEGIN", "ROLLBACK"],
        ["BEGIN", "SELECT 1", "COMMIT"],
        ["SELECT 2"],
    ]


# ── the workload ──────────────────────────────────────────────────────────────────────────────────────────────────────


@given(VALUES, TEXTS)
def test_a_transaction_has_the_statements_and_values_of_the_log(values: tuple[str | None, ...], text: str) -> None:
    places = "".join(f", ${number}" for number in range(1, len(values) + 1))
    made = scripts.transaction(
        "a", [Written(f"SELECT {quoted(text)}{places}", values), Written("SELECT 1 -- why")], "postgresql"
    )
    if made is None:
        assert re.search(r":(client_id|random_seed|default_seed|scale)\b", text)
        return
    given_ = [Variable(name, "constant", value=value) for name, value in made.constants.items()]
    parsed = script.parse(made.script, {}, "a", given_, "postgresql")
    first, second = parsed.statements
    kept = [value for value in values if value is not None]
    assert [made.constants[name] for name in first.parameters] == kept
    numbers = iter(range(1, len(kept) + 1))
    expected = "".join(", NULL" if value is None else f", ${next(numbers)}" for value in values)
    assert first.sql == f"SELECT {quoted(text)}{expected}"
    assert second.sql.startswith("SELECT 1")


def made_of(found: Found) -> tuple[Traffic, Workload]:
    traffic = found.traffic([], 1, 0)
    return traffic, workload.of(found, traffic, "a.log")


def test_the_shares_of_a_workload_are_those_of_the_log() -> None:
    lines = []
    for number in range(1000):
        sql = f"SELECT a FROM t WHERE id = {number}" if number % 10 < 7 else f"SELECT b FROM u WHERE id = {number}"
        lines.append(f"2024-01-31 12:00:{number % 60:02}.000 UTC [{number % 4 + 100}] LOG:  statement: {sql}")
    found = found_in("\n".join(lines), "postgresql")
    traffic, made = made_of(found)
    assert (traffic.operations, [each.count for each in traffic.classes]) == (1000, [700, 300])
    weights = {"SELECT 1": 0, "SELECT 2": 0}
    for transaction in made.transaction:
        weights[transaction.name.partition(",")[0]] += transaction.weight
    assert weights["SELECT 1"] / sum(weights.values()) == pytest.approx(0.7, rel=1e-3)
    assert len(made.transaction) == 2 * SAMPLES
    assert (made.read_only, made.protocol, made.clients, made.written_for) == (True, "simple", 4, "postgresql")


def test_the_same_log_gives_the_same_samples() -> None:
    text = "\n".join(
        f"2024-01-31 12:00:00.000 UTC [1{number % 7}] LOG:  statement: SELECT {number}" for number in range(500)
    )
    one, other = (made_of(found_in(text, "postgresql"))[1] for _ in range(2))
    assert one == other


def test_many_classes_are_counted_and_the_rare_ones_left_out() -> None:
    text = "\n".join(
        f"2024-01-31 12:00:00.000 UTC [17] LOG:  statement: SELECT c{number} FROM t"
        for number in range(MOST_CLASSES + 50)
    )
    found = found_in(text, "postgresql")
    traffic, made = made_of(found)
    assert len(made.transaction) == scripts.MOST_CLASSES
    assert {left.reason: left.lines for left in traffic.left_out}[scripts.RARE] == MOST_CLASSES - scripts.MOST_CLASSES


def test_a_log_without_anything_to_run_is_refused_with_the_reason() -> None:
    for text, words in (
        ("2024-01-31 12:00:00.000 UTC [17] LOG:  checkpoint starting: time", "log_statement"),
        ("2024-01-31 12:00:00.000 UTC [17] LOG:  statement: DROP TABLE t", "none of its 1 statements"),
    ):
        with pytest.raises(UsageError, match=words):
            made_of(found_in(text, "postgresql"))


def test_a_clock_that_goes_backwards_and_a_log_of_slow_statements_are_noted() -> None:
    text = "\n".join(
        f"2024-01-31 12:{minute}:00.000 UTC [17] LOG:  duration: 99.0 ms  statement: SELECT 1"
        for minute in (10, 11, 10, 12)
    )
    notes = found_in(text, "postgresql").traffic([], 1, 4).notes
    assert [note.code for note in notes] == ["log-clock-backwards", "log-only-slow"]


def test_a_transaction_goes_on_in_the_next_file_of_the_same_log() -> None:
    def lines(minute: int, *logged: str) -> str:
        return "\n".join(f"2024-01-31 12:{minute}:00.000 UTC [17] LOG:  statement: {sql}" for sql in logged)

    first, second = lines(10, "BEGIN", "SELECT 1"), lines(11, "COMMIT")
    found = Found("postgresql")
    for name, text in (("a.log", first), ("b.log", second)):
        found.read(events(text), name)
    assert (found.traffic([], 2, 3).operations, found.left_out.found()) == (1, [])
    # A log that begins before the end of the other is another server's.
    found = Found("postgresql")
    for name, text in (("a.log", second), ("b.log", first)):
        found.read(events(text), name)
    assert found.traffic([], 2, 3).operations == 0
    assert {left.reason for left in found.left_out.found()} == {OUTSIDE, UNFINISHED}


def test_a_line_that_was_too_long_takes_its_entry_with_it() -> None:
    begun = "2024-01-31 12:00:00.000 UTC [17] LOG:  statement: SELECT 1,"
    text = f"{begun}\n\0too long\n{begun} 2\n"
    read = events(text, "postgresql-text")
    assert [each.sql for each in statements(read)] == ["SELECT 1, 2"]
    assert [event.why for event in read if isinstance(event, Ignored)] == [_sql.TOO_LONG]
