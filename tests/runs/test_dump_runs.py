"""`--dump`: a dump of the user's database is loaded into both arms, measured with `--sql`, kept for the next run, and leaks nowhere."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

import shop_dumps
import wrecks
from conftest import Require, RequireServer
from shop_dumps import Made
from test_real import SHORT, ciphercost, measured, result_of

MIX = """\
\\set id random(1, 300)
SELECT note FROM orders WHERE id = :id;
SELECT count(*) FROM spent;
UPDATE orders SET note = 'changed' WHERE id = :id;
"""
PROGRESS = tuple(word for word in SHORT if word != "--no-progress")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, require_server: RequireServer) -> Made:
    """The small shop's dumps of one engine, made once."""
    return shop_dumps.once(tmp_path_factory.mktemp, require_server)


def copies(place: Path) -> list[Path]:
    return [path for path in place.iterdir() if path.is_dir()] if place.exists() else []


@pytest.mark.parametrize(
    ("target", "form", "loads"),
    [
        ("postgresql:tls", "plain", 1),
        ("postgresql:gocryptfs", "custom", 1),
        ("mariadb:mariadb-tde", "named", 2),
        ("mysql:innodb-tde", "named", 2),
        ("firebird:firebird-crypt", "backup", 1),
        ("sqlite:sqlcipher", "file", 2),
    ],
)
def test_the_users_database_is_measured_and_the_next_run_starts_from_a_copy(
    target: str, form: str, loads: int, made: Made, require: Require, tmp_path: Path
) -> None:
    engine, _, mechanism = target.partition(":")
    if mechanism == "gocryptfs":
        require(Path("/dev/fuse").exists(), "FUSE is not available")
    dump = made(engine)[form]
    kept = tmp_path / "kept"
    (tmp_path / "mix.sql").write_text(MIX)
    argv = ("run", target, "--dump", str(dump), "--sql", "mix.sql", *PROGRESS, "--json", "out.json")
    first = measured(*argv, "-o", "first", cwd=tmp_path, CIPHERCOST_DUMPS=str(kept))
    assert first.returncode == 0, first.stdout + first.stderr
    cell = result_of(tmp_path)["cells"][0]
    assert (cell["status"], cell["rows"]) == ("ok", sum(shop_dumps.rows().values()))
    assert cell["factors"]["dump"] == dump.name
    assert all(proof["passed"] for proof in cell["proofs"])
    # A run that other processes disturbed is repeated, and then starts from copies too.
    assert len(copies(kept)) == loads
    assert {stat.S_IMODE(path.stat().st_mode) for path in (kept, *copies(kept))} == {0o700}

    second = measured(*argv, "-o", "second", cwd=tmp_path, CIPHERCOST_DUMPS=str(kept))
    assert second.returncode == 0, second.stdout + second.stderr
    assert "loaded " not in second.stderr
    assert result_of(tmp_path)["cells"][0]["rows"] == cell["rows"]
    for run in ("first", "second"):
        for file in (tmp_path / run).rglob("*"):
            assert not file.is_file() or shop_dumps.WORD.encode() not in file.read_bytes(), file
    for done in (first, second):
        assert shop_dumps.WORD not in done.stdout + done.stderr

    own = {"CIPHERCOST_DUMPS": str(kept), "CIPHERCOST_SCRATCH": str(tmp_path / "none")}
    with wrecks.alone():
        cleaned = ciphercost("clean", cwd=tmp_path, **own)
    assert cleaned.returncode == 0, cleaned.stdout + cleaned.stderr
    assert not copies(kept)


def test_a_dump_that_the_server_refuses_leaves_nothing_behind(
    tmp_path: Path, own_scratch: Path, require_postgresql: object
) -> None:
    rows = "".join(f"INSERT INTO t VALUES ({number}, '{shop_dumps.WORD}');\n" for number in range(2, 40_000))
    wrong = f"CREATE TABLE t (id int, word text);\n{rows}INSRT INTO t VALUES (1, '{shop_dumps.WORD}');\n"
    (tmp_path / "wrong.sql").write_text(wrong)
    (tmp_path / "mix.sql").write_text("SELECT count(*) FROM t;\n")
    kept = tmp_path / "kept"
    argv = ("run", "postgresql:tls", "--dump", "wrong.sql", "--sql", "mix.sql", *SHORT)
    done = measured(*argv, cwd=tmp_path, CIPHERCOST_DUMPS=str(kept), CIPHERCOST_SCRATCH=str(own_scratch))
    assert done.returncode == 2, done.stdout + done.stderr
    line = done.stderr.splitlines()[-1]
    assert "wrong.sql, line 40000: has a syntax error" in line
    assert shop_dumps.WORD not in done.stdout + done.stderr
    assert not copies(kept)
    assert not [path for path in own_scratch.iterdir() if path.name != "schemas"]
    assert not list((tmp_path / "runs").glob("*"))


@pytest.mark.parametrize(
    ("target", "argv", "words"),
    [
        ("sqlite:sqlcipher", (), "needs your statements"),
        ("postgresql:tls", ("--sql", "mix.sql", "--url", "postgresql://me@localhost/shop"), "remove --url"),
        ("sqlite:sqlcipher", ("--sql", "mix.sql", "--csv", "rows.csv"), "remove one of them"),
        ("sqlite:sqlcipher", ("--sql", "mix.sql", "--rows", "5"), "--rows does not work with --dump"),
        ("duckdb:encrypted", ("--sql", "mix.sql"), "loads no dump"),
        ("valkey:tls", ("--sql", "mix.sql"), "has no tables to load it into"),
        ("sqlite:sqlcipher", ("--split",), "remove --dump"),
        ("postgresql:tls", ("--sql", "mix.sql"), "is a SQLite file, which postgresql can't load"),
        ("sqlite:sqlcipher", ("--sql", "mix.sql", "--cluster", "auto", "--spread"), "does not go to other machines"),
    ],
)
def test_what_does_not_go_with_a_dump_is_refused_before_anything_starts(
    target: str, argv: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    (tmp_path / "mix.sql").write_text("GET key\n" if target.startswith("valkey") else "SELECT 1;\n")
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    shop_dumps.sqlite(tmp_path, 10)
    done = ciphercost("run", target, "--dump", "shop.db", *argv, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert words in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"mix.sql", "rows.csv", "shop.db"}


def test_a_spec_file_names_a_dump(tmp_path: Path) -> None:
    (tmp_path / "mix.sql").write_text("SELECT 1;\n")
    shop_dumps.sqlite(tmp_path, 10)
    printed = ciphercost(
        "run", "sqlite:sqlcipher", "--dump", "shop.db", "--sql", "mix.sql", "--print-spec", cwd=tmp_path
    )
    assert 'dump = "shop.db"' in printed.stdout
    (tmp_path / "grid.toml").write_text(printed.stdout)
    again = ciphercost("run", "grid.toml", "--print-spec", cwd=tmp_path)
    assert again.stdout == printed.stdout
