"""pg-tde: statements for every version of its functions, a stock server refused and not believed; real servers where one is named."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ciphercost.engines import Installation
from ciphercost.engines.postgresql import ENGINE, PAGE
from ciphercost.errors import MissingServer, RunError, UsageError
from ciphercost.mechanisms import pg_tde
from ciphercost.mechanisms._postgresql import environment, judge_pages, module, pages
from ciphercost.mechanisms._rest import KeyState, Look
from ciphercost.mechanisms.pg_tde import MECHANISM, NAME_BYTES, altered, statements
from vendor_servers import House, house, mode, need, proven, told, vendor

V2_2 = {
    "pg_tde_add_database_key_provider_file": "provider_name text, file_path text",
    "pg_tde_add_global_key_provider_file": "provider_name text, file_path text",
    "pg_tde_create_key_using_global_key_provider": "key_name text, provider_name text",
    "pg_tde_set_key_using_database_key_provider": "key_name text, provider_name text",
    "pg_tde_set_default_key_using_global_key_provider": "key_name text, provider_name text",
    "pg_tde_set_server_key_using_global_key_provider": "key_name text, provider_name text",
    "pg_tde_is_encrypted": "relation regclass",
}
CANDIDATE_2 = {name: words for name, words in V2_2.items() if "create_key" not in name}
BETA = {
    "pg_tde_add_key_provider_file": "provider_name character varying, file_path text",
    "pg_tde_set_principal_key": "principal_key_name character varying, provider_name character varying",
}


@pytest.fixture(scope="module")
def home() -> Iterator[House]:
    with house() as made:
        yield made


def calls(functions: dict[str, str], *, wal: bool = True, file: str = "/s/k") -> list[str]:
    """Names of the functions that are called, in order."""
    said = statements(functions, Path(file), wal=wal, version="x")
    return [each.removeprefix("SELECT pg_tde_").partition("(")[0] for each in said]


# ── statements ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_to_the_last_version_since_1_0_make_a_key_then_set_it_for_data_and_for_the_log() -> None:
    assert calls(V2_2) == [
        "add_global_key_provider_file",
        "create_key_using_global_key_provider",
        "set_default_key_using_global_key_provider",
        "create_key_using_global_key_provider",
        "set_server_key_using_global_key_provider",
    ]
    assert calls(V2_2, wal=False) == calls(V2_2)[:3]


def test_before_1_0_the_function_that_sets_a_key_also_makes_it() -> None:
    assert calls(CANDIDATE_2) == [
        "add_global_key_provider_file",
        "set_default_key_using_global_key_provider",
        "set_server_key_using_global_key_provider",
    ]


def test_where_no_key_is_for_all_databases_ours_gets_one() -> None:
    assert calls(BETA, wal=False) == ["add_key_provider_file", "set_principal_key"]
    older = {name: words for name, words in V2_2.items() if "global" not in name}
    assert calls(older, wal=False) == ["add_database_key_provider_file", "set_key_using_database_key_provider"]


def test_a_version_that_lacks_a_function_is_told_which() -> None:
    with pytest.raises(RunError, match="no function that sets the key of the log"):
        calls(BETA)
    with pytest.raises(RunError, match="no function that adds a key file; it has: none"):
        calls({})


def test_a_key_is_set_under_the_name_that_it_was_made_with_and_no_name_comes_twice() -> None:
    first, second = (statements(V2_2, Path("/s/k"), wal=True, version="x") for _ in range(2))
    arguments = [each.partition("(")[2] for each in first[1:]]
    assert arguments[0] == arguments[1] != arguments[2] == arguments[3]
    assert not set(first[1:]) & set(second[1:])


def test_a_path_is_quoted_for_sql() -> None:
    assert statements(V2_2, Path("/it's/k"), wal=False, version="x")[0].endswith("('ciphercost', '/it''s/k'::text)")


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def key_record(name: str, key: bytes) -> bytes:
    """As the server writes it: name, room for 32 bytes of key, length."""
    return name.encode().ljust(NAME_BYTES, b"\0") + key.ljust(32, b"\0") + len(key).to_bytes(4, "little")


def test_another_key_has_the_name_and_the_length_of_the_first() -> None:
    keys = [os.urandom(16), os.urandom(32)]
    names = [f"ciphercost-{what}-{'ab' * 8}" for what in ("data", "log")]
    before = b"".join(map(key_record, names, keys))
    after = altered(before)
    size = len(before) // 2
    for number, (name, key) in enumerate(zip(names, keys, strict=True)):
        record = after[number * size : (number + 1) * size]
        assert record[:NAME_BYTES].rstrip(b"\0") == name.encode()
        assert record[NAME_BYTES : NAME_BYTES + 16] != key[:16]
        assert record[-4:] == before[(number + 1) * size - 4 : (number + 1) * size]
    assert altered(after) == before


@pytest.mark.parametrize("state", ["missing", "wrong"])
def test_a_key_is_taken_for_a_while_and_comes_back_also_after_an_error(
    home: House, require_postgresql: Installation, tmp_path: Path, state: KeyState
) -> None:
    rest = home.rest("pg-tde", require_postgresql)
    path = MECHANISM.key_file(rest)
    content = key_record(f"ciphercost-data-{'ab' * 8}", os.urandom(16))
    path.write_bytes(content)
    with MECHANISM.key_taken(state, rest, tmp_path):
        if state == "missing":
            assert not path.exists()
        else:
            assert path.read_bytes() == altered(content) != content
            assert (mode(path), path.stat().st_uid) == (0o600, rest.secrets.stat().st_uid)
    assert path.read_bytes() == content
    with pytest.raises(RunError), MECHANISM.key_taken(state, rest, tmp_path):
        raise RunError("x")
    assert path.read_bytes() == content
    assert [each.name for each in rest.secrets.iterdir()] == [path.name]


# ── arms ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_arms_differ_in_encryption_alone_unless_told_otherwise(
    home: House, require_postgresql: Installation
) -> None:
    rest = home.rest("pg-tde", require_postgresql, cipher="256")
    plain, encrypted = MECHANISM.settings("plain", rest), MECHANISM.settings("encrypted", rest)
    assert plain == {"shared_preload_libraries": "pg_tde"}
    assert encrypted["shared_preload_libraries"] == "pg_tde"
    assert encrypted["pg_tde.cipher"] == "aes_256"
    assert encrypted["default_table_access_method"] == "tde_heap"
    assert "pg_tde.wal_encrypt" not in encrypted, "the server would not start: its key is not there yet"
    alone = home.rest("pg-tde", require_postgresql, preload="encrypted")
    assert MECHANISM.settings("plain", alone) == {"shared_preload_libraries": ""}


# ── a stock PostgreSQL ────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_a_directory_it_says_what_to_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CIPHERCOST_PERCONA_BINDIR", raising=False)
    with pytest.raises(MissingServer, match=r"Percona Server.*--bindir.*CIPHERCOST_PERCONA_BINDIR"):
        MECHANISM.bindir()
    monkeypatch.setenv("CIPHERCOST_PERCONA_BINDIR", str(tmp_path / "gone"))
    with pytest.raises(MissingServer, match="gone, and there is no such directory"):
        MECHANISM.bindir()
    monkeypatch.setenv("CIPHERCOST_PERCONA_BINDIR", str(tmp_path))
    assert MECHANISM.bindir() == str(tmp_path)


def test_a_stock_server_is_refused_with_clear_words(home: House, require_postgresql: Installation) -> None:
    rest = home.rest("pg-tde", require_postgresql)
    with pytest.raises(MissingServer, match=r"is not Percona Server.*no pg_tde\.so.*CIPHERCOST_PERCONA_BINDIR"):
        MECHANISM.prepare(rest)
    running = home.rest("pg-tde", Installation("postgresql", "17", "running", "postgresql://x"))
    with pytest.raises(UsageError, match="takes no --url"):
        MECHANISM.prepare(running)


def test_libraries_are_found_where_each_kind_of_package_keeps_them() -> None:
    for installation in ENGINE.available():
        assert module(Path(installation.location), "plpgsql"), installation
        assert module(Path(installation.location), "pg_tde") is None, installation


def test_a_server_that_repeats_its_command_line_is_not_believed(home: House, require_postgresql: Installation) -> None:
    rest = home.rest("pg-tde", require_postgresql)
    with home.up(rest, "encrypted", {"pg_tde.wal_encrypt": "on"}) as look:
        assert told(look, "SHOW pg_tde.wal_encrypt") == "on"
        assert MECHANISM.status(look) == (False, "the extension pg_tde is not there")


def test_a_table_can_not_be_made_where_the_access_method_is_missing(
    home: House, require_postgresql: Installation
) -> None:
    settings = {"default_table_access_method": "tde_heap"}
    with home.up(home.rest("pg-tde", require_postgresql), "encrypted", settings) as look:
        assert "tde_heap" in told(look, "CREATE TABLE made (a int)")
        assert told(look, "SELECT to_regclass('made')") == "None"


@pytest.fixture(scope="module")
def stock(home: House, require_postgresql: Installation) -> Iterator[Look]:
    """A table in clear."""
    with home.up(home.rest("pg-tde", require_postgresql), "plain", {}) as look:
        look.query("CREATE TABLE words AS SELECT 'word' || i AS word FROM generate_series(1, 5000) AS i")
        yield look


def test_the_plain_arm_is_plain(stock: Look) -> None:
    assert MECHANISM.status(stock) == (True, "pg_tde.wal_encrypt is not there; the extension is not there")


def test_a_servers_own_environment_decides_which_instructions_it_uses(
    home: House, require_postgresql: Installation
) -> None:
    rest = home.rest("cybertec-tde", require_postgresql)
    with home.up(rest, "plain", {"env:OPENSSL_ia32cap": "~0x200000200000000:~0x60000000000"}) as look:
        assert environment(look.server.pid)["OPENSSL_ia32cap"].startswith("~0x2")
        assert vendor("cybertec-tde").implementation(look)["cipher"] == "AES-128"
    assert environment(0) == {}


def test_pages_in_clear_are_told_from_encrypted_ones(stock: Look) -> None:
    passed, words = MECHANISM.structure(stock)
    assert passed, words
    encrypted = Look("encrypted", stock.rest, stock.volume, stock.server, stock.agent, stock.name, stock.connect)
    assert not MECHANISM.structure(encrypted)[0]
    random = [os.urandom(PAGE) for _ in range(8)]
    assert judge_pages("encrypted", "t", random)[0]
    assert not judge_pages("plain", "t", random)[0]


def test_a_header_in_clear_is_no_page_in_clear_and_free_space_in_clear_is_no_encrypted_page(stock: Look) -> None:
    file = told(stock, "SELECT pg_relation_filepath('words')")
    page = pages(stock.volume.path / file)[0]
    assert judge_pages("encrypted", "t", [page[:24] + os.urandom(PAGE - 24)])[0]
    assert not judge_pages("encrypted", "t", [os.urandom(PAGE // 2) + bytes(PAGE // 2)])[0]
    assert not judge_pages("encrypted", "t", [])[0]


def test_every_table_index_and_toast_table_of_ours_is_asked_for_and_none_of_the_catalogs(stock: Look) -> None:
    """A stand-in for the extension's one function, so that the query round it runs on a real server."""
    stock.query("CREATE TABLE long (id int PRIMARY KEY, word text)")
    stock.query(
        "CREATE FUNCTION pg_tde_is_encrypted(regclass) RETURNS boolean LANGUAGE sql AS 'SELECT $1 <> ''words''::regclass'"
    )
    sql = pg_tde.RELATIONS.format(argument="oid::regclass")
    ((count, clear, one),) = stock.query(sql)
    # words and long, each with a TOAST table and that one's index; and long's own index
    assert (count, clear, one) == ("7", "1", "words")
    assert not MECHANISM.status(stock)[0], "a plain arm with the extension's functions is not plain"
    stock.query("DROP FUNCTION pg_tde_is_encrypted(regclass)")


# ── Percona's own ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("factors", [{}, {"preload": "encrypted"}])
def test_a_real_pair_is_proven(factors: dict[str, str]) -> None:
    need("pg-tde")
    passed, text = proven("pg-tde", **factors)
    assert passed, text
    assert "pg_tde.wal_encrypt is on" in text
    assert "without its key it does not start" in text
    assert "with another key it does not start" in text


def test_with_the_log_in_clear_the_disk_witness_fails_and_names_it() -> None:
    need("pg-tde")
    passed, text = proven("pg-tde", wal="off")
    assert not passed
    assert "FAILED disk: the canary is in pg_wal/" in text
    assert "as asked: the write-ahead log is in clear" in text


def test_a_log_that_was_switched_off_behind_our_back_fails_the_server_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    need("pg-tde")
    encrypt = pg_tde.PgTde.encrypt

    def and_off_again(self: pg_tde.PgTde, look: Look) -> None:
        encrypt(self, look)
        look.query("ALTER SYSTEM RESET pg_tde.wal_encrypt")

    monkeypatch.setattr(pg_tde.PgTde, "encrypt", and_off_again)
    passed, text = proven("pg-tde")
    assert not passed
    assert "FAILED server: " in text
    assert "pg_tde.wal_encrypt is off" in text
