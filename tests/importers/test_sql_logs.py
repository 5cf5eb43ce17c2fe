"""Logs of statements: every form of PostgreSQL's and MySQL's log gives the statements that are in it, and says what it leaves out."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.importers import logs
from ciphercost.importers.logs import _postgresql, _sql
from ciphercost.importers.logs._sql import Event, Fact, Ignored, Logged
from ciphercost.importers.statements import scripts, workload
from ciphercost.importers.statements.classes import MOST_CLASSES, SAMPLES, Written
from ciphercost.importers.statements.fingerprint import Unreadable, shape, split
from ciphercost.importers.statements.found import Found
from ciphercost.importers.statements.sorts import sort
from ciphercost.importers.statements.transactions import (
    FAILED,
    NO_VALUES,
    OUTSIDE,
    UNFINISHED,
    UNREADABLE,
    Transactions,
)
from ciphercost.load import script
from ciphercost.load.script_parts import Variable
from ciphercost.model.errors import UsageError

SAMPLE_LOGS = Path(__file__).parent / "sql_logs"
FORMATS = {
    "stderr.log": "postgresql-text",
    "syslog.log": "postgresql-text",
    "rds.log": "postgresql-text",
    "several-lines.log": "postgresql-text",
    "logplex.log": "postgresql-text",
    "kinds.log": "postgresql-text",
    "queryid.log": "postgresql-text",
    "csvlog.csv": "postgresql-csv",
    "cloudnativepg.json": "postgresql-json",
    "cloudsql.json": "postgresql-json",
    "jsonlog-without-statements.json": "postgresql-json",
}
SQL_FORMATS = ("postgresql-text", "postgresql-csv", "postgresql-json", "mysql-general", "mysql-slow", "sql-counters")
_STATEMENT = re.compile(
    r"(?:LOG: {1,2}|\"message\":\"|,\")(?:duration: [0-9.]+ ms {1,2})?(?:statement: \S|execute (?!fetch)[^:]*: )"
)
"""Where a statement begins, in every form: counted without the readers."""


def best(head: list[bytes]) -> str:
    """The format that recognises most of the lines."""
    return max(SQL_FORMATS, key=lambda name: logs.get(name).recognise(head))


def events(text: str, name: str = "") -> list[Event]:
    lines = text.encode().removesuffix(b"\n").split(b"\n")
    return list(logs.get(name or best(lines)).read(iter(lines), lines[:200], set()))


def found_in(text: str, dialect: str, name: str = "", *, writes: bool = True) -> Found:
    found = Found(dialect, writes=writes)
    found.read(events(text, name), "a.log")
    return found


def statements(found: list[Event]) -> list[Logged]:
    return [event for event in found if isinstance(event, Logged)]


@pytest.mark.parametrize("name", FORMATS)
def test_the_format_of_each_public_log_is_recognised_and_no_statement_is_missed(name: str) -> None:
    text = (SAMPLE_LOGS / name).read_text()
    assert best(text.encode().split(b"\n")[:200]) == FORMATS[name]
    assert len(statements(events(text))) == len(_STATEMENT.findall(text))


@pytest.mark.parametrize("name", FORMATS)
def test_each_statement_of_a_public_log_is_kept_or_left_out_with_a_reason(name: str) -> None:
    found = found_in((SAMPLE_LOGS / name).read_text(), "postgresql")
    ignored = sum(event.lines for event in events((SAMPLE_LOGS / name).read_text()) if isinstance(event, Ignored))
    assert found.kept + sum(left.lines for left in found.left_out.found()) == found.statements + ignored


def test_parameters_come_from_the_same_or_from_the_next_entry() -> None:
    by_csv = [each for each in statements(events((SAMPLE_LOGS / "csvlog.csv").read_text())) if "dokument" in each.sql]
    assert by_csv[1].parameters is not None
    assert by_csv[1].parameters[1] == "157"
    by_text = statements(events((SAMPLE_LOGS / "several-lines.log").read_text()))
    assert by_text[-1].parameters is not None
    assert by_text[-1].parameters[0] == "1234"
    assert "\n" in str(by_text[-1].parameters[1])


def test_a_log_with_the_newest_line_first_is_read_from_its_end() -> None:
    times = [event.at for event in statements(events((SAMPLE_LOGS / "cloudnativepg.json").read_text()))]
    assert times == sorted(times)
    assert len(times) > 5


# ── what PostgreSQL writes, in all forms ──────────────────────────────────────────────────────────────────────────────

TEXTS = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\u2028\u2029\x85\N{REPLACEMENT CHARACTER}"),
    max_size=30,
)
VALUES = st.lists(st.one_of(st.none(), TEXTS.filter(lambda text: not text.endswith("..."))), max_size=4).map(tuple)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


STATEMENTS = st.lists(
    st.builds(
        lambda text, values, second: (
            f"SELECT {quoted(text)}\n FROM t" + "".join(f", ${number}" for number in range(1, len(values) + 1)),
            values,
            second,
        ),
        TEXTS,
        VALUES,
        st.integers(0, 59),
    ),
    min_size=1,
    max_size=6,
)


def entries(logged: list[tuple[str, tuple[str | None, ...], int]]) -> Iterator[tuple[str, str, str]]:
    """(time, message, detail) of each, as PostgreSQL words them."""
    for sql, values, second in logged:
        time = f"2024-02-29 23:59:{second:02}.250 UTC"
        if not values:
            yield time, f"statement: {sql}", ""
            continue
        listed = ", ".join(
            f"${number} = {'NULL' if value is None else quoted(value)}" for number, value in enumerate(values, 1)
        )
        yield time, f"execute S_1: {sql}", f"Parameters: {listed}"


def as_text(logged: list[tuple[str, tuple[str | None, ...], int]]) -> str:
    lines = []
    for time, message, detail in entries(logged):
        tabbed = message.replace("\n", "\n\t")
        lines.append(f"{time} [77] u@d LOG:  {tabbed}")
        if detail:
            lines.append(f"{time} [77] u@d DETAIL:  {detail}")
    return "\n".join(lines) + "\n"


def as_csv(logged: list[tuple[str, tuple[str | None, ...], int]]) -> str:
    file = io.StringIO()
    for time, message, detail in entries(logged):
        before = [time, "u", "d", "77", "[local]", "65e1.4d", "1", "SELECT", time, "3/1", "0", "LOG", "00000"]
        csv.writer(file, lineterminator="\n").writerow(
            [*before, message, detail, *[""] * 8, "psql", "client backend", "", "0"]
        )
    return file.getvalue()


def as_json(logged: list[tuple[str, tuple[str | None, ...], int]]) -> str:
    lines = []
    for number, (time, message, detail) in enumerate(entries(logged), 1):
        entry = {
            "timestamp": time,
            "pid": 77,
            "session_id": "65e1.4d",
            "line_num": number,
            "error_severity": "LOG",
            "message": message,
        }
        lines.append(json.dumps(entry | ({"detail": detail} if detail else {})))
    return "\n".join(lines) + "\n"


@given(STATEMENTS)
def test_what_postgresql_logs_is_read_back_in_every_form(logged: list[tuple[str, tuple[str | None, ...], int]]) -> None:
    for write, name in ((as_text, "postgresql-text"), (as_csv, "postgresql-csv"), (as_json, "postgresql-json")):
        read = statements(events(write(logged), name))
        assert [(each.sql, each.parameters) for each in read] == [(sql, values) for sql, values, _ in logged], name
        assert [int(each.at) % 60 for each in read] == [second for *_, second in logged]


@given(VALUES)
def test_parameters_are_read_back(values: tuple[str | None, ...]) -> None:
    listed = ", ".join(
        f"${number} = {'NULL' if value is None else quoted(value)}" for number, value in enumerate(values, 1)
    )
    assert _postgresql.parameters(f"parameters: {listed}") == (values or None)


def test_a_value_that_the_server_cut_off_is_none() -> None:
    assert _postgresql.parameters("Parameters: $1 = 'abc...', $2 = '1'") is None


@given(st.lists(st.binary(max_size=60), max_size=12), st.sampled_from(SQL_FORMATS))
def test_no_bytes_break_a_reader(lines: list[bytes], name: str) -> None:
    every = [line.replace(b"\n", b"") for line in lines]
    reader = logs.get(name)
    count = reader.recognise(every)
    assert 0 <= count <= len(every)
    if name != "sql-counters" or count:
        found = Found("postgresql")
        found.read(reader.read(iter(every), every, set()), "a.log")


@pytest.mark.parametrize("name", [name for name in FORMATS if FORMATS[name] != "postgresql-json"])
def test_a_log_may_be_cut_anywhere(name: str) -> None:
    text = (SAMPLE_LOGS / name).read_text()
    for end in range(0, len(text), max(1, len(text) // 40)):
        found_in(text[:end], "postgresql", FORMATS[name])


# ── MySQL and MariaDB ─────────────────────────────────────────────────────────────────────────────────────────────────

GENERAL = """/usr/sbin/mysqld, Version: 8.0.36 (MySQL Community Server). started with:
Tcp port: 3306  Unix socket: /run/mysqld.sock
Time                 Id Command    Argument
2024-01-31T12:00:00.000100Z\t    8 Connect\tapp@10.0.0.1 on shop using TCP/IP
2024-01-31T12:00:00.000200Z\t    8 Query\tSELECT a
FROM t -- it's
WHERE id = 5
2024-01-31T12:00:01.000000Z\t    9 Prepare\tSELECT b FROM t WHERE c = ?
2024-01-31T12:00:01.000100Z\t    9 Execute\tSELECT b FROM t WHERE c = 'x'
2024-01-31T12:00:02.000000Z\t    8 Quit\t
"""
OLDER = """Time\t\t    Id Command\tArgument
240131 12:00:00\t     8 Connect\tapp@10.0.0.1 on shop using TCP/IP
\t\t     8 Query\tSELECT a
FROM t -- it's
WHERE id = 5
240131 12:00:01\t     9 Prepare\tSELECT b FROM t WHERE c = ?
\t\t     9 Execute\tSELECT b FROM t WHERE c = 'x'
240131 12:00:02\t     8 Quit\t
"""


@pytest.mark.parametrize("text", [GENERAL, OLDER])
def test_a_general_log(text: str) -> None:
    read = events(text)
    assert [(each.session, each.sql, each.sent) for each in statements(read)] == [
        ("8", "SELECT a\nFROM t -- it's\nWHERE id = 5", "simple"),
        ("9", "SELECT b FROM t WHERE c = 'x'", "prepared"),
    ]
    assert [(event.what, event.session) for event in read if isinstance(event, Fact)] == [("begin", "8"), ("end", "8")]
    assert [int(each.at) % 60 for each in statements(read)] == [0, 1]


SLOW = """# Time: 2024-01-31T12:00:00.000100Z
# User@Host: app[app] @  [10.0.0.1]  Id:     8
# Query_time: 0.000416  Lock_time: 0.000003 Rows_sent: 21  Rows_examined: 42
use shop;
SET timestamp=1706702400;
SELECT a
# no heading
FROM t WHERE id = 5;
# User@Host: app[app] @  [10.0.0.1]  Id:     9
# Query_time: 0.002  Lock_time: 0 Rows_sent: 1  Rows_examined: 1
SET timestamp=1706702401;
BEGIN;
# Time: 2024-01-31T12:00:02.000100Z
# User@Host: app[app] @  [10.0.0.1]  Id:     8
# Query_time: 0.000009  Lock_time: 0.000000 Rows_sent: 0  Rows_examined: 42
SET timestamp=1706702402;
# administrator command: Quit;
"""


def test_a_slow_log() -> None:
    read = events(SLOW)
    assert [(each.session, each.sql, round(each.seconds, 6)) for each in statements(read)] == [
        ("8", "SELECT a\n# no heading\nFROM t WHERE id = 5", 0.000416),
        ("9", "BEGIN", 0.002),
    ]
    assert [(event.what, event.session) for event in read if isinstance(event, Fact)] == [("end", "8")]


def test_counters_without_values_are_left_out_and_samples_are_used() -> None:
    postgresql = 'userid,dbid,query,calls,total_exec_time\n10,5,"SELECT a FROM t WHERE id = $1",7,14.0\n10,5,"SELECT count(*)\nFROM t",3,6\n10,5,COMMIT,9,1\n'
    found = found_in(postgresql, "postgresql")
    assert found.statements == 19
    assert [(each.shapes, each.count) for each in found.classes.ordered()] == [(("select count(*) from t",), 3)]
    assert {left.reason: left.lines for left in found.left_out.found()}[NO_VALUES] == 7
    mysql = "SCHEMA_NAME,DIGEST,DIGEST_TEXT,COUNT_STAR,SUM_TIMER_WAIT,QUERY_SAMPLE_TEXT\n"
    mysql += "shop,x,SELECT `a` FROM `t` WHERE `id` = ?,7,7000000000,SELECT a FROM t WHERE id = 5\n"
    (each,) = found_in(mysql, "mysql").classes.ordered()
    assert (each.count, each.samples) == (7, [(Written("SELECT a FROM t WHERE id = 5"),)])
    (bin_,) = each.times.bins()
    assert (bin_.count, round(bin_.value, 6)) == (7, 0.001)


# ── shapes, kinds and transactions ────────────────────────────────────────────────────────────────────────────────────


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


def test_the_shares_of_a_workload_are_those_of_the_log() -> None:
    lines = []
    for number in range(1000):
        sql = f"SELECT a FROM t WHERE id = {number}" if number % 10 < 7 else f"SELECT b FROM u WHERE id = {number}"
        lines.append(f"2024-01-31 12:00:{number % 60:02}.000 UTC [{number % 4 + 100}] LOG:  statement: {sql}")
    found = found_in("\n".join(lines), "postgresql")
    traffic, made = workload.of(found, ["postgresql-text"], 1, len(lines), "a.log")
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
    one, other = (workload.of(found_in(text, "postgresql"), [], 1, 0, "a")[1] for _ in range(2))
    assert one == other


def test_many_classes_are_counted_and_the_rare_ones_left_out() -> None:
    text = "\n".join(
        f"2024-01-31 12:00:00.000 UTC [17] LOG:  statement: SELECT c{number} FROM t"
        for number in range(MOST_CLASSES + 50)
    )
    found = found_in(text, "postgresql")
    traffic, made = workload.of(found, [], 1, 0, "a")
    assert len(made.transaction) == scripts.MOST_CLASSES
    assert {left.reason: left.lines for left in traffic.left_out}[scripts.RARE] == MOST_CLASSES - scripts.MOST_CLASSES


def test_a_log_without_anything_to_run_is_refused_with_the_reason() -> None:
    for text, words in (
        ("2024-01-31 12:00:00.000 UTC [17] LOG:  checkpoint starting: time", "log_statement"),
        ("2024-01-31 12:00:00.000 UTC [17] LOG:  statement: DROP TABLE t", "none of its 1 statements"),
    ):
        with pytest.raises(UsageError, match=words):
            workload.of(found_in(text, "postgresql"), [], 1, 0, "a.log")


def test_a_clock_that_goes_backwards_and_a_log_of_slow_statements_are_noted() -> None:
    text = "\n".join(
        f"2024-01-31 12:{minute}:00.000 UTC [17] LOG:  duration: 99.0 ms  statement: SELECT 1"
        for minute in (10, 11, 10, 12)
    )
    notes = found_in(text, "postgresql").traffic([], 1, 4).notes
    assert [note.code for note in notes] == ["log-clock-backwards", "log-only-slow"]


def test_a_line_that_was_too_long_takes_its_entry_with_it() -> None:
    begun = "2024-01-31 12:00:00.000 UTC [17] LOG:  statement: SELECT 1,"
    text = f"{begun}\n\0too long\n{begun} 2\n"
    read = events(text, "postgresql-text")
    assert [each.sql for each in statements(read)] == ["SELECT 1, 2"]
    assert [event.why for event in read if isinstance(event, Ignored)] == [_sql.TOO_LONG]
