"""mariadb-tde on real servers: both arms are as named, each witness can fail, and what MariaDB leaves unencrypted is
detected."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ciphercost.engines._mysql import spills
from ciphercost.engines._mysql.family import SMALLEST_POOL
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.host import run_ownership
from ciphercost.host.installation import Installation
from ciphercost.mechanisms import mariadb_tde
from ciphercost.mechanisms._rest import ArmAtRest, KeyState
from ciphercost.mechanisms.mariadb_tde import KEY_FILE, PLUGIN, unsettled, versioned
from ciphercost.model.errors import MissingServer, RunError, UsageError
from ciphercost.model.spec import ARMS, Arm
from conftest import RequireServer
from processes import opened
from tde_servers import CANARY, Pair, in_force, pair, spilt, told

ROWS = f"{spills.DIGITS} SELECT {spills.NUMBER}, REPEAT('x', 4000) FROM {spills.NUMBERS} WHERE {spills.NUMBER} < "


@pytest.fixture(scope="module", params=["11.8", "10.11"])
def both(request: pytest.FixtureRequest, require_server: RequireServer) -> Iterator[Pair]:
    with pair("mariadb-tde", require_server("mariadb", request.param)) as running:
        yield running


@pytest.fixture(scope="module")
def plain(both: Pair) -> Iterator[ArmAtRest]:
    with both.up("plain") as look:
        yield look


@pytest.fixture(scope="module")
def encrypted(both: Pair) -> Iterator[ArmAtRest]:
    with both.up("encrypted") as look:
        yield look


@pytest.fixture(params=ARMS)
def arm(request: pytest.FixtureRequest) -> Arm:
    chosen: Arm = request.param
    return chosen


@pytest.fixture
def look(arm: Arm, plain: ArmAtRest, encrypted: ArmAtRest) -> ArmAtRest:
    return plain if arm == "plain" else encrypted


# ── what the witnesses say ────────────────────────────────────────────────────────────────────────────────────────────


def test_each_arm_is_what_its_name_says_and_not_what_the_others_says(both: Pair, look: ArmAtRest) -> None:
    for witness in (both.mechanism.status, both.mechanism.structure):
        passed, words = witness(look)
        assert passed, words
        passed, words = witness(told(look))
        assert not passed, words


def test_the_canary_is_readable_only_in_the_plain_arm(both: Pair, plain: ArmAtRest, encrypted: ArmAtRest) -> None:
    assert both.seen(encrypted) == {}
    assert "data/ciphercost/canaries.ibd" in both.seen(plain)
    assert encrypted.query("SELECT count(*) FROM canaries") == [["3"]]


def test_the_arms_differ_only_in_encryption(plain: ArmAtRest, encrypted: ArmAtRest) -> None:
    settings = in_force(plain), in_force(encrypted)
    differ = {name for name in settings[0] | settings[1] if settings[0].get(name) != settings[1].get(name)}
    assert differ == {
        *mariadb_tde.SWITCHES,
        "innodb_encrypt_tables",
        "innodb_encryption_threads",
        "file_key_management_filename",
        "file_key_management_filekey",
        "file_key_management_encryption_algorithm",
    } | (differ & {"file_key_management_digest", "file_key_management_use_pbkdf2"})


def test_a_mode_other_than_the_requested_one_is_named(both: Pair, encrypted: ArmAtRest) -> None:
    assert both.mechanism.implementation(encrypted)["cipher"] == mariadb_tde.WORDS["ctr"]
    asked = msgspec.structs.replace(encrypted, rest=both.with_factors(cipher="cbc").rest)
    passed, detail = both.mechanism.status(asked)
    assert not passed
    assert "file_key_management_encryption_algorithm is aes_ctr" in detail


def test_cbc_is_proven_too(require_server: RequireServer) -> None:
    with (
        pair("mariadb-tde", require_server("mariadb", "11.8"), "encrypted", cipher="cbc") as running,
        running.up("encrypted") as look,
    ):
        passed, words = running.mechanism.status(look)
        assert passed
        assert "(aes_cbc)" in words
        assert running.mechanism.structure(look)[0]
        assert running.seen(look) == {}
        assert look.query("SELECT DISTINCT word FROM canaries") == [[CANARY]]
        assert running.mechanism.implementation(look)["cipher"] == "AES-256-CBC"


def test_the_servers_own_names_of_modes_are_accepted(both: Pair) -> None:
    assert both.mechanism.check({"cipher": "aes-cbc"}) == {"cipher": "cbc"}
    with pytest.raises(UsageError, match="has no cipher 'gcm'"):
        both.mechanism.check({"cipher": "gcm"})


def test_a_part_that_is_switched_off_behind_our_back_is_named(both: Pair) -> None:
    names = ("innodb_encrypt_log", "encrypt_tmp_files", "aria_encrypt_tables", "innodb_encrypt_temporary_tables")
    with both.up("encrypted", **dict.fromkeys(names, "OFF")) as look:
        passed, detail = both.mechanism.status(look)
        assert not passed
        assert set(detail.split("; ")) == {f"{name} is off" for name in names}


def test_an_unfinished_conversion_is_not_proven(both: Pair) -> None:
    """The plain arm's data under the encrypted arm's settings is encrypted by threads of the server, here by none at first."""
    waiting = {"innodb_encrypt_log": "OFF", "innodb_encryption_threads": "0"}
    with both.copy("plain") as directory:
        with both.started("plain", directory) as look:
            look.query("CREATE TABLE large (i int PRIMARY KEY, b varchar(4000))")
            look.query(f"INSERT INTO large {ROWS}10000")
        with both.started("encrypted", directory, **waiting) as look:
            passed, detail = both.mechanism.status(look)
            assert not passed
            assert "not encrypted" in detail
            assert unsettled(look.query(mariadb_tde.SPACES))
            look.query("SET GLOBAL innodb_encryption_threads = 4")
            both.mechanism.settled(look)
            assert unsettled(look.query(mariadb_tde.SPACES)) == []


def test_waiting_for_a_conversion_that_never_ends_is_an_error(both: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mariadb_tde, "SETTLE_SECONDS", 1.0)
    with both.copy("plain") as directory:
        idle = {"innodb_encrypt_log": "OFF", "innodb_encryption_threads": "0"}
        with (
            both.started("encrypted", directory, **idle) as look,
            pytest.raises(RunError, match=r"still encrypting .* 1 seconds: .*innodb_system"),
        ):
            both.mechanism.settled(look)


def test_each_way_not_to_be_encrypted_is_told_from_being_so() -> None:
    assert unsettled([["a", "1", "1", None, "0"], ["innodb_temporary", None, None, None, None]]) == []
    for row in (
        ["a", None, None, None, None],
        ["a", "0", "0", None, "0"],
        ["a", "1", "0", "5", "1"],
        ["a", "1", "1", "5", "0"],
        ["a", "1", "1", None, "1"],
    ):
        assert len(unsettled([list(row)])) == 1


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("state", ["missing", "wrong"])
def test_without_its_key_it_does_not_start_and_with_it_the_data_is_complete(both: Pair, state: KeyState) -> None:
    words = f"{KEY_FILE}' not found" if state == "missing" else "InnoDB: .*(Malformed|Corrupted|Missing)"
    with both.copy("encrypted") as directory:
        with (
            both.mechanism.key_taken(state, both.rest, directory),
            pytest.raises(RunError, match=words),
            both.started("encrypted", directory),
        ):
            pass
        with both.started("encrypted", directory) as look:
            assert look.query("SELECT DISTINCT word FROM canaries") == [[CANARY]]


def test_only_the_servers_user_can_read_the_key(both: Pair) -> None:
    path = both.rest.secrets / KEY_FILE
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.stat().st_uid == (run_ownership.server_user() or (os.geteuid(), 0))[0]
    keys = [line.split(";") for line in path.read_text().splitlines()]
    assert [(number, len(key)) for number, key in keys] == [("1", 64), ("2", 64)]


def test_an_installation_without_the_plugin_is_named(both: Pair, tmp_path: Path) -> None:
    (tmp_path / "sbin").mkdir()
    bare: Installation = msgspec.structs.replace(both.rest.installation, location=str(tmp_path / "sbin"))
    with pytest.raises(MissingServer, match=f"has no {PLUGIN}.so"):
        both.mechanism.prepare(msgspec.structs.replace(both.rest, installation=bare))


# ── what it leaves open ───────────────────────────────────────────────────────────────────────────────────────────────


def test_temporary_data_is_readable_in_the_plain_arm(both: Pair, plain: ArmAtRest, encrypted: ArmAtRest) -> None:
    spilled = spilt(both, plain)
    assert set(spilled) == {"sort", "internal temporary table", "temporary table"}
    assert all(spilled.values()), spilled
    closed = spilt(both, encrypted)
    assert closed["sort"] == {}
    assert closed["temporary table"] == {}
    # Versions may differ in whether they really encrypt these; for what stays open there must be advice.
    assert all(both.mechanism.advice(name) for name in closed["internal temporary table"])


def test_a_table_of_myisam_is_never_encrypted(both: Pair) -> None:
    word = "myisam0123456789"
    with both.up("encrypted") as look:
        look.query("CREATE TABLE old (word varchar(100)) ENGINE=MyISAM")
        look.query(f"INSERT INTO old VALUES ('{word}')")
        look.query("FLUSH TABLES")
        assert both.seen(look, word) == {"data/ciphercost/old.MYD": 1}
    assert [finding.code for finding in both.mechanism.findings(both.rest)] == ["engine-never-encrypted"]


# ── the cache ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("direct", "method"), [(True, "O_DIRECT"), (False, "fsync")])
def test_the_pool_is_sized_and_direct_io_is_reported(both: Pair, direct: bool, method: str) -> None:
    wanted = {
        name.replace("-", "_"): value
        for name, value in StoresData.of(both.engine).cache_settings(1, direct=direct).items()
    }
    with both.up("encrypted", **wanted) as look:
        assert look.query("SELECT @@innodb_flush_method") == [[method]]
        assert look.query("SELECT @@innodb_buffer_pool_size") == [[str(SMALLEST_POOL)]]
        flags = {Path(name).name: file_flags for name, file_flags in opened(look.server.pid).items()}
        assert bool(flags["canaries.ibd"] & os.O_DIRECT) == direct


def test_the_home_of_the_data_is_known(both: Pair, look: ArmAtRest) -> None:
    assert Path(str(look.query(StoresData.of(both.engine).home)[0][0])) == look.volume.path / "data"


def test_a_tablespace_in_the_middle_of_its_conversion_is_named() -> None:
    """A row as MariaDB gives it then: the page that it has reached, and that a thread works on it."""
    rows: list[list[str | None]] = [["innodb_system", "1", "1", None, "0"], ["ciphercost/large", "1", "1", "3844", "1"]]
    assert unsettled(rows) == ["the tablespace ciphercost/large is still being encrypted"]


def test_pages_that_describe_extents_need_no_key_version(tmp_path: Path) -> None:
    """A table above 256 MB has one at each multiple of the page's size, which the server does not encrypt."""
    size = 16384
    with_version, without = b"\1" * 38, bytes(4) + b"\1" * 34
    with (tmp_path / "items.ibd").open("wb") as file:
        for number, head in ((0, without), (1, with_version), (2, without), (size, without), (size + 1, with_version)):
            file.seek(number * size)
            file.write(head)
        file.truncate((size + 2) * size)
    assert versioned(tmp_path / "items.ibd", size) == (2, 1)
