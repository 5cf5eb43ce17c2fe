"""turso-encryption: Turso's file and write-ahead log, opened by their key only; every cipher; what stays unencrypted."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest

import file_arms
from ciphercost.engines import turso as engine
from ciphercost.engines.turso import ENGINE
from ciphercost.host.installation import Installation
from ciphercost.mechanisms._rest import ArmAtRest
from ciphercost.mechanisms.turso_encryption import CIPHERS, MECHANISM, judge
from ciphercost.model.errors import AgentError, MissingServer, UsageError
from ciphercost.model.secret import Secret, reveal
from ciphercost.model.spec import ARMS, Arm
from file_arms import CANARY, path_of

FILLING = ("PRAGMA wal_checkpoint(TRUNCATE)",)


@pytest.fixture(scope="module", autouse=True)
def installation(require_server: Callable[[str], Installation]) -> Installation:
    return require_server("turso")


arms = partial(file_arms.arms, ENGINE, MECHANISM, FILLING)


def wal_of(look: ArmAtRest) -> Path:
    return path_of(look).with_name(f"{path_of(look).name}-wal")


# ── the arms are what their names say ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("cipher", CIPHERS)
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
        assert MECHANISM.implementation(looks["plain"]) == {}
        details = MECHANISM.implementation(looks["encrypted"])
        assert details["implementation"] == f"Turso's own {'AES-GCM' if cipher.startswith('aes') else 'AEGIS'}"


def test_the_file_opens_only_with_its_key() -> None:
    with arms() as looks:
        passed, detail = MECHANISM.refuses(looks["encrypted"])
        assert passed, detail
        assert "without a key: file is not a database" in detail
        assert "with another key: Decryption failed for page=1" in detail
        assert detail.endswith("with its key: it opens")
        passed, detail = MECHANISM.refuses(looks["plain"])
        assert not passed, "an unencrypted file opens without a key"
        assert detail == "without a key: it opens"
        # No copy is left.
        assert not list(looks["plain"].rest.secrets.parent.glob("copy-*"))


def test_the_key_is_the_runs_own_and_only_its_owner_can_read_it() -> None:
    with arms(cipher="aegis128l") as looks:
        key = looks["plain"].rest.secrets / "turso-128.key"
        assert key.stat().st_mode & 0o777 == 0o600
        assert reveal(looks["encrypted"].connect.key) == key.read_text()
        assert len(key.read_text()) == 32
        assert looks["plain"].connect.key is None


def test_both_arms_have_the_same_settings() -> None:
    with arms() as looks:
        settings = [dict(ENGINE.pairs(look.query(ENGINE.variables))) for look in looks.values()]
        assert settings[0] == settings[1]
        assert (settings[0]["journal_mode"], settings[0]["page_size"], settings[0]["temp_store"]) == (
            "wal",
            "4096",
            "2",
        )
        for look in looks.values():
            assert look.query(ENGINE.home) == [[str(path_of(look))]]


# ── witnesses that must fail ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_with_another_cipher_than_was_asked_for_fails_the_server_witness() -> None:
    with arms(cipher="aes256gcm") as looks:
        look = looks["encrypted"]
        other = msgspec.structs.replace(look.rest, factors=MECHANISM.check({"cipher": "aegis256"}))
        for witness in (MECHANISM.status, MECHANISM.structure):
            passed, detail = witness(msgspec.structs.replace(look, rest=other))
            assert not passed
            assert "aes256gcm" in detail


def test_a_file_in_clear_in_the_place_of_the_encrypted_one_is_seen() -> None:
    with arms() as looks:
        look = looks["encrypted"]
        look.agent.disconnect("look")
        wal_of(look).unlink()
        looks["plain"].query("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copyfile(path_of(looks["plain"]), path_of(look))
        passed, detail = MECHANISM.structure(look)
        assert not passed
        assert detail == "the file begins like a SQLite file"
        with pytest.raises(AgentError):
            look.agent.connect("look", look.connect)


@pytest.mark.parametrize("arm", ARMS)
def test_what_is_no_file_of_turso_fits_neither_arm(arm: Arm) -> None:
    assert judge(bytes(100), arm, "aegis256") == (
        False,
        "the file begins neither like Turso's nor like a SQLite file",
    )
    assert judge(b"Turso", arm, "aegis256") == (False, "the file has no header yet")
    unknown = (b"Turso\0\x63" + bytes(13) + b"\x30").ljust(100, b"\0")
    assert judge(unknown, arm, "aegis256")[0] is False
    assert "encrypted by number 99" in judge(unknown, arm, "aegis256")[1]


# ── bad input ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_wrong_key_is_an_error_that_does_not_repeat_it() -> None:
    with arms() as looks:
        look = looks["encrypted"]
        look.agent.disconnect("look")
        for wrong, words in (("b7" * 32, "Decryption failed"), ("xyz", "Invalid hex string")):
            with pytest.raises(AgentError, match=words) as caught:
                look.agent.connect("look", look.connect | {"key": Secret(wrong)})
            assert wrong not in str(caught.value)


def test_a_file_that_is_open_is_not_opened_with_another_key() -> None:
    """Turso itself would hand out the open file."""
    with arms() as looks:
        look = looks["encrypted"]
        with pytest.raises(AgentError, match="is open with another key"):
            look.agent.connect("other", look.connect | {"key": Secret("b7" * 32)})


def test_a_library_that_is_none_of_turso_is_named() -> None:
    with arms() as looks:
        look = looks["plain"]
        look.agent.disconnect("look")
        for library, words in (("/nowhere.so", "/nowhere.so: cannot open"), (look.connect.extension, "is no Turso")):
            with pytest.raises(AgentError, match=words):
                look.agent.connect("look", look.connect | {"library": library})


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ({"url": "turso://x"}, "takes neither --url nor --bindir"),
        ({"bindir": "/x"}, "takes neither --url nor --bindir"),
        ({"version": "0.1"}, "turso@0.1: only 0.8.3 is available"),
    ],
    ids=str,
)
def test_another_turso_is_refused(argument: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ENGINE.find(**argument)
    with pytest.raises(UsageError, match="comes from pypi"):
        ENGINE.install(source="debian")


def test_an_installation_without_a_library_of_python_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of another machine, or of a Python that is gone."""
    monkeypatch.setattr(engine, "own_python_library", lambda: None)
    with pytest.raises(MissingServer, match=f"remove {tmp_path}, then try again"):
        engine.python_library(tmp_path)
    fetched = tmp_path / "usr" / "lib" / engine.PYTHON[2]
    fetched.parent.mkdir(parents=True)
    fetched.touch()
    assert engine.python_library(tmp_path) == fetched
