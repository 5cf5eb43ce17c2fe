"""pg-tde: statements for every version of its functions, a stock server refused and not believed; a real server if one
is named."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from ciphercost.engines.postgresql import ENGINE, PAGE
from ciphercost.host import canary_scan
from ciphercost.host.installation import Installation
from ciphercost.mechanisms import pg_tde
from ciphercost.mechanisms._postgresql import environment, judge_pages, module, pages
from ciphercost.mechanisms._rest import ArmAtRest, AtRestContext, KeyState
from ciphercost.mechanisms.pg_tde import MECHANISM, NAME_BYTES, altered, statements
from ciphercost.model.errors import AgentError, MissingServer, RunError, Unproven, UsageError
from ciphercost.model.spec import Arm
from ciphercost.prove import rest_witnesses
from vendor_servers import Rows, VendorClusters, mode, need, proven, recorded, told, vendor, vendor_clusters

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
def home() -> Iterator[VendorClusters]:
    with vendor_clusters() as clusters:
        yield clusters


def calls(functions: dict[str, str], *, wal: bool = True, file: str = "/s/k") -> list[str]:
    """Return the names of the called functions, in order."""
    called = statements(functions, Path(file), wal=wal, version="x")
    return [statement.removeprefix("SELECT pg_tde_").partition("(")[0] for statement in called]


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


def test_the_error_names_the_function_that_a_version_lacks() -> None:
    with pytest.raises(RunError, match="sets the key of the log"):
        calls(BETA)
    with pytest.raises(RunError, match="adds a key file; it has: none"):
        calls({})


def test_a_key_is_set_under_its_name_and_no_name_comes_twice() -> None:
    first, second = (statements(V2_2, Path("/s/k"), wal=True, version="x") for _ in range(2))
    arguments = [statement.partition("(")[2] for statement in first[1:]]
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
    home: VendorClusters, require_postgresql: Installation, tmp_path: Path, state: KeyState
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
    with pytest.raises(RunError, match=r"^broken off$"), MECHANISM.key_taken(state, rest, tmp_path):
        raise RunError("broken off")
    assert path.read_bytes() == content
    assert [file.name for file in rest.secrets.iterdir()] == [path.name]


# ── arms ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_arms_differ_only_in_encryption_by_default(home: VendorClusters, require_postgresql: Installation) -> None:
    rest = home.rest("pg-tde", require_postgresql, cipher="256")
    plain, encrypted = MECHANISM.settings("plain", rest), MECHANISM.settings("encrypted", rest)
    assert plain == {"shared_preload_libraries": "pg_tde"}
    assert encrypted["shared_preload_libraries"] == "pg_tde"
    assert encrypted["pg_tde.cipher"] == "aes_256"
    assert encrypted["default_table_access_method"] == "tde_heap"
    assert "pg_tde.wal_encrypt" not in encrypted, "without its key the server would not start"
    alone = home.rest("pg-tde", require_postgresql, preload="encrypted")
    assert MECHANISM.settings("plain", alone) == {"shared_preload_libraries": ""}


# ── a stock PostgreSQL ────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_a_directory_the_error_names_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CIPHERCOST_PERCONA_BINDIR", raising=False)
    with pytest.raises(MissingServer, match=r"Percona Server.*--bindir.*CIPHERCOST_PERCONA_BINDIR"):
        MECHANISM.bindir()
    monkeypatch.setenv("CIPHERCOST_PERCONA_BINDIR", str(tmp_path / "gone"))
    with pytest.raises(MissingServer, match="gone, which is not a directory"):
        MECHANISM.bindir()
    monkeypatch.setenv("CIPHERCOST_PERCONA_BINDIR", str(tmp_path))
    assert MECHANISM.bindir() == str(tmp_path)


def test_a_stock_server_is_refused_with_clear_words(home: VendorClusters, require_postgresql: Installation) -> None:
    rest = home.rest("pg-tde", require_postgresql)
    with pytest.raises(MissingServer, match=r"is not Percona Server.*pg_tde\.so is missing.*CIPHERCOST_PERCONA_BINDIR"):
        MECHANISM.prepare(rest)
    running = home.rest("pg-tde", Installation("postgresql", "17", "running", "postgresql://x"))
    with pytest.raises(UsageError, match="takes no --url"):
        MECHANISM.prepare(running)


def test_libraries_are_found_where_each_kind_of_package_keeps_them() -> None:
    for installation in ENGINE.available():
        assert module(Path(installation.location), "plpgsql"), installation
        assert module(Path(installation.location), "pg_tde") is None, installation


def test_a_server_that_repeats_its_command_line_is_not_believed(
    home: VendorClusters, require_postgresql: Installation
) -> None:
    rest = home.rest("pg-tde", require_postgresql)
    with home.up(rest, "encrypted", {"pg_tde.wal_encrypt": "on"}) as look:
        assert told(look, "SHOW pg_tde.wal_encrypt") == "on"
        assert MECHANISM.status(look) == (False, "the extension pg_tde is not installed")


def test_a_table_can_not_be_made_where_the_access_method_is_missing(
    home: VendorClusters, require_postgresql: Installation
) -> None:
    settings = {"default_table_access_method": "tde_heap"}
    with home.up(home.rest("pg-tde", require_postgresql), "encrypted", settings) as look:
        assert "tde_heap" in told(look, "CREATE TABLE made (a int)")
        assert told(look, "SELECT to_regclass('made')") == "None"


@pytest.fixture(scope="module")
def stock(home: VendorClusters, require_postgresql: Installation) -> Iterator[ArmAtRest]:
    """An unencrypted table."""
    with home.up(home.rest("pg-tde", require_postgresql), "plain", {}) as look:
        look.query("CREATE TABLE words AS SELECT 'word' || i AS word FROM generate_series(1, 5000) AS i")
        yield look


def test_the_plain_arm_is_plain(stock: ArmAtRest) -> None:
    passed, words = MECHANISM.status(stock)
    assert passed, words
    assert "pg_tde.wal_encrypt is missing" in words
    assert "extension is not installed" in words


def test_a_servers_own_environment_decides_which_instructions_it_uses(
    home: VendorClusters, require_postgresql: Installation
) -> None:
    rest = home.rest("cybertec-tde", require_postgresql)
    with home.up(rest, "plain", {"env:OPENSSL_ia32cap": "~0x200000200000000:~0x60000000000"}) as look:
        assert environment(look.server.pid)["OPENSSL_ia32cap"].startswith("~0x2")
        assert vendor("cybertec-tde").implementation(look)["cipher"] == "AES-128"
    assert environment(0) == {}


def test_unencrypted_pages_are_told_from_encrypted_ones(stock: ArmAtRest) -> None:
    passed, words = MECHANISM.structure(stock)
    assert passed, words
    encrypted = ArmAtRest("encrypted", stock.rest, stock.volume, stock.server, stock.agent, stock.name, stock.connect)
    assert not MECHANISM.structure(encrypted)[0]
    random = [os.urandom(PAGE) for _ in range(8)]
    assert judge_pages("encrypted", "t", random)[0]
    assert not judge_pages("plain", "t", random)[0]


def test_a_header_in_clear_is_no_page_in_clear_and_free_space_in_clear_is_no_encrypted_page(stock: ArmAtRest) -> None:
    file = told(stock, "SELECT pg_relation_filepath('words')")
    page = pages(stock.volume.path / file)[0]
    assert judge_pages("encrypted", "t", [page[:24] + os.urandom(PAGE - 24)])[0]
    assert not judge_pages("encrypted", "t", [os.urandom(PAGE // 2) + bytes(PAGE // 2)])[0]
    assert not judge_pages("encrypted", "t", [])[0]


def test_every_table_index_and_toast_table_of_ours_is_asked_for_and_none_of_the_catalogs(stock: ArmAtRest) -> None:
    """A stand-in for the extension's one function lets the query around it run on a real server."""
    stock.query("CREATE TABLE long (id int PRIMARY KEY, word text)")
    stock.query(
        "CREATE FUNCTION pg_tde_is_encrypted(regclass) RETURNS boolean LANGUAGE sql AS 'SELECT $1 <> ''words''::regclass'"
    )
    sql = pg_tde.RELATIONS.format(argument="oid::regclass")
    ((count, clear, one),) = stock.query(sql)
    # words and long, each with a TOAST table and its index; and long's own index
    assert (count, clear, one) == ("7", "1", "words")
    assert not MECHANISM.status(stock)[0], "a plain arm with the extension's functions is not plain"
    stock.query("DROP FUNCTION pg_tde_is_encrypted(regclass)")


# ── what a server said ────────────────────────────────────────────────────────────────────────────────────────────────

SETTINGS_2_2: Rows = [
    ["pg_tde.cipher", "aes_256"],
    ["pg_tde.enforce_encryption", "on"],
    ["pg_tde.inherit_global_providers", "on"],
    ["pg_tde.wal_encrypt", "on"],
]
SAID_2_2: dict[str, Rows | AgentError] = {
    "pg_settings": SETTINGS_2_2,
    "pg_get_function_identity_arguments": [[name, words] for name, words in V2_2.items()],
    "FROM relations": [["14", "0", None]],
}
"""Of version 2.2.0 with 256 bits requested."""


@pytest.fixture
def rest_256(home: VendorClusters) -> AtRestContext:
    return home.rest("pg-tde", Installation("postgresql", "17.11", "path", "/nowhere"), cipher="256")


def changed(name: str, value: str | None) -> dict[str, Rows | AgentError]:
    """Return the same server's answers with one setting changed; None: it has no such setting."""
    settings = [
        [setting, value if setting == name else current]
        for setting, current in SETTINGS_2_2
        if setting != name or value
    ]
    return SAID_2_2 | {"pg_settings": settings}


def test_a_server_that_is_as_requested_passes(rest_256: AtRestContext, tmp_path: Path) -> None:
    passed, words = MECHANISM.status(recorded(rest_256, "encrypted", SAID_2_2, tmp_path))
    assert passed, words
    assert words.startswith("14 tables and indexes are encrypted, ")
    assert words.endswith("pg_tde.cipher is aes_256, pg_tde.wal_encrypt is on")


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (changed("pg_tde.cipher", "aes_128"), "pg_tde.cipher is aes_128, but aes_256 was requested"),
        (changed("pg_tde.cipher", None), "pg_tde.cipher is aes_128, but aes_256 was requested"),
        (changed("pg_tde.wal_encrypt", "off"), "pg_tde.wal_encrypt is off"),
        (
            SAID_2_2 | {"FROM relations": [["14", "2", "words"]]},
            "2 of 14 tables and indexes are not encrypted, among them words",
        ),
        (SAID_2_2 | {"pg_get_function_identity_arguments": []}, "the extension pg_tde is not installed"),
    ],
)
def test_any_difference_in_one_session_fails_the_server_witness(
    rest_256: AtRestContext, tmp_path: Path, answers: dict[str, Rows | AgentError], words: str
) -> None:
    passed, detail = MECHANISM.status(recorded(rest_256, "encrypted", answers, tmp_path))
    assert not passed
    assert detail.endswith(words)


def test_a_key_that_the_server_does_not_reach_fails_the_server_witness(rest_256: AtRestContext, tmp_path: Path) -> None:
    functions: Rows = [[name, words] for name, words in (V2_2 | {"pg_tde_verify_server_key": ""}).items()]
    gone = AgentError('principal key "x" not found', "statement")
    answers = SAID_2_2 | {"pg_get_function_identity_arguments": functions, "pg_tde_verify_server_key()": gone}
    passed, detail = MECHANISM.status(recorded(rest_256, "encrypted", answers, tmp_path))
    assert (passed, detail) == (False, f"pg_tde_verify_server_key fails: {gone}")


def test_tables_created_with_another_cipher_end_the_cell(rest_256: AtRestContext, tmp_path: Path) -> None:
    MECHANISM.settled(recorded(rest_256, "encrypted", SAID_2_2, tmp_path))
    MECHANISM.settled(recorded(rest_256, "plain", {}, tmp_path))
    with pytest.raises(Unproven, match=r"server witness, encrypted arm.*tables.*: pg_tde\.cipher is aes_128"):
        MECHANISM.settled(recorded(rest_256, "encrypted", changed("pg_tde.cipher", "aes_128"), tmp_path))


def test_what_an_earlier_version_lacks_is_refused_before_anything_is_loaded(
    rest_256: AtRestContext, tmp_path: Path
) -> None:
    answers = changed("pg_tde.cipher", None) | {"pg_tde_version": [["pg_tde 2.1.2"]]}
    with pytest.raises(RunError, match=r"pg_tde 2\.1\.2 can't encrypt with aes_256"):
        MECHANISM.encrypt(recorded(rest_256, "encrypted", answers, tmp_path))


# ── files of keys ─────────────────────────────────────────────────────────────────────────────────────────────────────


def keys_of(path: Path, layout: int, *entries: bytes) -> None:
    """As version 2.2.0 writes them: the layout's number, padding, which principal key; then the keys."""
    head = layout.to_bytes(4, "little") + bytes(4) + (5).to_bytes(4, "little") + bytes(308)
    assert len(head) == pg_tde.HEADER_BYTES
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(head + b"".join(entries))


def table_key(cipher: int, kind: int = 1) -> bytes:
    """Cipher, tablespace, file, kind; then IV, tag, the data's IV, the wrapped key."""
    return struct.pack("<4I", cipher, 1663, 16384, kind) + os.urandom(16 + 16 + 16 + 32)


def log_key(cipher: int, kind: int = 2) -> bytes:
    """Cipher, kind, where in the log it begins; then the same as above."""
    return struct.pack("<2IQI4x", cipher, kind, 0x1500000, 1) + os.urandom(16 + 16 + 16 + 32)


@pytest.mark.parametrize(
    ("tables", "log", "wal", "passed", "words"),
    [
        ([1, 1], [(1, 2)], True, True, "2 keys of tables and indexes and 1 of the write-ahead log are for aes_256"),
        ([1, 1], [(1, 1)], False, True, "2 keys of tables and indexes are for aes_256"),
        ([1, 0, 1], [(1, 2)], True, False, "of 3 keys of tables and indexes 1 for aes_128, but aes_256 was requested"),
        (
            [1],
            [(1, 2), (0, 2)],
            True,
            False,
            "of 2 keys of the write-ahead log 1 for aes_128, but aes_256 was requested",
        ),
        ([1], [(1, 2), (1, 1)], True, False, "according to its keys the write-ahead log is not encrypted"),
        ([1], [(1, 2)], False, False, "according to its keys the write-ahead log is encrypted"),
        ([2], [(1, 2)], True, False, "of 1 keys of tables and indexes 1 for cipher 2, but aes_256 was requested"),
        ([], [(1, 2)], True, False, "pg_tde contains no key of a table"),
    ],
)
def test_the_cipher_of_each_key_is_read(
    tmp_path: Path, tables: list[int], log: list[tuple[int, int]], wal: bool, passed: bool, words: str
) -> None:
    keys_of(tmp_path / "5_keys", pg_tde.TABLE_LAYOUT, *map(table_key, tables), table_key(0, kind=0), b"half a key")
    keys_of(tmp_path / "wal_keys", pg_tde.LOG_LAYOUT, *(log_key(cipher, kind) for cipher, kind in log))
    assert pg_tde.judge_keys(pg_tde.keys_in(tmp_path), "aes_256", wal=wal) == (passed, words)


def test_nothing_is_claimed_about_another_layout(tmp_path: Path) -> None:
    keys_of(tmp_path / "5_keys", 0x03454454, table_key(0))
    (tmp_path / "16384_keys").touch()
    passed, words = pg_tde.judge_keys(pg_tde.keys_in(tmp_path), "aes_128", wal=False)
    assert passed
    assert words.startswith("5_keys in pg_tde: ")
    assert "not the layout of version 2.2" in words


def test_a_key_for_another_cipher_fails_the_disk_witness(stock: ArmAtRest, tmp_path: Path) -> None:
    """The pages are random, like encrypted ones; the keys beside them reveal it."""
    told: dict[str, Rows | AgentError] = {"relkind = 'r'": [["base/5/16384"]]}
    (tmp_path / "base" / "5").mkdir(parents=True)
    (tmp_path / "base" / "5" / "16384").write_bytes(os.urandom(8 * PAGE))
    keys_of(tmp_path / "pg_tde" / "wal_keys", pg_tde.LOG_LAYOUT, log_key(0))
    for cipher, passed in ((0, True), (1, False)):
        keys_of(tmp_path / "pg_tde" / "5_keys", pg_tde.TABLE_LAYOUT, table_key(cipher))
        heard, words = MECHANISM.structure(recorded(stock.rest, "encrypted", told, tmp_path))
        assert heard is passed, words
        assert ("aes_128 was requested" in words) is not passed


# ── advice ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("place", "advice"),
    [
        ("base/5/t3_16402", "tde_heap"),
        ("base/5/t3_16402.1", "tde_heap"),
        ("pg_tblspc/16400/PG_17_202406281/5/t12_16402", "tde_heap"),
        ("base/pgsql_tmp/pgsql_tmp4711.0", "work_mem"),
        ("/x/base/pgsql_tmp/pgsql_tmp4711.0 (deleted)", "work_mem"),
        ("pg_wal/000000010000000000000001", "pg_tde.wal_encrypt = on"),
    ],
)
def test_advice_fits_the_leak(place: str, advice: str) -> None:
    assert advice in MECHANISM.advice(place)
    assert ("work_mem" in MECHANISM.advice(place)) is (advice == "work_mem")


def test_a_temporary_table_of_a_real_server_lies_where_the_advice_is_for_one(stock: ArmAtRest) -> None:
    for spill in ENGINE.spills("word"):
        name = f"advice-{spill.name.replace(' ', '-')}"
        stock.agent.connect(name, stock.connect)
        for statement in spill.statements:
            stock.agent.query(name, statement)
        places = [
            place for place, path in canary_scan.below([stock.volume.path]) if rest_witnesses.is_temporary(place, stock)
        ]
        stock.agent.disconnect(name)
        assert places
        wanted = "tde_heap" if spill.name == "temporary table" else "work_mem"
        assert wanted in MECHANISM.advice(places[0]), places


# ── Percona's own ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("factors", [{}, {"preload": "encrypted"}])
def test_a_real_pair_is_proven(factors: dict[str, str]) -> None:
    need("pg-tde")
    passed, text = proven("pg-tde", **factors)
    assert passed, text
    assert "pg_tde.wal_encrypt is on" in text
    assert "without its key it does not start" in text
    assert "with another key it does not start" in text


def test_a_log_that_was_asked_to_be_in_clear_is_a_finding_and_the_disk_witness_names_it() -> None:
    need("pg-tde")
    passed, text = proven("pg-tde", wal="off")
    assert passed, text
    assert "none contains the canary except pg_wal/" in text
    assert "ENCRYPTED except pg_wal/* (wal=off), " in text
    assert "proven by every witness" in text
    assert "(left unencrypted by wal=off; " in text
    assert "write-ahead log is not encrypted" in text
    assert "wal=off: every row " in text


def test_a_server_that_takes_another_cipher_from_its_second_start_on_is_not_proven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its keys are created with the right one; its tables and the log are not."""
    need("pg-tde")
    settings, started = pg_tde.PgTde.settings, {"plain": 0, "encrypted": 0}

    def later(self: pg_tde.PgTde, arm: Arm, rest: AtRestContext) -> dict[str, str]:
        started[arm] += 1
        return settings(self, arm, rest) | ({"pg_tde.cipher": "aes_128"} if started[arm] > 2 and arm != "plain" else {})

    monkeypatch.setattr(pg_tde.PgTde, "settings", later)
    with pytest.raises(Unproven, match=r"pg_tde\.cipher is aes_128, but aes_256 was requested"):
        proven("pg-tde", cipher="256")


@pytest.mark.parametrize("cipher", ["128", "256"])
def test_every_key_of_a_real_pair_is_for_the_cipher_that_was_asked_for(cipher: str) -> None:
    need("pg-tde")
    passed, text = proven("pg-tde", cipher=cipher)
    assert passed, text
    assert f"pg_tde.cipher is aes_{cipher}" in text
    assert f"of the write-ahead log are for aes_{cipher}" in text


def test_a_log_that_was_switched_off_behind_our_back_fails_the_server_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    need("pg-tde")
    encrypt = pg_tde.PgTde.encrypt

    def and_off_again(self: pg_tde.PgTde, look: ArmAtRest) -> None:
        encrypt(self, look)
        look.query("ALTER SYSTEM RESET pg_tde.wal_encrypt")

    monkeypatch.setattr(pg_tde.PgTde, "encrypt", and_off_again)
    passed, text = proven("pg-tde")
    assert not passed
    assert "FAILED server: " in text
    assert "pg_tde.wal_encrypt is off" in text
