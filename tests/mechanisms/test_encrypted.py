"""encrypted: DuckDB's file, write-ahead log and temporary files, opened by their key only; who encrypts; what stays unencrypted."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path

import msgspec
import pytest

import file_arms
from ciphercost.engines.capabilities.storage import Spill
from ciphercost.engines.duckdb import ENGINE, LOADED
from ciphercost.host.installation import Installation
from ciphercost.mechanisms import encrypted
from ciphercost.mechanisms._rest import ArmAtRest
from ciphercost.mechanisms.encrypted import KEY_FILE, MECHANISM, judge, openssl_inside
from ciphercost.model.connection import Changes
from ciphercost.model.errors import AgentError
from ciphercost.model.secret import Secret, reveal
from ciphercost.model.spec import ARMS, Arm
from file_arms import CANARY, path_of

TRIES = 20
LARGE = 1_000_000
"""Bytes of a temporary file in which the canary would be seen."""
FILLING = (
    "CREATE TABLE filling AS SELECT n, md5(n::varchar) AS t FROM range(20000) AS s(n)",
    "CHECKPOINT",
)


@pytest.fixture(scope="module", autouse=True)
def installation(require_server: Callable[[str], Installation]) -> Installation:
    return require_server("duckdb")


arms = partial(file_arms.arms, ENGINE, MECHANISM, FILLING)


def wal_of(look: ArmAtRest) -> Path:
    return path_of(look).with_name(f"{path_of(look).name}.wal")


# ── the arms are what their names say ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("cipher", ["gcm", "ctr"])
def test_every_witness_speaks_for_its_own_arm_and_against_the_other(cipher: str) -> None:
    with arms(cipher=cipher) as looks:
        for arm, look in looks.items():
            for witness in (MECHANISM.status, MECHANISM.structure):
                passed, detail = witness(look)
                assert passed, (arm, detail)
                other: Arm = "plain" if arm == "encrypted" else "encrypted"
                assert not witness(msgspec.structs.replace(look, arm=other))[0]
            assert (CANARY in path_of(look).read_bytes()) == (arm == "plain")
            assert (CANARY in wal_of(look).read_bytes()) == (arm == "plain")
        sizes = {path_of(look).stat().st_size for look in looks.values()}
        assert len(sizes) == 1, "the formats differ"
        assert MECHANISM.implementation(looks["plain"]) == {}
        assert MECHANISM.implementation(looks["encrypted"])["implementation"].startswith("OpenSSL 3.")


def test_the_file_opens_only_with_its_key() -> None:
    with arms() as looks:
        passed, detail = MECHANISM.refuses(looks["encrypted"])
        assert passed, detail
        assert "without a key: Catalog Error: Cannot open" in detail
        assert "another key: IO Error: Wrong encryption key" in detail
        passed, detail = MECHANISM.refuses(looks["plain"])
        assert not passed, "an unencrypted file opens without a key"
        assert "without a key: it opens" in detail


def test_the_key_is_the_runs_own_and_only_its_owner_can_read_it() -> None:
    with arms() as looks:
        key = looks["plain"].rest.secrets / KEY_FILE
        assert key.stat().st_mode & 0o777 == 0o600
        assert reveal(looks["encrypted"].connect.key) == key.read_text()
        assert looks["plain"].connect.key is None


def test_both_arms_have_the_same_settings_except_for_encryption() -> None:
    with arms() as looks:
        settings = {
            arm: dict(msgspec.convert(look.query(ENGINE.variables), list[tuple[str, str | None]]))
            for arm, look in looks.items()
        }
        differ = {name for name in settings["plain"] if settings["plain"][name] != settings["encrypted"][name]}
        assert differ == {"temp_file_encryption", *ENGINE.unlike}
        assert (settings["plain"]["threads"], settings["plain"]["memory_limit"]) == ("1", "1.0 GiB")
        assert settings["plain"]["autoinstall_known_extensions"] == "false"
        for look in looks.values():
            assert look.query(ENGINE.home) == [[str(path_of(look))]]


# ── witnesses that must fail ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_with_another_cipher_than_was_asked_for_fails_the_server_witness() -> None:
    with arms(cipher="ctr") as looks:
        look = looks["encrypted"]
        other = msgspec.structs.replace(look.rest, factors=MECHANISM.check({"cipher": "gcm"}))
        passed, detail = MECHANISM.status(msgspec.structs.replace(look, rest=other))
        assert not passed
        assert "cipher is CTR" in detail


def test_unencrypted_temporary_files_fail_the_server_witness() -> None:
    with arms() as looks:
        looks["encrypted"].query("SET temp_file_encryption=false")
        passed, detail = MECHANISM.status(looks["encrypted"])
        assert not passed
        assert "temp_file_encryption is false" in detail


def test_a_library_that_writes_without_httpfs_fails_the_server_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it would be unknown whose cryptography encrypts."""
    with arms() as looks:
        monkeypatch.setattr(encrypted, "NO_CRYPTO", "other words than the library's")
        passed, detail = MECHANISM.status(looks["encrypted"])
        assert not passed
        assert "without httpfs: " in detail


def test_a_file_in_clear_in_the_place_of_the_encrypted_one_is_seen() -> None:
    with arms() as looks:
        look = looks["encrypted"]
        look.agent.disconnect("look")
        looks["plain"].query("CHECKPOINT")
        shutil.copyfile(path_of(looks["plain"]), path_of(look))
        passed, detail = MECHANISM.structure(look)
        assert not passed
        assert detail == "the file's header says not encrypted"
        with pytest.raises(AgentError, match="is not encrypted"):
            look.agent.connect("look", look.connect)


def test_what_is_no_file_of_duckdb_fits_neither_arm() -> None:
    for arm in ARMS:
        passed, words = judge(bytes(64), arm)
        assert not passed
        assert "does not begin like a DuckDB file" in words


# ── bad input ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_wrong_key_is_an_error_that_does_not_repeat_it() -> None:
    wrong = "b7" * 32
    with arms() as looks:
        look = looks["encrypted"]
        with pytest.raises(AgentError, match="Wrong encryption key") as caught:
            look.agent.connect("wrong", look.connect | {"key": Secret(wrong)})
        assert wrong not in str(caught.value)
        changes: list[tuple[Changes, str]] = [
            ({"cipher": "xts"}, "not a valid cipher"),
            ({"library": "/nowhere/libduckdb.so"}, "library /nowhere/libduckdb.so: "),
            ({"library": "libc.so.6"}, "is no DuckDB"),
            ({"extension": "/nowhere/httpfs.duckdb_extension"}, "/nowhere/httpfs"),
            ({"path": "/nowhere/database"}, "No such file or directory"),
        ]
        for changed, words in changes:
            with pytest.raises(AgentError, match=words):
                look.agent.connect("wrong", look.connect | changed)
        assert look.query("SELECT 1") == [["1"]]


def test_nothing_is_fetched_when_the_extension_is_missing() -> None:
    """DuckDB would download httpfs by itself."""
    with arms() as looks:
        look = looks["encrypted"]
        fields = look.connect | {"extension": None}
        with pytest.raises(AgentError, match="ensure httpfs is loaded"):
            look.agent.connect("wrong", fields | {"path": str(path_of(look).with_name("new.duckdb"))})


def test_the_version_of_openssl_is_read_from_the_extension(tmp_path: Path, installation: Installation) -> None:
    assert openssl_inside(Path(installation.location) / LOADED).startswith("OpenSSL 3.")
    (tmp_path / "other").write_bytes(b"nothing of the kind")
    assert openssl_inside(tmp_path / "other") == "OpenSSL"


# ── temporary data ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("spill", ENGINE.spills(CANARY.decode()), ids=lambda spill: spill.name)
def test_temporary_files_are_encrypted_because_the_setting_is_on(spill: Spill, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plain arm shows that there are such files; without the setting, a key alone leaves them unencrypted."""
    with arms() as looks:
        assert seen_while(looks["plain"], spill, wanted=True)
        assert not seen_while(looks["encrypted"], spill, wanted=False)
    monkeypatch.setattr(encrypted, "TEMPORARY", "SELECT 1")
    with arms() as looks:
        assert seen_while(looks["encrypted"], spill, wanted=True)


def seen_while(look: ArmAtRest, spill: Spill, *, wanted: bool) -> bool:
    """Whether the canary is in a temporary file while the spill's statements run, or afterwards. There must be such files.

    `wanted`: what the caller expects. A sort, whose files go with it, is repeated until it was seen in a file, or was not in a large one:
    a busy machine may look only when they are gone.
    """
    *first, last = spill.statements
    for statement in first:
        look.query(statement)
    for _ in range(TRIES if spill.during else 1):
        seen, size = looked_for(look, last)
        if seen or (size > LARGE and not wanted):
            break
    assert seen or size > LARGE, "nothing was spilled"
    return seen


def looked_for(look: ArmAtRest, last: str) -> tuple[bool, int]:
    """Whether the canary was in a temporary file, and the size of the largest, bytes."""
    seen, size = False, 0
    with ThreadPoolExecutor(1) as other:
        running = other.submit(look.query, last)
        over = False
        while not over:
            over = running.done()
            for path in look.volume.path.glob(ENGINE.temporary[0]):
                try:
                    content = path.read_bytes()
                except OSError:
                    continue
                seen, size = seen or CANARY in content, max(size, len(content))
            wait([running], 0.02)
        running.result()
    return seen, size
