"""edb-tde: a shell really runs the wrapping commands; a stock server is refused; a real server if one is named."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ciphercost.engines.postgresql import parse_version
from ciphercost.host.installation import Installation
from ciphercost.mechanisms._rest import AtRestContext, KeyState
from ciphercost.mechanisms.edb_tde import MECHANISM, wrapping
from ciphercost.model.errors import AgentError, MissingServer, UsageError
from ciphercost.model.spec import Arm
from conftest import Require
from vendor_servers import Rows, VendorClusters, mode, need, proven, recorded, vendor_clusters


@pytest.fixture(scope="module")
def home() -> Iterator[VendorClusters]:
    with vendor_clusters() as clusters:
        yield clusters


@pytest.fixture
def rest(home: VendorClusters, require_postgresql: Installation) -> AtRestContext:
    return home.rest("edb-tde", require_postgresql)


def as_the_server_runs_it(
    command: str, key_file: str, directory: Path, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """%p is replaced, %% is a %; a shell runs the command in the data directory."""
    text = command.replace("%%", "\0").replace("%p", key_file).replace("\0", "%")
    return subprocess.run(text, shell=True, cwd=directory, input=given, capture_output=True, check=False)


@pytest.mark.parametrize("name", ["pass", "it's 100%p a pass"])
def test_one_command_wraps_the_key_and_the_other_unwraps_it(tmp_path: Path, require: Require, name: str) -> None:
    require(shutil.which("openssl"), "openssl (Debian: apt-get install openssl)")
    password = tmp_path / name
    password.write_text("0123456789abcdef\n")
    wrap, unwrap = wrapping(password)
    key = os.urandom(64)
    assert as_the_server_runs_it(wrap, "key.bin", tmp_path, key).returncode == 0
    assert key[:16] not in (tmp_path / "key.bin").read_bytes()
    assert as_the_server_runs_it(unwrap, "key.bin", tmp_path).stdout == key


@pytest.mark.parametrize("state", ["missing", "wrong"])
def test_without_the_password_the_key_is_not_unwrapped(
    rest: AtRestContext, tmp_path: Path, require: Require, state: KeyState
) -> None:
    require(shutil.which("openssl"), "openssl (Debian: apt-get install openssl)")
    wrap, unwrap = wrapping(MECHANISM.key_file(rest))
    key = os.urandom(64)
    as_the_server_runs_it(wrap, "key.bin", tmp_path, key)
    with MECHANISM.key_taken(state, rest, tmp_path):
        assert as_the_server_runs_it(unwrap, "key.bin", tmp_path).stdout != key
    assert as_the_server_runs_it(unwrap, "key.bin", tmp_path).stdout == key


def test_options_of_initdb_are_those_of_the_documentation(
    home: VendorClusters, require_postgresql: Installation
) -> None:
    rest = home.rest("edb-tde", require_postgresql)
    chosen = MECHANISM.settings("encrypted", rest)
    assert chosen["initdb:data-encryption"] == "", "version 15 accepts no number"
    assert chosen["initdb:key-wrap-command"].endswith('-out "%p"')
    assert chosen["initdb:key-unwrap-command"].endswith('-in "%p"')
    assert mode(MECHANISM.key_file(rest)) == 0o600
    assert MECHANISM.key_file(rest).read_text().strip() not in " ".join(chosen.values())
    assert MECHANISM.settings("plain", rest) == {}
    longer = home.rest("edb-tde", require_postgresql, bits="256")
    assert MECHANISM.settings("encrypted", longer)["initdb:data-encryption"] == "256"


def test_256_bits_are_refused_before_version_16(home: VendorClusters) -> None:
    for version in ("16.2.0", "17.1"):
        MECHANISM.check_rest(home.rest("edb-tde", Installation("postgresql", version, "path", "/x"), bits="256"))
    with pytest.raises(UsageError, match="from version 16 on"):
        MECHANISM.check_rest(home.rest("edb-tde", Installation("postgresql", "15.4.0", "path", "/x"), bits="256"))


def test_without_a_directory_the_error_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CIPHERCOST_EDB_BINDIR", raising=False)
    with pytest.raises(MissingServer, match=r"EDB.*--bindir.*CIPHERCOST_EDB_BINDIR"):
        MECHANISM.bindir()


def test_a_stock_server_is_refused_with_clear_words(rest: AtRestContext) -> None:
    with pytest.raises(MissingServer, match=r"is not EDB.*no --data-encryption"):
        MECHANISM.prepare(rest)


@pytest.mark.parametrize(("arm", "passed"), [("plain", True), ("encrypted", False)])
def test_a_stock_server_is_plain_and_nothing_else(
    home: VendorClusters, rest: AtRestContext, arm: Arm, passed: bool
) -> None:
    with home.up(rest, arm, {}) as look:
        told, words = MECHANISM.status(look)
        assert (told, "knows no data_encryption_version" in words) == (passed, True)


def test_its_version_is_read() -> None:
    assert parse_version("postgres (EnterpriseDB) 16.2.0\n") == "16.2.0"
    assert parse_version("postgres (PostgreSQL) 15.3.1 (EDB Postgres Extended Server)\n").startswith("15.3")


# ── what a server reports, according to the documentation ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arm", "reported", "wrapped", "passed"),
    [
        ("encrypted", [["1"]], True, True),
        ("encrypted", [["0"]], True, False),
        ("encrypted", [["1"]], False, False),
        ("encrypted", [], True, False),
        ("encrypted", AgentError("no such column", "statement"), True, False),
        ("plain", [["0"]], False, True),
        ("plain", AgentError("no such column", "statement"), False, True),
        ("plain", [["1"]], True, False),
        ("plain", [["0"]], True, False),
    ],
)
def test_control_file_and_wrapped_key_must_both_be_as_the_arms_name_says(
    rest: AtRestContext, tmp_path: Path, arm: Arm, reported: Rows | AgentError, wrapped: bool, passed: bool
) -> None:
    if wrapped:
        (tmp_path / "pg_encryption").mkdir()
        (tmp_path / "pg_encryption" / "key.bin").write_bytes(os.urandom(64))
    heard, words = MECHANISM.status(recorded(rest, arm, {"data_encryption_version": reported}, tmp_path))
    assert heard is passed, words
    if arm == "encrypted" and passed:
        assert words.endswith("does not report its key length")
        assert MECHANISM.cipher(rest).endswith(", as requested from initdb")


# ── EDB's own ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_real_pair_is_proven() -> None:
    need("edb-tde")
    passed, text = proven("edb-tde")
    assert passed, text
    assert "data_encryption_version is 1" in text
    assert "without its key it does not start" in text
