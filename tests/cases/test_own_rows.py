"""`run --csv` on the files of the folder `rows`: what was read, and the warning if the first line looks like a row."""

from __future__ import annotations

from pathlib import Path

import pytest

import cases
from ciphercost.commands import _rows_read
from ciphercost.load import tables
from ciphercost.load.tables import csvfile, described, dialects
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import toml
from ciphercost.plan.resolve import resolve

ROWS = Path(__file__).parent / "rows"


def lines_read(path: Path, *, no_header: bool = False) -> list[str]:
    cell = CellSpec(engine="sqlite", mechanism="sqlcipher", workload="mixed-crud", csv=str(path), no_header=no_header)
    return list(_rows_read.lines([resolve(cell)] * 2))


def test_patients_are_read_as_they_are_meant(record_property: cases.Record) -> None:
    path = ROWS / "patients.csv"
    cases.record(record_property, "rows", path.name, lines_read(path)[0].replace(f"{ROWS}/", ""))
    (line,) = lines_read(path)
    assert line.startswith(f"read {path}: 6 rows, 5 columns (")
    for fact in (
        "(id integer, name text, ssn text, weight decimal(4,2) ",
        "decimal commas, diagnosis text)",
        "semicolons, UTF-8 with byte order mark;",
        "secret: no column",
    ):
        assert fact in line
    rows = [values for _, values in csvfile.rows(path)][1:]
    assert rows[0] == ["1", "Adler; B.", "001234567", "61,5", "two\nlines"]
    assert rows[3][1] == 'O"Neil'
    known = tables.survey(path)
    weight = next(column for column in described.typed(known) if column.title == "weight")
    assert [dialects.plain(weight, row[3]) for row in rows] == ["61.5", None, "70.25", "58", "90.0", "44.4"]


def test_a_first_line_that_is_data_is_warned_of_and_can_be_a_row(record_property: cases.Record) -> None:
    path = ROWS / "no_header.csv"
    line, warning = lines_read(path)
    cases.record(record_property, "rows", path.name, warning.replace(f"{ROWS}/", ""))
    assert line.startswith(f"read {path}: 2 rows, 3 columns (")
    assert "(17 integer, Adler text, 61.5 decimal(4,2))" in line
    assert "by commas, UTF-8;" in line
    assert warning.startswith("WARNING: the first line")
    assert "looks like a row (17, Adler, 61.5)" in warning
    assert "--no-header" in warning
    (line,) = lines_read(path, no_header=True)
    assert "3 rows, 3 columns" in line
    assert "(column1 integer, column2 text, column3 decimal(4,2))" in line
    assert "no header line" in line


@pytest.mark.parametrize(
    ("content", "warned"),
    [
        ("id,name\n1,a\n2,b\n", False),
        ("name,town\nAda,Rome\n", False),
        ("2024-01-01,5\n2024-01-02,6\n", True),
        ("7,x\n8,y\n", True),
        ("true,x\nfalse,y\n", True),
        ("year,2023,2024\na,1,2\n", True),
        ("year,n2023,2024\na,1,2\n", False),
    ],
)
def test_what_looks_like_data(content: str, warned: bool, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(content)
    if content.startswith(("2024", "7")) and "x" not in content:
        with pytest.raises(UsageError, match=r"values, not names.*--no-header"):
            lines_read(path)
        return
    assert (len(lines_read(path)) == 2) == warned
    assert len(lines_read(path, no_header=True)) == 1


@pytest.mark.parametrize(
    ("values", "kind", "first"),
    [
        (["61,5", "70"], "decimal", "61.5"),
        (["1,234", "2,345"], "text", "1,234"),
        (["1,234", "2,5"], "decimal", "1.234"),
        (["0,125", "0,250"], "decimal", "0.125"),
        (["1,5", "2.5"], "text", "1,5"),
        (["1.234,5", "2,5"], "text", "1.234,5"),
        (["-0,5", "3"], "decimal", "-0.5"),
        (["01,5", "2,5"], "text", "01,5"),
    ],
)
def test_decimal_commas_are_points_unless_they_may_separate_thousands(
    values: list[str], kind: str, first: str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("x;y\n" + "".join(f"{value};a\n" for value in values))
    column = described.typed(tables.survey(path))[0]
    assert (column.kind, dialects.plain(column, values[0])) == (kind, first)


def test_no_header_is_in_the_spec_file_and_needs_a_file(tmp_path: Path) -> None:
    cell = CellSpec(
        engine="sqlite", mechanism="sqlcipher", workload="mixed-crud", csv=str(ROWS / "no_header.csv"), no_header=True
    )
    spec = Spec(cells=[cell], time=90.0)
    (tmp_path / "spec.toml").write_text(toml.dump(spec))
    assert toml.load(tmp_path / "spec.toml") == spec
    (tmp_path / "spec.toml").write_text(toml.dump(spec).replace(f'csv = "{ROWS}/no_header.csv"\n', ""))
    with pytest.raises(UsageError, match=r"--no-header .* --csv FILE"):
        toml.load(tmp_path / "spec.toml")
