"""own_scripts: files and pgbench's own scripts with weights."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ciphercost import engines
from ciphercost.load import own_scripts, workloads
from ciphercost.load.pgbench.builtins import BUILTINS
from ciphercost.load.program import Program
from ciphercost.model.errors import UsageError
from conftest import RequireServer

DIALECTS = ("postgresql", "mysql", "sqlite", "duckdb", "firebird", "h2")


def prepared(files: list[str], builtins: list[str], dialect: str = "postgresql", **defined: str) -> Program:
    workload = own_scripts.workload(files, builtins, tables=not files)
    return workloads.prepare(workload, dialect, {}, defined=defined)


def test_each_script_is_a_transaction_with_its_weight(tmp_path: Path) -> None:
    one, other, empty = tmp_path / "a.sql", tmp_path / "b@2", tmp_path / "never.sql"
    for path in (one, other, empty):
        path.write_text(f"SELECT '{path.name}';")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.sql").write_text("SELECT 4;")
    files = [f"{one}@3", f"{tmp_path / 'sub' / 'a.sql'}", str(other), f"{other}@7", f"{empty}@0"]
    program = prepared(files, [])
    assert [(name, weight) for name, weight, _ in program.transactions] == [
        ("a.sql", 3),
        ("a.sql (2)", 1),
        ("b@2", 1),
        ("b@2 (2)", 7),
    ]
    assert program.read_only


@pytest.mark.parametrize(
    ("files", "builtins", "words"),
    [
        (["{}@x"], [], "'x' is not a weight"),
        (["{}@-1"], [], "'-1' is not a weight"),
        (["{}@2147483648"], [], "is not a weight"),
        (["{}@0"], ["tpcb@0"], "weight 0"),
        (["{}.gone@3"], [], "can't read the file"),
        ([], ["s"], "may be simple-update or select-only"),
        ([], ["tpcd"], "no such script"),
        ([], [""], "no such script"),
    ],
)
def test_weights_and_names_that_are_none(tmp_path: Path, files: list[str], builtins: list[str], words: str) -> None:
    path = tmp_path / "a.sql"
    path.write_text("SELECT 1;")
    with pytest.raises(UsageError, match=words):
        own_scripts.workload([file.format(path) for file in files], builtins, tables=False)


def test_the_builtin_scripts_are_pgbenchs(require_server: RequireServer) -> None:
    require_server("postgresql")
    pgbench = Path(engines.get("postgresql").find("").location) / "pgbench"
    for name in BUILTINS:
        shown = subprocess.run([pgbench, f"--show-script={name}"], capture_output=True, text=True, check=True)
        _, script = (shown.stdout + shown.stderr).strip().split("\n", 1)
        (transaction,) = own_scripts.workload([], [name], tables=False).transaction
        assert transaction.script.strip() == script.strip()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", BUILTINS)
def test_builtin_scripts_run_in_every_dialect(dialect: str, name: str) -> None:
    program = prepared([], [name], dialect, scale="3")
    ((title, _, script),) = program.transactions
    assert title == name
    assert not script.computes
    assert {variable.name: variable.high for variable in script.variables}["aid"] == 300_000
    assert len(script.statements) == {"tpcb-like": 7, "simple-update": 5, "select-only": 1}[name]
    assert program.parameters == {"rows": 300_000, "scale": 3}
    assert program.creates


def test_on_tables_of_the_user_s_nothing_is_made() -> None:
    workload = own_scripts.workload([], ["tpcb"], tables=False)
    assert own_scripts.asks_scale(workload)
    program = workloads.prepare(workload, "postgresql", {}, defined={"scale": "7"})
    assert not program.creates
    assert not list(program.load)
    assert {variable.high for variable in program.transactions[0][2].variables} == {700_000, 7, 70, 5000}


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("SELECT :scale", True),
        ("\\set scale 5\nSELECT :scale", False),
        ("SELECT 1", False),
        ("\\set n :scale * 2\nSELECT :n", True),
    ],
)
def test_the_scale_is_asked_for_if_a_script_uses_it(tmp_path: Path, text: str, asks: bool) -> None:
    (tmp_path / "a.sql").write_text(text)
    assert own_scripts.asks_scale(own_scripts.workload([str(tmp_path / "a.sql")], [], tables=False)) is asks


def test_definitions_reach_statements_requests_and_commands(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("SELECT * FROM :tab WHERE id = :n;")
    assert (
        prepared([str(path)], [], tab="orders", n="5").transactions[0][2].statements[0].sql
        == "SELECT * FROM orders WHERE id = 5"
    )
    path.write_text("GET /:tab?id=:n")
    assert (
        prepared([str(path)], [], "http", tab="orders", n="5").transactions[0][2].statements[0].sql
        == "GET /orders?id=5"
    )
    path.write_text("GET :tab::n")
    assert (
        prepared([str(path)], [], "valkey", tab="orders", n="5").transactions[0][2].statements[0].sql == "GET orders:5"
    )


@pytest.mark.parametrize(("name", "words"), [("1a", "not the name of a variable"), ("mm", "no script uses :mm")])
def test_definitions_without_use_are_refused(tmp_path: Path, name: str, words: str) -> None:
    path = tmp_path / "a.sql"
    path.write_text("SELECT :m, ':mmm';")
    with pytest.raises(UsageError, match=words):
        own_scripts.check_defined({name: "1"}, own_scripts.workload([str(path)], [], tables=False))


@pytest.mark.parametrize("text", ["\\sleep 1 ms\nGET a", "\\set a 1 + :b\nGET a", "\\if 1\nGET a\n\\endif"])
@pytest.mark.parametrize("dialect", ["http", "valkey"])
def test_other_languages_only_draw(tmp_path: Path, text: str, dialect: str) -> None:
    path = tmp_path / "a"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"--sql a, line 1, column \d+: "):
        prepared([str(path)], [], dialect)
