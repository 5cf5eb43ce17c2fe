"""What a cell's server and client can't do with scripts is refused before the run, and what they can is in its program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import toml
from ciphercost.plan.planned import PlannedCell
from ciphercost.plan.resolve import resolve
from ciphercost.runs import anonymize, node_run

BRANCH = "\\if :client_id\nSELECT 1;\n\\endif\nSELECT 2;"
PIPELINE = "\\startpipeline\nSELECT 1;\n\\endpipeline"
MECHANISMS = {"sqlite": "sqlcipher", "h2": "h2-aes", "firebird": "wire-crypt"}


def planned(engine: str, text: str = "", directory: Path = Path(), **fields: Any) -> PlannedCell:
    if text:
        path = directory / "own.sql"
        path.write_text(text)
        fields["sql"] = str(path)
    return resolve(CellSpec(engine, MECHANISMS.get(engine, "tls"), **fields))


@pytest.mark.parametrize("engine", ["postgresql", "mysql", "mariadb", "sqlite", "firebird"])
def test_branches_run_on_every_server_of_the_rust_agent(engine: str, tmp_path: Path) -> None:
    program = planned(engine, BRANCH, tmp_path).program
    assert program.transactions[0][2].decides
    assert (program.mode, program.tries, program.asks_scale) == ("prepared", 0, False)


@pytest.mark.parametrize(("engine", "client"), [("postgresql", "jdbc"), ("h2", ""), ("mysql", "jdbc:9.7.0")])
def test_drivers_run_steps_and_try_again_but_have_no_pipelines(engine: str, client: str, tmp_path: Path) -> None:
    program = planned(engine, BRANCH, tmp_path, client=client, max_tries=3).program
    assert (program.transactions[0][2].decides, program.tries) == (True, 3)
    if engine == "postgresql":
        with pytest.raises(UsageError, match=r"own.sql: JDBC has no pipelines"):
            planned(engine, PIPELINE, tmp_path, client=client)


@pytest.mark.parametrize(
    ("text", "factors", "fields", "words"),
    [
        (
            "\\if :client_id\nDELETE FROM t;\n\\endif",
            {"how": "batch"},
            {},
            "how=batch needs a workload of a single statement",
        ),
        ("DELETE FROM t;", {"how": "batch"}, {"max_tries": 2}, "--max-tries 2: operations of a batch"),
        (
            "DELETE FROM t;",
            {"autocommit": "false", "commit_every": "5"},
            {"max_tries": 2},
            "--max-tries 2: operations of a batch",
        ),
    ],
)
def test_what_a_batch_can_t_do_is_refused(
    text: str, factors: dict[str, str], fields: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=words):
        planned("postgresql", text, tmp_path, client="jdbc", factors=factors, **fields)


@pytest.mark.parametrize(
    ("engine", "fields", "words"),
    [
        ("mysql", {"protocol": "extended"}, "statements of mysql travel as simple or prepared"),
        ("sqlite", {"protocol": "simple"}, "statements of sqlite travel as prepared"),
        ("nginx", {"workload": "file", "protocol": "simple"}, "nginx takes no SQL"),
        ("nginx", {"workload": "file", "max_tries": 2}, "nginx takes no SQL"),
        ("valkey", {"builtin": ["tpcb"]}, "valkey does not speak"),
        ("postgresql", {"protocol": "simple", "client": "jdbc"}, "the driver decides that"),
        ("h2", {"protocol": "prepared"}, "the driver decides that"),
        ("postgresql", {"workload": "connect", "protocol": "prepared"}, "operations that open connections send text"),
        ("postgresql", {"per_request": True, "protocol": "extended"}, "operations that open connections send text"),
        ("postgresql", {"builtin": ["tpcb"], "rows": 250_000}, "write -D scale=2"),
        ("postgresql", {"define": {"scale": "2"}}, "add --sql or --builtin"),
        ("postgresql", {"builtin": ["select"], "define": {"x": "2"}}, "no script uses :x"),
    ],
)
def test_options_that_have_no_effect_are_refused(engine: str, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        planned(engine, **fields)


def test_options_reach_the_program(tmp_path: Path) -> None:
    program = planned(
        "postgresql", "SELECT :n \\; SELECT 2;", tmp_path, protocol="simple", max_tries=4, define={"n": "7"}
    ).program
    assert (program.mode, program.tries) == ("simple", 4)
    assert program.transactions[0][2].statements[0].sql == "SELECT 7 ; SELECT 2"


def test_the_scale_is_found_on_the_user_s_server_alone() -> None:
    url = "postgresql://me@127.0.0.1:1/shop"
    assert planned("postgresql", builtin=["tpcb"], url=url).program.asks_scale
    assert not planned("postgresql", builtin=["tpcb"], url=url, define={"scale": "3"}).program.asks_scale
    own = planned("postgresql", builtin=["tpcb"], define={"scale": "3"}).program
    assert (own.asks_scale, own.creates, own.parameters["scale"]) == (False, True, 3)


def test_a_spec_file_has_scripts_with_weights(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.sql").write_text("SELECT :n;")
    cells = [
        CellSpec("postgresql", "tls", sql=f"{tmp_path}/a.sql", define={"n": "1"}, protocol="extended", max_tries=2),
        CellSpec(
            "postgresql", "tls", sql=[f"{tmp_path}/a.sql@2", f"{tmp_path}/b.sql"], define={"n": "1"}, builtin=["tpcb@3"]
        ),
    ]
    path = tmp_path / "spec.toml"
    path.write_text(toml.dump(Spec(cells=cells)))
    read = toml.plan(path)
    assert read.spec.cells == cells
    assert [weight for _, weight, _ in read.cells[1].program.transactions] == [2, 1, 3]
    part = node_run.part("run", "machine", read.spec)
    assert [cell.sql for cell in part.spec.cells] == ["0-a.sql", ["0-a.sql@2", "1-b.sql"]]
    assert part.files.keys() == {"0-a.sql", "1-b.sql"}
    hide = anonymize.hiding(())
    hidden = anonymize._walk(msgspec.to_builtins(read.spec), hide)
    assert hidden["cells"][1]["sql"] == ["…/a.sql@2", "…/b.sql"]


def test_a_spec_of_an_older_version_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("SELECT 1;")
    cell = msgspec.json.decode(b'{"engine": "postgresql", "mechanism": "tls", "sql": "a.sql"}', type=CellSpec)
    assert (cell.scripts, cell.script_names, cell.own_script) == (("a.sql",), "a.sql", True)
    assert msgspec.to_builtins(cell) == {"engine": "postgresql", "mechanism": "tls", "sql": "a.sql"}
