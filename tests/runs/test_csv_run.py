"""`--csv`: measures the user's rows on real servers, and refuses a file that is no table before anything starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ciphercost.host import run_ownership
from ciphercost.model import run_directory
from conftest import RequireServer
from test_real import SHORT, ciphercost, measured, result_of

ORDERS = "Order ID;select;Größe;price;day;paid;note\n" + "".join(
    f'{n};{n % 7};{"groß" if n % 2 else ""};{n},5;2024-01-{n % 28 + 1:02d};{"true" if n % 3 else ""};"it\'s; \\ ""{n}""\n"\n'
    for n in range(300)
)


@pytest.mark.parametrize("target", ["postgresql:tls", "sqlite:sqlcipher", "duckdb:encrypted"])
@pytest.mark.usefixtures("require_postgresql")
def test_the_users_own_rows_are_measured(tmp_path: Path, require_server: RequireServer, target: str) -> None:
    if target.startswith("duckdb"):
        require_server("duckdb")
    (tmp_path / "orders.csv").write_text(ORDERS)
    done = measured("run", target, "--csv", "orders.csv", *SHORT, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "orders.csv: 300 rows, 7 columns" in done.stderr
    assert "(Order ID integer" in done.stderr
    cell = result_of(tmp_path)["cells"][0]
    assert (cell["workload"], cell["rows"], cell["factors"]["csv"]) == ("mixed-crud", 300, "orders.csv")
    assert all(arm.get("errors", 0) == 0 for arm in cell["arms"].values())


def test_a_spec_file_names_a_csv_file_and_reads_back_as_itself(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text(ORDERS)
    printed = ciphercost("run", "sqlite:sqlcipher", "--csv", "orders.csv", "--print-spec", cwd=tmp_path)
    assert 'csv = "orders.csv"' in printed.stdout
    assert 'workload = "mixed-crud"' in printed.stdout
    grid = 'mode = "quick"\nsessions = 1\ntime = 3.0\nlatency = false\n[[cells]]\nengine = "sqlite"\nmechanism = "sqlcipher"\n'
    (tmp_path / "grid.toml").write_text(grid + 'csv = "orders.csv"\nregime = "one-core"\n')
    done = ciphercost("run", "grid.toml", "--no-progress", "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert result_of(tmp_path)["cells"][0]["workload"] == "mixed-crud"


@pytest.mark.parametrize(
    ("content", "argv", "words"),
    [
        (None, (), "No such file"),
        (b"", (), "the file is empty"),
        (b"a,b\n", (), "contains no rows"),
        (b'a,b\n1,"x"y\n', (), "line 2: something follows a closing quote"),
        (b"a,b\n1,2\n3\n", (), "line 3: 1 value, but the first line has 2"),
        (b"a,a\n1,2\n", (), "line 1: columns 1 and 2 are both named 'a'"),
        (b"a,\n1,2\n", (), "line 1: column 2 has no name"),
        (b"a,b\n1,\xff\n", (), "line 2: byte 3 is not UTF-8"),
        (b"a,b\n1,x\0y\n", (), "line 2: contains a NUL byte"),
        (b"c" + b",c" * 10**6 + b"\n", (), "1000001 columns; a SQLite table has at most 2000"),
        (b"a\n1\n", ("--sql", "my.sql"), "both define the operation"),
        (b"a\n1\n", ("--rows", "5"), "--rows does not work with --csv"),
        (b"a\n1\n", ("--set", "rows=5"), "--set rows: not a factor"),
        (b"a\n1\n", ("--workload", "tpcb"), "has its own tables"),
    ],
)
def test_what_is_no_table_is_refused_before_anything_is_started(
    tmp_path: Path, content: bytes | None, argv: tuple[str, ...], words: str
) -> None:
    (tmp_path / "my.sql").write_text("SELECT 1")
    if content is not None:
        (tmp_path / "mine.csv").write_bytes(content)
    scratch = {"CIPHERCOST_SCRATCH": str(tmp_path / "scratch")}
    done = ciphercost("run", "sqlite:sqlcipher", "--csv", "mine.csv", *argv, *SHORT, cwd=tmp_path, **scratch)
    assert done.returncode == 2, done.stdout + done.stderr
    assert words in done.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {"mine.csv", "my.sql"}


def test_a_row_that_the_server_refuses_is_named_by_its_lines(tmp_path: Path, require_postgresql: object) -> None:
    # 1,500 long texts need 1,500 pointers, more than a page of PostgreSQL holds.
    wide = ",".join(f"t{n}" for n in range(1500)) + "\n" + ",".join(os.urandom(30).hex() for _ in range(1500)) + "\n"
    (tmp_path / "wide.csv").write_text(wide)
    done = measured("run", "postgresql:tls", "--csv", "wide.csv", *SHORT, "-o", "run", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "row is too big" in done.stdout
    assert "lines 2 to 2" in " ".join(done.stdout.split())
    assert not (run_ownership.scratch_base() / run_directory.read_facts(tmp_path / "run").id).exists()
