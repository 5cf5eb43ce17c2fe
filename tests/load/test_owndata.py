"""--csv: a CSV file becomes a table of a real server with the same values, however long the file is."""

from __future__ import annotations

import re
import sqlite3
import tempfile
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from ciphercost import engines
from ciphercost.engines import StartRequest
from ciphercost.host import supervisor
from ciphercost.load import tables as owndata
from ciphercost.load.agent import Agent
from ciphercost.load.program import Program
from ciphercost.load.tables import Load, dialects
from ciphercost.load.tables.dialects import DIALECTS, KEY
from ciphercost.load.tables.transactions import TABLE
from ciphercost.model import run_directory
from ciphercost.model.connection import Connection
from ciphercost.model.errors import RunError, UsageError
from conftest import Require
from repetitions import examples
from tables import Table, differing, tables


def written(content: str | Table, directory: Path) -> Path:
    path = directory / "table.csv"
    if isinstance(content, Table):
        return content.write(path)
    path.write_text(content)
    return path


def loading(program: Program) -> Load:
    assert isinstance(program.load, Load)
    return program.load


def everything(load: Load) -> str:
    return f"SELECT {', '.join(column.name for column in load.columns)} FROM {TABLE} ORDER BY {KEY}"


# ── the same values come back ─────────────────────────────────────────────────────────────────────────────────────────


@given(tables())
def test_any_table_comes_back_from_sqlite_with_the_same_values(table: Table) -> None:
    with tempfile.TemporaryDirectory() as directory:
        load = loading(owndata.program(written(table, Path(directory)), "mixed-crud", "sqlite"))
        database = sqlite3.connect(":memory:")
        try:
            for step in load:
                database.execute(step.sql)
            got = database.execute(everything(load)).fetchall()
        finally:
            database.close()
        assert differing(table, [loaded.column.kind for loaded in load.columns], got) == []


@contextmanager
def loader(engine_name: str, directory: Path) -> Iterator[tuple[Agent, Connection]]:
    """The agent, connected as `loader` to a new, empty server, and the fields of that connection."""
    engine = engines.get(engine_name)
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor, Agent() as agent:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        installation = engine.find()
        engine.initialise(installation, scratch / "data", run_supervisor)
        server = engine.start(StartRequest(installation, scratch / "data", run_supervisor, logs=directory))
        try:
            agent.connect("loader", server.connection())
            yield agent, server.connection()
        finally:
            server.stop()


Own = tuple[str, Agent, Connection]


@pytest.fixture(scope="module", params=["sqlite", "postgresql", "mysql", "mariadb", "firebird"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, require: Require) -> Iterator[Own]:
    require(
        list(engines.get(request.param).available()), f"no {request.param} here: `ciphercost install {request.param}`"
    )
    with loader(request.param, tmp_path_factory.mktemp("logs")) as (agent, fields):
        yield request.param, agent, fields


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=tables())
def test_any_table_comes_back_from_a_real_server_with_the_same_values(server: Own, table: Table) -> None:
    name, agent, fields = server
    with tempfile.TemporaryDirectory() as directory:
        program = owndata.program(written(table, Path(directory)), "mixed-crud", engines.get(name).dialect)
        load = loading(program)
        for step in load:
            agent.query("loader", step.sql)
    try:
        assert (
            differing(table, [loaded.column.kind for loaded in load.columns], agent.query("loader", everything(load)))
            == []
        )
        checked = agent.query("loader", program.check)
        assert checked[0][0] == str(len(table.rows))
        agent.program(program)
        agent.connect("load", fields)
        done = agent.slice("load", 60, discard=0.0, seed=1, operations=40)
        assert (done.operations, done.errors, done.first_error) == (40, 0, "")
        agent.disconnect("load")
    finally:
        agent.query("loader", f"DROP TABLE {TABLE}")


# ── the workload ──────────────────────────────────────────────────────────────────────────────────────────────────────

PEOPLE = "name,age,joined,ok\nAda,36,2020-01-01,true\nBob,,2021-05-06,false\n"


def test_inserts_and_updates_write_values_that_are_in_the_file(tmp_path: Path) -> None:
    program = owndata.program(written(PEOPLE, tmp_path), "mixed-crud", "postgresql")
    by_name = {
        name: [script for transaction, _, script in program.transactions if transaction == name]
        for name, _, _ in program.transactions
    }
    assert {variable.value for script in by_name["insert"] for variable in script.variables} == {
        *("Ada", "36", "2020-01-01"),
        *("Bob", "2021-05-06"),
    }
    assert "VALUES ($1, NULL, $2, FALSE)" in by_name["insert"][1].statements[0].sql
    assert [script.statements[0].sql for script in by_name["update"]] == [
        f"UPDATE {TABLE} SET c_age = $1 WHERE {KEY} = $2",
        f"UPDATE {TABLE} SET c_age = NULL WHERE {KEY} = $1",
    ]


@pytest.mark.parametrize("rows", [1, 2, 16, 100])
def test_the_mix_is_seventy_ten_ten_ten_however_many_rows_were_drawn(tmp_path: Path, rows: int) -> None:
    path = written("word,n\n" + "".join(f"w{n},{n}\n" for n in range(rows)), tmp_path)
    program = owndata.program(path, "mixed-crud", "postgresql")
    weights = {
        name: sum(w for transaction, w, _ in program.transactions if transaction == name)
        for name, _, _ in program.transactions
    }
    whole = sum(weights.values())
    assert {name: 100 * weight / whole for name, weight in weights.items()} == owndata.WORKLOADS["mixed-crud"]


def test_the_same_file_gives_the_same_operations_each_time(tmp_path: Path) -> None:
    path = written("n\n" + "\n".join(str(n) for n in range(500)), tmp_path)
    first = owndata.program(path, "mixed-crud", "postgresql").transactions
    owndata._survey.cache_clear()
    assert owndata.program(path, "mixed-crud", "postgresql").transactions == first


def test_a_workload_that_has_tables_of_its_own_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'tpcb' has its own tables; .*mixed-crud"):
        owndata.program(written(PEOPLE, tmp_path), "tpcb", "postgresql")


# ── size ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_is_never_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    with path.open("w") as file:
        file.write("id,text\n")
        file.writelines(f"{n},{'x' * 500}\n" for n in range(40_000))
    assert path.stat().st_size > 20e6
    tracemalloc.start()
    try:
        program = owndata.program(path, "mixed-crud", "postgresql")
        rows = sum(step.sql.count(", 'x") for step in program.load)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rows == 40_000
    assert peak < 8e6


def test_a_file_that_is_too_wide_is_refused_by_its_first_line(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{n}" for n in range(10**6)) + "\nnot,as,many\n")
    for name in ("postgresql", "mysql", "sqlite", "firebird"):
        with pytest.raises(UsageError, match=f"1000000 columns; .* at most {DIALECTS[name].most_columns}"):
            owndata.program(path, "mixed-crud", name)


@pytest.mark.parametrize("name", ["postgresql", "sqlite", "mysql", "mariadb"])
def test_a_table_as_wide_as_the_server_has_it_is_made_and_used(tmp_path: Path, name: str, require: Require) -> None:
    require(list(engines.get(name).available()), f"no {name} here: `ciphercost install {name}`")
    columns = DIALECTS[engines.get(name).dialect].most_columns - 1
    path = written(
        ",".join(f"n{n}" for n in range(columns)) + ("\n" + ",".join(str(n % 10) for n in range(columns))) * 2 + "\n",
        tmp_path,
    )
    program = owndata.program(path, "mixed-crud", engines.get(name).dialect)
    with loader(name, tmp_path) as (agent, _):
        for step in program.load:
            agent.query("loader", step.sql)
        agent.program(program)
        done = agent.slice("loader", 60, discard=0.0, seed=1, operations=20)
        assert (done.errors, done.first_error) == (0, "")


def test_long_texts_go_outside_the_row_and_a_row_that_still_does_not_fit_is_refused(tmp_path: Path) -> None:
    many = ",".join(f"t{n}" for n in range(150)) + "\n" + ",".join("x" * 300 for _ in range(150)) + "\n"
    for name in ("mysql", "firebird"):
        load = loading(owndata.program(written(many, tmp_path), "mixed-crud", name))
        types = {column.type.split("(")[0] for column in load.columns}
        assert len(types) == 2, types
    wide = ",".join(f"t{n}" for n in range(900)) + "\n" + ",".join("x" * 300 for _ in range(900)) + "\n"
    with pytest.raises(UsageError, match="of a page; MySQL/MariaDB allows 8126"):
        owndata.program(written(wide, tmp_path), "mixed-crud", "mysql")
    wide = ",".join(f"n{n}" for n in range(7999)) + "\n" + ",".join("1.25" for _ in range(7999)) + "\n"
    with pytest.raises(UsageError, match="takes 71999 bytes; Firebird allows 65535"):
        owndata.program(written(wide, tmp_path), "mixed-crud", "firebird")
    with pytest.raises(UsageError, match=r"'b': 40000 .*Firebird .* 32765 bytes"):
        owndata.program(written("a,b\n1," + "x" * 40_000 + "\n", tmp_path), "mixed-crud", "firebird")


# ── bad files ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "the file is empty"),
        ("a,b\n", "contains no rows"),
        ("a,,c\n1,2,3\n", "line 1: column 2 has no name"),
        ("a,b,a\n1,2,3\n", "line 1: columns 1 and 3 are both named"),
        ("1,2\n3,4\n", "these look like values, not names"),
        ("a,b\n1\n", "line 2: 1 value, but"),
    ],
)
def test_a_file_that_holds_no_table_is_refused(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        owndata.program(written(content, tmp_path), "mixed-crud", "sqlite")


def test_a_file_that_changes_between_its_two_readings_ends_the_run(tmp_path: Path) -> None:
    path = written("a\n1\n2\n", tmp_path)
    load = owndata.program(path, "mixed-crud", "sqlite").load
    path.write_text("a\n1\n2\nthree\n")
    with pytest.raises(RunError, match="the file changed while ciphercost read it"):
        list(load)
    assert len(list(owndata.program(path, "mixed-crud", "sqlite").load)) == 3


# ── each dialect ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_quoted_is_quoted_so_that_no_setting_of_the_server_changes_it() -> None:
    assert dialects.standard("it's") == "'it''s'"
    assert dialects.postgresql("a\\'b") == "E'a\\\\''b'"
    assert dialects.mysql("a\\") == "_utf8mb4 X'615c'"


def test_firebird_is_given_selects_that_say_each_values_type(tmp_path: Path) -> None:
    path = written("a,b\n" + "1,x\n,y\n" * 60, tmp_path)
    steps = [step.sql for step in owndata.program(path, "mixed-crud", "firebird").load]
    assert steps[1].startswith(
        f"INSERT INTO {TABLE} ({KEY}, c_a, c_b) SELECT 1, CAST(1 AS integer), CAST('x' AS varchar(1) character set utf8) "
        "FROM RDB$DATABASE UNION ALL SELECT 2, CAST(NULL AS integer), "
    )
    assert [step.count("RDB$DATABASE") for step in steps[1:3]] == [100, 20]
    assert "RESTART WITH 121" in steps[3]
