"""Dumps as servers' own tools write them, and damaged ones: what each engine loads and what it refuses, without a value of the user's."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shop_dumps
from ciphercost import engines
from ciphercost.engines import StartRequest
from ciphercost.engines._dumps import reasons, sql_scan
from ciphercost.engines.capabilities.dumps import DumpTarget, LoadsDumps, Rows
from ciphercost.host import supervisor
from ciphercost.host.run_ownership import hand_over
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from ciphercost.model.errors import CiphercostError, UsageError
from conftest import RequireServer
from shop_dumps import Made

SECRET = "4711-0815"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, require_server: RequireServer) -> Made:
    """The small shop's dumps of one engine, made once."""
    return shop_dumps.once(tmp_path_factory.mktemp, require_server)


@contextmanager
def loaded(engine_name: str, dump: Path) -> Iterator[tuple[Callable[[str], Rows], list[str], list[int]]]:
    """(runs a statement on a server that holds the dump, what the load reported, positions that it passed)."""
    engine = LoadsDumps.of(engines.get(engine_name))
    run_id = run_directory.new_id()
    positions: list[int] = []
    with Supervisor(run_id) as run_supervisor:
        scratch = supervisor.scratch(run_id, run_supervisor)
        directory, work = scratch / "cluster", scratch / "work"
        work.mkdir(mode=0o700)
        hand_over(work)
        installation = engine.find()
        engine.initialise(installation, directory, run_supervisor)
        recognised = engine.dump_of(dump)
        notes: list[str] = []
        if engine.loads_stopped:
            target = DumpTarget(installation, directory, run_supervisor, work, positions.append)
            notes = engine.load_dump(recognised, target)
        server = engine.start(
            StartRequest(installation, directory, run_supervisor, settings=dict(engine.load_settings))
        )
        try:
            with Agent() as agent:
                agent.connect("loader", server.connection())
                if not engine.loads_stopped:
                    target = DumpTarget(
                        installation,
                        directory,
                        run_supervisor,
                        work,
                        positions.append,
                        server.connection(),
                        lambda sql: agent.query("loader", sql),
                    )
                    notes = engine.load_dump(recognised, target)
                agent.connect("user", server.connection())
                yield lambda sql: agent.query("user", sql), notes, positions
        finally:
            server.stop()


@pytest.mark.parametrize(
    ("engine", "form"),
    [
        *(("postgresql", form) for form in ("plain", "custom", "tar", "directory")),
        *((engine, form) for engine in ("mysql", "mariadb") for form in ("one", "named")),
        ("firebird", "backup"),
        ("sqlite", "file"),
    ],
)
def test_a_dump_is_loaded_with_its_views_functions_and_triggers(engine: str, form: str, made: Made) -> None:
    with loaded(engine, made(engine)[form]) as (query, notes, _):
        tables = LoadsDumps.of(engines.get(engine)).table_rows(query)
        assert {name.lower(): count for name, count in tables.items()} == shop_dumps.rows()
        assert query("SELECT count(*) FROM spent") != [["0"]]
        server = LoadsDumps.of(engines.get(engine))
        (orders,) = [name for name in tables if name.lower() == "orders"]
        columns = server.table_columns(query, orders)
        assert [column.name.lower() for column in columns][:4] == ["id", "customer", "placed", "note"]
        portions = list(server.read_table(query, orders, [column.text for column in columns]))
        assert len(portions) > 1
        assert sorted(int(str(row[0])) for rows in portions for row in rows) == list(range(1, shop_dumps.ORDERS + 1))
        query("UPDATE orders SET note = 'x' WHERE id = 7")
        assert query("SELECT count(*) FROM changes") == [["4"]]
        if engine in ("postgresql", "mysql", "mariadb"):
            assert query("SELECT total(7) > 0") in ([["t"]], [["1"]])
            (note,) = notes
            assert "shop_owner" in note


def test_other_schemas_are_found_by_the_names_of_their_tables(require_postgresql: object, tmp_path: Path) -> None:
    (tmp_path / "shop.sql").write_text(
        "SELECT pg_catalog.set_config('search_path', '', false);\nCREATE SCHEMA \"Old Shop\";\n"
        'CREATE TABLE "Old Shop".orders (id int);\nCREATE SCHEMA public;\nCREATE TABLE public.items (id int);\n'
        'ALTER TABLE public.items OWNER TO "The Owner";\nCOPY public.items (id) FROM stdin;\n1\n2\n\\.\n'
    )
    with loaded("postgresql", tmp_path / "shop.sql") as (query, notes, _):
        engine = LoadsDumps.of(engines.get("postgresql"))
        assert engine.table_rows(query) == {"Old Shop.orders": 0, "items": 2}
        assert query("SELECT count(*) FROM orders") == [["0"]]
        assert "The Owner" in notes[0]


def refusal(engine: str, dump: Path) -> str:
    with pytest.raises(CiphercostError) as error, loaded(engine, dump):
        pass
    assert isinstance(error.value, UsageError)
    text = str(error.value)
    assert "\n" not in text
    assert shop_dumps.WORD not in text
    assert SECRET not in text
    return text


def altered(dump: Path, into: Path, change: Callable[[bytes], bytes]) -> Path:
    """A copy of a dump with other content; `into`: a directory."""
    file = into / f"altered-{dump.name}"
    file.write_bytes(change(dump.read_bytes()))
    return file


@pytest.mark.parametrize("form", ["plain", "custom"])
def test_a_dump_of_a_newer_postgresql_is_refused(form: str, made: Made, tmp_path: Path) -> None:
    dump = made("postgresql")[form]
    version = re.search(rb"(\d\d\.\d+) ?\(|version (\d\d\.\d+)", dump.read_bytes())
    assert version
    ours = version[1] or version[2]
    text = refusal("postgresql", altered(dump, tmp_path, lambda content: content.replace(ours, b"99" + ours[2:])))
    assert "from PostgreSQL 99" in text
    assert "postgresql@99" in text


@pytest.mark.parametrize("engine", ["mysql", "mariadb"])
def test_a_dump_of_a_newer_mysql_or_mariadb_is_refused(engine: str, made: Made, tmp_path: Path) -> None:
    newer = altered(
        made(engine)["one"], tmp_path, lambda text: re.sub(rb"Server version\t\d+", b"Server version\t99", text)
    )
    assert f"{engine}@99." in refusal(engine, newer)


def test_a_backup_of_a_newer_firebird_is_refused(made: Made, tmp_path: Path) -> None:
    dump = made("firebird")["backup"]
    newer = altered(dump, tmp_path, lambda content: content[:3] + bytes([content[3] + 1]) + content[4:])
    assert "newer Firebird" in refusal("firebird", newer)


@pytest.mark.parametrize(
    ("engine", "form", "share"),
    [
        ("postgresql", "plain", 0.5),
        ("postgresql", "custom", 0.8),
        ("postgresql", "tar", 0.5),
        ("mysql", "one", 0.5),
        ("mariadb", "named", 0.5),
        ("firebird", "backup", 0.5),
        ("sqlite", "file", 0.5),
    ],
)
def test_a_truncated_dump_is_refused(engine: str, form: str, share: float, made: Made, tmp_path: Path) -> None:
    cut = altered(made(engine)[form], tmp_path, lambda content: content[: int(len(content) * share)])
    text = refusal(engine, cut)
    assert re.search(r"truncated|ends too early", text)
    if form in ("plain", "one", "named"):
        lines = cut.read_text().split("\n")
        assert f"line {len(lines) - (not lines[-1])}:" in text


def test_a_directory_without_a_file_of_it_is_refused(made: Made, tmp_path: Path) -> None:
    shutil.copytree(made("postgresql")["directory"], tmp_path / "dump")
    next((tmp_path / "dump").glob("*.dat.gz")).unlink()
    assert "a file of it is missing" in refusal("postgresql", tmp_path / "dump")
    (tmp_path / "dump" / "toc.dat").unlink()
    assert "no toc.dat" in refusal("postgresql", tmp_path / "dump")


@pytest.mark.parametrize("engine", ["postgresql", "mysql", "mariadb"])
def test_an_error_is_named_by_its_line(engine: str, require_server: RequireServer, tmp_path: Path) -> None:
    require_server(engine)
    rows = f"INSERT INTO t VALUES (1, '{SECRET}');\n" * 998
    text = f"CREATE TABLE t (id int, word text);\n{rows}INSRT INTO t VALUES ('{SECRET}');\nSELECT 1;\n"
    (tmp_path / "wrong.sql").write_text(text)
    assert "wrong.sql, line 1000: has a syntax error" in refusal(engine, tmp_path / "wrong.sql")


def test_a_row_that_does_not_fit_is_named_by_table_and_column(require_postgresql: object, tmp_path: Path) -> None:
    rows = f"CREATE TABLE t (id int, word int);\nCOPY t (id, word) FROM stdin;\n1\t2\n2\t{SECRET}\n\\.\n"
    (tmp_path / "wrong.sql").write_text(rows)
    assert "row 2 of t, column word" in refusal("postgresql", tmp_path / "wrong.sql")


def test_missing_extensions_are_all_named(made: Made, tmp_path: Path) -> None:
    dumps = made("postgresql")
    lacking = altered(
        dumps["plain"],
        tmp_path,
        lambda text: text.replace(
            b"CREATE EXTENSION",
            b'CREATE EXTENSION "no-such";\nCREATE EXTENSION IF NOT EXISTS nor_this;\nCREATE EXTENSION',
            1,
        ),
    )
    line = lacking.read_text().split("\n").index('CREATE EXTENSION "no-such";') + 1
    text = refusal("postgresql", lacking)
    assert f"line {line}: needs the extensions no-such, nor_this" in text
    renamed = altered(
        dumps["custom"], tmp_path, lambda content: content.replace(b"EXISTS pgcrypto", b"EXISTS pgcrypta")
    )
    assert "needs the extension pgcrypta" in refusal("postgresql", renamed)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("\\connect shop\n", "line 1: connects to another database"),
        ("SELECT 1;\n\\! touch here\n", "line 2: has the command \\! of psql"),
        ("CREATE ROLE me;\n", "creates a role or a database"),
        ("SET default_tablespace = 'fast';\n", "--no-tablespaces"),
        ("--\n-- PostgreSQL database cluster dump\n--\n", "pg_dumpall"),
    ],
)
def test_what_reaches_beyond_one_database_is_refused(
    content: str, words: str, require_postgresql: object, tmp_path: Path
) -> None:
    (tmp_path / "dump.sql").write_text(content)
    assert words in refusal("postgresql", tmp_path / "dump.sql")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("-- Current Database: `mysql`\nUSE `mysql`;\n", "line 1: holds the server's own database mysql"),
        ("USE `a`;\nSELECT 1;\nUSE `b`;\n", "line 3: holds a second database (a, b)"),
    ],
)
def test_a_dump_of_several_databases_is_refused(
    content: str, words: str, require_server: RequireServer, tmp_path: Path
) -> None:
    require_server("mariadb")
    (tmp_path / "dump.sql").write_text(content)
    assert words in refusal("mariadb", tmp_path / "dump.sql")


OTHERS = [
    ("custom", "mysql", "use postgresql"),
    ("plain", "mariadb", "use postgresql"),
    ("custom", "sqlite", "use postgresql"),
]


@pytest.mark.parametrize(("form", "engine", "words"), OTHERS)
def test_a_dump_of_another_server_is_refused(form: str, engine: str, words: str, made: Made) -> None:
    with pytest.raises(UsageError, match=words):
        LoadsDumps.of(engines.get(engine)).dump_of(made("postgresql")[form])


def test_a_compressed_file_is_refused_with_the_command_that_unpacks_it(tmp_path: Path) -> None:
    (tmp_path / "shop.sql.gz").write_bytes(b"\x1f\x8b\x08rest")
    for engine in ("postgresql", "mysql", "mariadb", "firebird", "sqlite"):
        with pytest.raises(UsageError, match="gunzip -k"):
            LoadsDumps.of(engines.get(engine)).dump_of(tmp_path / "shop.sql.gz")


def test_a_sqlite_file_in_use_or_damaged_is_refused(tmp_path: Path) -> None:
    file = shop_dumps.sqlite(tmp_path)["file"]
    engine = LoadsDumps.of(engines.get("sqlite"))
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("UPDATE orders SET note = 'y' WHERE id = 1")
    connection.commit()
    with pytest.raises(UsageError, match="write-ahead log"):
        engine.dump_of(file)
    connection.close()
    damaged = altered(file, tmp_path, lambda content: content[:8192] + b"\xff" * 4096 + content[12288:])
    assert "quick_check" in refusal("sqlite", damaged)
    (tmp_path / "text").write_text("CREATE TABLE t (a);\n")
    with pytest.raises(UsageError, match="SQL text"):
        engine.dump_of(tmp_path / "text")


def test_a_file_of_sqlite_keeps_what_a_copy_by_tables_could_lose(tmp_path: Path) -> None:
    file = tmp_path / "odd.db"
    connection = sqlite3.connect(file)
    for statement in (
        "CREATE TABLE child (id integer PRIMARY KEY, parent int REFERENCES parent)",
        "CREATE TABLE parent (id integer PRIMARY KEY AUTOINCREMENT, twice int GENERATED ALWAYS AS (id * 2) STORED)",
        "INSERT INTO parent (id) VALUES (41)",
        "INSERT INTO child VALUES (1, 41)",
        "CREATE VIRTUAL TABLE words USING fts5(body)",
        "INSERT INTO words VALUES ('hello world')",
        "PRAGMA user_version = 7",
    ):
        connection.execute(statement)
    connection.commit()
    connection.close()
    with loaded("sqlite", file) as (query, _, _positions):
        assert query("PRAGMA user_version") == [["7"]]
        assert query("SELECT twice FROM parent") == [["82"]]
        assert query("SELECT seq FROM sqlite_sequence") == [["41"]]
        assert query("SELECT count(*) FROM words WHERE words MATCH 'hello'") == [["1"]]
        assert query("PRAGMA foreign_key_check") == []


# ── pure ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)


@given(owner=NAMES, row=st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n\\"), max_size=40))
def test_rows_of_copy_are_never_read_as_statements(
    owner: str, row: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = [row, "ALTER TABLE t OWNER TO liar;", "CREATE EXTENSION lie;", "CREATE ROLE liar;"]
    rows = "\n".join(lines)
    text = f"COPY public.t (a) FROM stdin;\n{rows}\n\\.\nALTER TABLE t OWNER TO {owner};\n"
    file = tmp_path_factory.mktemp("scan") / "dump.sql"
    file.write_text(text)
    needs = sql_scan.scan(file, "--dump")
    assert list(needs.roles) == [owner]
    assert not needs.extensions


@given(value=st.text(st.characters(codec="utf-8"), min_size=6, max_size=30))
def test_no_reason_repeats_a_value(value: str) -> None:
    for table, text in (
        (reasons.POSTGRESQL, f'invalid input syntax for type integer: "{value}"'),
        (reasons.POSTGRESQL, f"duplicate key value violates unique constraint: Key (name)=({value}) already exists."),
        (reasons.POSTGRESQL, f'syntax error at or near "{value}"'),
        (reasons.MYSQL, f"Duplicate entry '{value}' for key 't.PRIMARY'"),
        (reasons.MYSQL, f"You have an error in your SQL syntax; near '{value}' at line 1"),
        (reasons.MYSQL, f"Incorrect integer value: '{value}' for column 'a' at row 1"),
    ):
        assert value not in reasons.words(table, "", text)
