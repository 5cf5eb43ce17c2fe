"""`--secret`: which columns of the user's rows are encrypted, in how many cells, and what is refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from ciphercost import commands
from ciphercost.commands import _rows_read
from ciphercost.load import tables
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec
from ciphercost.plan import toml
from ciphercost.plan.resolve import resolve

ROWS = Path(__file__).parent.parent / "cases" / "rows"
PATIENTS = ROWS / "patients.csv"
SPEC = 'mode = "quick"\nsessions = 1\ntime = 9.0\nlatency = false\n[[cells]]\nengine = "postgresql"\nmechanism = "pgcrypto-cbc-256"\n'


def cell(**fields: object) -> CellSpec:
    known = {"engine": "postgresql", "mechanism": "pgcrypto-cbc-256", "workload": "search", "csv": str(PATIENTS)}
    return CellSpec(**(known | fields))  # type: ignore[arg-type]


def test_the_line_before_the_load_names_the_secret_columns() -> None:
    planned = resolve(cell(secret=["diagnosis", "ssn"]))
    assert planned.secret_columns == ("ssn", "diagnosis")
    (line,) = _rows_read.lines([planned])
    assert line.endswith("secret: ssn, diagnosis")


def test_each_operation_is_a_cell_of_one_experiment_unless_a_workload_is_named(tmp_path: Path) -> None:
    argv = ["run", "postgresql:pgcrypto-cbc-256", "--csv", str(PATIENTS), "--secret", "ssn,diagnosis", "--print-spec"]
    printed = CliRunner().invoke(commands.cli, argv)
    (tmp_path / "all.toml").write_text(printed.stdout)
    cells = toml.plan(tmp_path / "all.toml").spec.cells
    assert [each.workload for each in cells] == list(tables.OPERATIONS)
    assert {each.group for each in cells} == {cells[0].group}
    assert {tuple(each.secret) for each in cells} == {("ssn", "diagnosis")}
    assert CliRunner().invoke(commands.cli, [*argv, "--workload", "mixed-crud"]).stdout.count("[[cells]]") == 1


@pytest.mark.parametrize("written", ['"ssn, diagnosis"', '["ssn", "diagnosis"]'])
def test_a_spec_file_lists_the_columns_or_separates_them_by_commas(tmp_path: Path, written: str) -> None:
    (tmp_path / "grid.toml").write_text(f'{SPEC}csv = "{PATIENTS}"\nsecret = {written}\n')
    (planned,) = toml.plan(tmp_path / "grid.toml").cells
    assert planned.secret_columns == ("ssn", "diagnosis")
    assert planned.program.parameters["rows"] == 6


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"secret": ["snn"]}, ("line 1", "'snn'", "did you mean 'ssn'")),
        ({"secret": ["ssn", "ssn"]}, ("listed twice",)),
        ({}, ("no column is secret", "--secret")),
        ({"secret": ["ssn"], "csv": "", "workload": "search"}, ("--csv FILE",)),
        ({"secret": ["ssn"], "factors": {"secret": "id"}}, ("remove one of them",)),
        ({"secret": ["ssn"], "mechanism": "tls"}, ("does not encrypt columns",)),
        ({"secret": ["ssn"], "engine": "h2", "mechanism": "h2-aes"}, ("does not encrypt columns",)),
        ({"secret": ["ssn"], "workload": "hospital"}, ("--set secret=",)),
        ({"mechanism": "tls"}, ("name the columns with --secret",)),
        ({"secret": ["ssn"], "factors": {"bits": "8"}}, ("needs search=blind-index",)),
        ({"secret": ["ssn"], "factors": {"search": "blind-index", "bits": "12"}}, ("multiple of 8",)),
        ({"secret": ["ssn"], "factors": {"search": "blind-index", "bits": "264"}}, ("multiple of 8",)),
        ({"secret": ["ssn"], "factors": {"search": "blind-index", "iv": "fixed"}}, ("iv=fixed", "stored as equal")),
        (
            {"secret": ["ssn"], "factors": {"search": "blind-index"}, "mechanism": "pgcrypto-ecb-128"},
            ("without an IV",),
        ),
        ({"csv": "", "factors": {"search": "blind-index"}}, ("without a column for it",)),
        ({"secret": ["ssn"], "client": "jdbc", "mechanism": "client-aes-gcm-256"}, ("only the Rust agent",)),
    ],
)
def test_what_can_not_be_is_refused_with_the_reason(fields: dict[str, object], words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as refused:
        resolve(cell(**fields))
    assert [word for word in words if word not in str(refused.value)] == []
    assert "\n" not in str(refused.value)


def test_names_may_be_those_of_the_table_and_set_takes_them_too(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text("id,a+b,Größe\n1,x,2\n2,y,\n")
    for written, columns in (("a+b", ("a+b",)), ("c_groe", ("Größe",)), ("all", ("id", "a+b", "Größe"))):
        planned = resolve(cell(csv=str(path), factors={"secret": written}, workload="point-select"))
        assert planned.secret_columns == columns
    assert resolve(cell(csv=str(path), secret=["a+b", "Größe"])).secret_columns == ("a+b", "Größe")


def test_a_wide_secret_column_is_refused_where_no_row_can_hold_it(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(f"id,note\n1,{'x' * 20_000}\n")
    resolve(cell(csv=str(path), secret=["note"]))
    for engine, mechanism in (("mysql", "aes-cbc-256"), ("firebird", "chacha20")):
        with pytest.raises(UsageError):
            resolve(cell(csv=str(path), secret=["note"], engine=engine, mechanism=mechanism))


def test_the_other_arm_of_a_comparison_has_no_bits_without_a_blind_index() -> None:
    given = {"search": "blind-index", "bits": "16"}
    planned = resolve(cell(secret=["ssn"], factors=given, versus={"search": "scan"}))
    assert planned.reference is not None
    assert (planned.reference.factors["search"], planned.reference.factors["bits"]) == ("scan", "")
    assert planned.factors["bits"] == "16"
