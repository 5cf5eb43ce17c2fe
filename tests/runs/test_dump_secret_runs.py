"""`--dump FILE --secret TABLE.COLUMN`: the rows of one table of the user's dump, with secret columns, as a user measures them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import shop_dumps
from test_real import SHORT, ciphercost, measured, result_of

ROWS = 30
CRM = """\
SELECT pg_catalog.set_config('search_path', '', false);
CREATE SCHEMA crm;
CREATE TABLE crm.cities (id int PRIMARY KEY);
CREATE TABLE crm."Big People" (id int, ssn text, note text, photo bytea, tags text[], city int REFERENCES crm.cities);
COPY crm.cities (id) FROM stdin;
1
\\.
COPY crm."Big People" (id, ssn, note, photo, tags, city) FROM stdin;
"""


def postgresql_dump(into: Path) -> Path:
    """A plain dump: a schema, a name with a blank, a foreign key, a column of bytes, NULL, an empty text, a line break."""
    notes = ("\\N", "", f'two\\nlines, "{shop_dumps.WORD}"')
    rows = [f"{n}\t{n:09}\t{notes[n % 3]}\t\\\\x00ff\t{{a,b}}\t1\n" for n in range(ROWS)]
    (into / "crm.sql").write_text(f"{CRM}{''.join(rows)}\\.\n")
    return into / "crm.sql"


def sqlite_file(into: Path) -> Path:
    """A database with the same in a table that has no numbers of its rows."""
    connection = sqlite3.connect(into / "crm.db")
    connection.execute(
        "CREATE TABLE people (name text PRIMARY KEY, ssn text, note text, photo, born date) WITHOUT ROWID"
    )
    connection.execute("CREATE TABLE empty (a text, b text)")
    notes = (None, "", f'two\nlines, "{shop_dumps.WORD}"')
    rows = [(f"name {n}", f"{n:09}", notes[n % 3], b"\0\xff", "1999-01-02") for n in range(ROWS)]
    connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()
    return into / "crm.db"


@pytest.mark.parametrize(
    ("target", "secret", "table", "left_out"),
    [
        ("postgresql:pgcrypto-cbc-256", "crm.Big People.ssn,crm.Big People.note", "crm.Big People", "photo bytea"),
        ("sqlite:client-aes-gcm-256", "people.ssn,people.note", "people", "photo blob"),
    ],
)
def test_secret_columns_of_a_table_of_a_dump_are_measured_and_no_value_is_kept(
    target: str, secret: str, table: str, left_out: str, tmp_path: Path, own_scratch: Path, require_postgresql: object
) -> None:
    dump = (postgresql_dump if target.startswith("postgresql") else sqlite_file)(tmp_path)
    argv = ["--dump", dump.name, "--secret", secret, "--set", "search=blind-index", "--workload", "mixed-crud"]
    places = {"CIPHERCOST_DUMPS": str(tmp_path / "kept"), "CIPHERCOST_SCRATCH": str(own_scratch)}
    done = measured("run", target, *argv, *SHORT, "-o", "run", "--json", "out.json", cwd=tmp_path, **places)
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("read table ")]
    for words in (f"{table} of {dump.name}: {ROWS} rows", "secret: ssn, note", left_out, "foreign keys"):
        assert words in line
    (cell,) = result_of(tmp_path)["cells"]
    assert cell["status"] == "ok"
    assert {name: cell["factors"][name] for name in ("dump", "table", "secret", "rows")} == {
        "dump": dump.name,
        "table": table,
        "secret": secret,
        "rows": f"{ROWS}",
    }
    assert set(cell["values"]) == {"sealed", "opened", "searched"}
    assert all(arm.get("errors", 0) == 0 for arm in cell["arms"].values())
    absent = [finding["text"] for finding in cell["findings"] if finding["code"] == "absence-shows"]
    assert len(absent) == 1
    assert f"{ROWS // 3} of {ROWS} rows" in absent[0]
    written = [path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()]
    written += [text.encode() for text in (done.stdout, done.stderr, (tmp_path / "out.json").read_text())]
    assert not [
        value for value in (shop_dumps.WORD, f"{ROWS - 1:09}") if any(value.encode() in text for text in written)
    ]
    assert not [path for path in own_scratch.iterdir() if path.name != "schemas"]


@pytest.mark.parametrize(
    ("target", "argv", "words"),
    [
        ("sqlite:client-aes-gcm-256", ("--secret", "peple.ssn"), "did you mean 'people'"),
        ("sqlite:client-aes-gcm-256", ("--secret", "people.snn"), "did you mean 'ssn'"),
        ("sqlite:client-aes-gcm-256", ("--secret", "people.photo"), "no text"),
        ("sqlite:client-aes-gcm-256", ("--secret", "people.ssn,people.SSN"), "listed twice"),
        ("sqlite:client-aes-gcm-256", ("--secret", "empty.a"), "has no rows"),
        ("sqlite:client-aes-gcm-256", ("--secret", "people.ssn", "--workload", "connect"), "table people: workload"),
        ("sqlite:client-aes-gcm-256", ("--secret", "ssn"), "TABLE.COLUMN"),
        ("sqlite:client-aes-gcm-256", ("--secret", "people.ssn,empty.a"), "a run for each"),
        (
            "sqlite:client-aes-gcm-256",
            ("--secret", "people.ssn", "--sql", "mix.sql"),
            "remove --secret, or remove --sql",
        ),
        ("sqlite:client-aes-gcm-256", ("--secret", "people.ssn", "--rows", "5"), "remove --rows"),
        ("sqlite:client-aes-gcm-256", ("--secret", "people.ssn", "--no-header"), "remove --no-header"),
        ("sqlite:client-aes-gcm-256", (), "--secret TABLE.COLUMN"),
        ("sqlite:sqlcipher", ("--secret", "people.ssn"), "does not encrypt columns"),
        ("postgresql:pgcrypto-cbc-256", ("--secret", "people.ssn"), "is a SQLite file"),
    ],
)
def test_what_can_not_be_taken_out_of_a_dump_is_refused_and_leaves_nothing(
    target: str, argv: tuple[str, ...], words: str, tmp_path: Path, own_scratch: Path
) -> None:
    (tmp_path / "mix.sql").write_text("SELECT 1;\n")
    sqlite_file(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    places = {"CIPHERCOST_DUMPS": str(own_scratch.with_name("kept")), "CIPHERCOST_SCRATCH": str(own_scratch)}
    done = ciphercost("run", target, "--dump", "crm.db", *argv, cwd=tmp_path, **places)
    assert done.returncode == 2, done.stdout + done.stderr
    assert words in done.stderr.splitlines()[-1]
    assert shop_dumps.WORD not in done.stdout + done.stderr
    assert {path.name for path in tmp_path.iterdir()} - {"kept"} == before
    assert not [path for path in own_scratch.iterdir() if path.name != "schemas"]


def test_a_spec_file_names_a_table_of_a_dump(tmp_path: Path) -> None:
    sqlite_file(tmp_path)
    argv = ("sqlite:client-aes-gcm-256", "--dump", "crm.db", "--secret", "people.ssn")
    places = {"CIPHERCOST_DUMPS": str(tmp_path / "kept")}
    printed = ciphercost("run", *argv, "--print-spec", cwd=tmp_path, **places)
    assert printed.returncode == 0, printed.stderr
    assert 'dump = "crm.db"' in printed.stdout
    assert 'secret = ["people.ssn"]' in printed.stdout
    assert "csv" not in printed.stdout
    (tmp_path / "grid.toml").write_text(printed.stdout)
    assert ciphercost("run", "grid.toml", "--print-spec", cwd=tmp_path, **places).stdout == printed.stdout
