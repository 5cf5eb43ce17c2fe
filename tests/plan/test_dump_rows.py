"""dump_rows: names of tables and columns of a dump, and portions of a table. Pure."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.engines._dumps import portions
from ciphercost.engines.capabilities.dumps import DumpColumn
from ciphercost.model.errors import RunError, UsageError
from ciphercost.model.spec import CellSpec
from ciphercost.plan import dump_rows
from ciphercost.plan.resolve import resolve

NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_ ]{0,8}", fullmatch=True)


@given(schema=NAMES, table=NAMES, column=NAMES)
def test_the_last_part_is_the_column(schema: str, table: str, column: str) -> None:
    assert dump_rows.parts(f"{schema}.{table}.{column}") == (f"{schema}.{table}", column)
    for wrong in (column, f".{column}", f"{table}."):
        with pytest.raises(UsageError, match=r"TABLE\.COLUMN"):
            dump_rows.parts(wrong)


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("customers", "customers"),
        ("public.customers", "customers"),
        ("CUSTOMERS", "customers"),
        ("crm.people", "crm.people"),
        ("people", "crm.people"),
        ("Public", "Public"),
    ],
)
def test_a_table_is_found_by_any_name_that_means_one(name: str, table: str) -> None:
    rows = {"customers": 1, "crm.people": 2, "crm.notes": 1, "old.notes": 1, "Public": 1, "empty": 0}
    assert dump_rows.table_of(name, rows, "shop.dump") == table
    for wrong, words in (("custmers", "customers"), ("notes", "crm.notes or old.notes"), ("empty", "no rows")):
        with pytest.raises(UsageError, match=words):
            dump_rows.table_of(wrong, rows, "shop.dump")


def test_errors_name_the_table_and_never_the_file() -> None:
    file = Path("/scratch/rows.csv")
    table = dump_rows.Table("shop.dump", "people", file, (DumpColumn("ssn", "text", "ssn"),))
    for text in (f"--csv {file}, line 3: too long", f"{file}, rows that begin in lines 1 to 2"):
        with pytest.raises(RunError, match=r"^--dump shop\.dump, table people, ") as error, table.worded():
            raise RunError(text)
        assert str(file) not in str(error.value)


def test_without_a_server_that_takes_them_rows_are_refused(tmp_path: Path) -> None:
    (tmp_path / "shop.db").write_bytes(b"SQLite format 3\0" + bytes(84))
    cell = CellSpec("sqlite", "client-aes-gcm-256", dump=str(tmp_path / "shop.db"), secret=["people.ssn"])
    with pytest.raises(UsageError, match="only `run`, `resume`"):
        resolve(cell)


@given(lengths=st.lists(st.sampled_from([0, 1, 50, 1_500_000]), max_size=30))
def test_portions_hold_every_row_once(lengths: list[int]) -> None:
    rows = [["x" * length, None] for length in lengths]
    asked: list[int] = []

    def read(done: int, count: int) -> list[list[str | None]]:
        asked.append(count)
        return [list(row) for row in rows[done : done + count]]

    assert [row for portion in portions.portions(read) for row in portion] == rows
    assert all(1 <= count <= portions.MOST_ROWS for count in asked)
