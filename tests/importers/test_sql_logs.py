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
from ciphercost.importers.logs import _postgresql, postgresql_json
from ciphercost.importers.logs._sql import Event, Fact, Ignored, Logged
from ciphercost.importers.statements.classes import Written
from ciphercost.importers.statements.found import Found
from ciphercost.importers.statements.transactions import NO_VALUES

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
    found.traffic([], 1, 0)  # ends what is open
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


def test_of_a_log_with_the_newest_line_first_the_oldest_lines_are_left_out_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = (SAMPLE_LOGS / "cloudnativepg.json").read_text()
    lines = len(text.splitlines())
    monkeypatch.setattr(postgresql_json, "MOST_REVERSED", lines - 3)
    first, *_ = events(text, "postgresql-json")
    assert first == Ignored(lines - 2, postgresql_json.OLDER, 3)


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
