"""innodb-tde on real servers: both arms are as named, each witness can fail, and what MySQL leaves unencrypted is
detected."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ciphercost.engines._mysql.family import SMALLEST_POOL
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.host import run_ownership
from ciphercost.host.installation import Installation
from ciphercost.mechanisms._rest import ArmAtRest, KeyState
from ciphercost.mechanisms.innodb_tde import COMPONENT, CONFIGURATION, MANIFEST
from ciphercost.model.errors import MissingServer, RunError
from ciphercost.model.spec import ARMS, Arm, CellSpec
from ciphercost.runs import prove
from conftest import RequireServer
from tde_servers import CANARY, Pair, in_force, pair, spilt, told


@pytest.fixture(scope="module")
def installation(require_server: RequireServer) -> Installation:
    return require_server("mysql", "9.7")


@pytest.fixture(scope="module")
def both(installation: Installation) -> Iterator[Pair]:
    with pair("innodb-tde", installation) as running:
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
    assert {"data/ciphercost/canaries.ibd", "data/binlog.000001"} & set(both.seen(plain))
    assert encrypted.query("SELECT count(*) FROM canaries") == [["3"]]


def test_the_arms_differ_only_in_encryption(plain: ArmAtRest, encrypted: ArmAtRest) -> None:
    settings = in_force(plain), in_force(encrypted)
    assert {name for name in settings[0] | settings[1] if settings[0].get(name) != settings[1].get(name)} == {
        "default_table_encryption",
        "table_encryption_privilege_check",
        "innodb_redo_log_encrypt",
        "innodb_undo_log_encrypt",
        "binlog_encryption",
    }
    programs = {Path(f"/proc/{look.server.pid}/exe").readlink() for look in (plain, encrypted)}
    assert programs == {Path(plain.rest.installation.location) / "mysqld"}


def test_the_implementation_is_named(both: Pair, encrypted: ArmAtRest) -> None:
    known = both.mechanism.implementation(encrypted)
    assert "AES-256-CBC" in known["cipher"]
    assert known["implementation"].startswith("OpenSSL 3.")


PARTS = {
    "SET GLOBAL innodb_redo_log_encrypt = {}": ("OFF", "ON", "innodb_redo_log_encrypt is 0"),
    "SET GLOBAL innodb_undo_log_encrypt = {}": ("OFF", "ON", "innodb_undo_log_encrypt is 0"),
    "ALTER TABLE canaries ENCRYPTION = {}": ("'N'", "'Y'", "the tablespace ciphercost/canaries is not encrypted"),
    "ALTER TABLESPACE mysql ENCRYPTION = {}": ("'N'", "'Y'", "the tablespace mysql is not encrypted"),
    "SET GLOBAL binlog_encryption = {}": ("OFF", "", "binlog_encryption is 0"),
}


def test_a_part_that_is_switched_off_behind_our_back_is_named(both: Pair) -> None:
    with both.up("encrypted") as look:
        for statement, (off, on, words) in PARTS.items():
            assert both.mechanism.status(look)[0]
            look.query(statement.format(off))
            passed, detail = both.mechanism.status(look)
            assert not passed
            assert words in detail
            if on:
                look.query(statement.format(on))
        look.query("FLUSH TABLES canaries FOR EXPORT")  # the table was rebuilt: its pages may still be only in the pool
        look.query("UNLOCK TABLES")
        passed, detail = both.mechanism.structure(look)
        assert not passed
        assert "begins with fe62696e" in detail


def test_a_table_in_clear_is_seen_by_its_pages(both: Pair) -> None:
    with both.copy("encrypted") as directory:
        with both.started("encrypted", directory) as look:
            look.query("ALTER TABLE canaries ENCRYPTION = 'N'")
        with both.started("encrypted", directory) as look:
            passed, detail = both.mechanism.structure(look)
            assert not passed
            assert "of 17855" in detail


@pytest.mark.parametrize(("gone", "words"), [(CONFIGURATION, "is Disabled"), (MANIFEST, "is not loaded")])
def test_a_keyring_disabled_outside_ciphercost_is_named(both: Pair, gone: str, words: str) -> None:
    without_logs = both.with_factors(logs="off")  # with encrypted logs it would not even start
    with both.copy("plain") as directory:
        both.mechanism.write_cluster_files("encrypted", directory, both.rest)
        (directory / "data" / gone).unlink()
        with without_logs.started("encrypted", directory) as look:
            passed, detail = both.mechanism.status(look)
            assert not passed
            assert detail.startswith(f"the keyring component {words}")


def test_a_keyring_in_the_plain_arm_is_refused(both: Pair) -> None:
    with both.copy("plain") as directory:
        both.mechanism.write_cluster_files("encrypted", directory, both.rest)
        with both.started("plain", directory) as look:
            assert both.mechanism.status(look) == (False, "a keyring component is loaded (Active)")


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("state", ["missing", "wrong"])
def test_without_its_key_it_does_not_start_and_with_it_the_data_is_complete(both: Pair, state: KeyState) -> None:
    with both.copy("encrypted") as directory:
        with (
            both.mechanism.key_taken(state, both.rest, directory),
            pytest.raises(RunError, match=r"keyring is loaded|key file has been changed"),
            both.started("encrypted", directory),
        ):
            pass
        with both.started("encrypted", directory) as look:
            assert look.query("SELECT DISTINCT word FROM canaries") == [[CANARY]]


def test_only_the_servers_user_can_read_the_keys(both: Pair) -> None:
    keyrings = list(both.rest.secrets.glob("keyring-*"))
    assert keyrings
    for keyring in keyrings:
        assert keyring.stat().st_uid == (run_ownership.server_user() or (os.geteuid(), 0))[0]
        assert keyring.parent.stat().st_mode & 0o777 == 0o700
        assert not keyring.stat().st_mode & 0o007


def test_a_new_master_key_leaves_other_copies_of_the_data_as_they_were(both: Pair) -> None:
    with both.copy("encrypted") as directory:
        keyring = Path(json.loads((directory / "data" / CONFIGURATION).read_text())["path"])
        with both.started("encrypted", directory) as look:
            before = json.loads(keyring.read_text())["elements"]
            for statement in both.mechanism.rotate(look):
                look.query(statement)
            after = json.loads(keyring.read_text())["elements"]
            assert [element for element in after if element not in before]
            assert both.mechanism.status(look)[0]
        with both.started("encrypted", directory) as look:
            assert look.query("SELECT DISTINCT word FROM canaries") == [[CANARY]]
    with both.up("encrypted") as look:
        assert look.query("SELECT DISTINCT word FROM canaries") == [[CANARY]]


# ── the program's own directory ───────────────────────────────────────────────────────────────────────────────────────


def test_nothing_is_written_into_the_installation(both: Pair, installation: Installation) -> None:
    base = Path(installation.location).parent
    assert not list(base.rglob(MANIFEST))
    assert not list(base.rglob(CONFIGURATION))
    directory = Path(both.rest.installation.location)
    assert directory.is_relative_to(both.scratch)
    assert not (directory / "mysqld").is_symlink()
    assert (directory.parent / "share").is_symlink()


def test_a_second_cell_uses_the_same_copy(both: Pair, installation: Installation) -> None:
    program = Path(both.rest.installation.location) / "mysqld"
    before = program.stat().st_mtime_ns
    again = both.mechanism.prepare(msgspec.structs.replace(both.rest, installation=installation))
    assert (again, program.stat().st_mtime_ns) == (both.rest.installation, before)


def test_an_installation_without_the_component_is_named(both: Pair, installation: Installation, tmp_path: Path) -> None:
    (tmp_path / "sbin").mkdir()
    (tmp_path / "lib/mysql/plugin").mkdir(parents=True)
    bare = msgspec.structs.replace(installation, location=str(tmp_path / "sbin"))
    with pytest.raises(MissingServer, match=f"has no {COMPONENT}.so"):
        both.mechanism.prepare(msgspec.structs.replace(both.rest, installation=bare))


# ── what it leaves open ───────────────────────────────────────────────────────────────────────────────────────────────


def test_temporary_data_is_readable_in_both_arms_and_has_advice(both: Pair, look: ArmAtRest) -> None:
    spilled = spilt(both, look)
    assert set(spilled) == {"sort", "internal temporary table", "temporary table"}
    for name, hits in spilled.items():
        assert hits, name
        where = max(hits, key=lambda place: hits[place])
        setting = "--tmpdir" if name == "sort" else "--innodb-temp-tablespaces-dir"
        assert setting in both.mechanism.advice(where), where
    assert both.mechanism.status(look)[0]


def test_with_logs_off_written_data_is_readable_in_them(installation: Installation) -> None:
    with pair("innodb-tde", installation, "encrypted", logs="off") as running:
        with running.up("encrypted") as look:
            passed, words = running.mechanism.status(look)
            assert passed, words
            assert running.mechanism.structure(look)[0]
            hits = set(running.seen(look))
            assert "data/binlog.000002" in hits
            assert not [name for name in hits if name.endswith(".ibd")]
        assert [(finding.code, finding.severity) for finding in running.mechanism.findings(running.rest)] == [
            ("logs-in-clear", "high")
        ]


def test_logs_that_were_left_in_clear_stand_in_the_disk_witness_words_and_in_the_verdict(
    installation: Installation,
) -> None:
    cell = CellSpec("mysql", "innodb-tde", version=installation.version, factors={"logs": "off"})
    passed, text = prove.examine(cell)
    words = " ".join(text.split())
    assert passed, text
    assert "none contains the canary except data/binlog.0" in words
    assert "(left unencrypted by logs=off; " in words
    assert "ENCRYPTED except data/binlog.*, data/#innodb_redo/*, data/undo_* (logs=off), " in words
    assert "proven by every witness" in words


# ── the cache ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("direct", "method"), [(True, "O_DIRECT"), (False, "fsync")])
def test_the_pool_is_sized_and_direct_io_is_reported(both: Pair, direct: bool, method: str) -> None:
    wanted = {
        name.replace("-", "_"): value
        for name, value in StoresData.of(both.engine).cache_settings(1, direct=direct).items()
    }
    with both.up("encrypted", **wanted) as look:
        assert look.query("SELECT @@innodb_buffer_pool_size, @@innodb_flush_method") == [[str(SMALLEST_POOL), method]]
    assert "innodb-buffer-pool-size" not in StoresData.of(both.engine).cache_settings(0, direct=direct)
    assert StoresData.of(both.engine).cache_settings(0, direct=direct)["innodb-flush-method"] == method


def test_the_home_of_the_data_is_known(both: Pair, look: ArmAtRest) -> None:
    assert Path(str(look.query(StoresData.of(both.engine).home)[0][0])) == look.volume.path / "data"
