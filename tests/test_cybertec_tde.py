"""cybertec-tde: the command that prints its key is really run by a shell; a stock server refused; real servers where one is named."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ciphercost.engines import Installation
from ciphercost.engines.postgresql import version_said
from ciphercost.errors import MissingServer, UsageError
from ciphercost.mechanisms import cybertec_tde
from ciphercost.mechanisms._rest import KeyState, Rest
from ciphercost.mechanisms.cybertec_tde import MECHANISM, unfit
from ciphercost.model import Arm
from vendor_servers import House, house, mode, need, proven


@pytest.fixture(scope="module")
def home() -> Iterator[House]:
    with house() as made:
        yield made


@pytest.fixture
def rest(home: House, require_postgresql: Installation) -> Rest:
    return home.rest("cybertec-tde", require_postgresql)


def printed(command: str) -> subprocess.CompletedProcess[str]:
    """What the server reads: it hands the command to a shell."""
    return subprocess.run(command, shell=True, capture_output=True, text=True, check=False)


def test_the_command_is_one_word_for_a_shell_and_prints_the_key(rest: Rest) -> None:
    command = MECHANISM.settings("encrypted", rest)["initdb:encryption-key-command"]
    assert shlex.split(command) == [command]
    said = printed(command)
    assert (said.returncode, len(bytes.fromhex(said.stdout.strip()))) == (0, 16)
    assert said.stdout == MECHANISM.key_file(rest).read_text()
    assert MECHANISM.settings("encrypted", rest)["initdb:encryption-key-command"] == command
    assert printed(command).stdout == said.stdout, "one key for the whole run"
    assert (mode(MECHANISM.key_file(rest)), mode(Path(command))) == (0o600, 0o700)
    assert said.stdout.strip() not in Path(command).read_text()


@pytest.mark.parametrize(("bits", "size"), [("128", 16), ("192", 24), ("256", 32)])
def test_a_key_is_as_long_as_was_asked_for(home: House, require_postgresql: Installation, bits: str, size: int) -> None:
    rest = home.rest("cybertec-tde", require_postgresql, bits=bits)
    command = MECHANISM.settings("encrypted", rest)["initdb:encryption-key-command"]
    assert len(bytes.fromhex(printed(command).stdout)) == size


def test_the_plain_arm_is_made_as_any_cluster(rest: Rest) -> None:
    assert MECHANISM.settings("plain", rest) == {}


@pytest.mark.parametrize("state", ["missing", "wrong"])
def test_without_the_key_the_command_fails_and_with_another_prints_that(rest: Rest, state: KeyState) -> None:
    command = MECHANISM.settings("encrypted", rest)["initdb:encryption-key-command"]
    before = printed(command).stdout
    with MECHANISM.key_taken(state, rest, rest.secrets):
        said = printed(command)
        if state == "missing":
            assert said.returncode != 0
            assert said.stdout == ""
        else:
            assert said.returncode == 0
            assert said.stdout != before
            assert len(said.stdout) == len(before)
    assert printed(command).stdout == before


def test_a_place_that_a_shell_would_read_otherwise_is_refused(tmp_path: Path) -> None:
    assert unfit(tmp_path) == ""
    for name in ("a b", "it's", "a;b", "a$b", "100%D"):
        assert "mean something to a shell" in unfit(tmp_path / name)


def test_a_place_from_which_nothing_may_be_run_is_refused() -> None:
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    closed = [Path(fields[1]) for fields in mounts if "noexec" in fields[3].split(",") and "\\" not in fields[1]]
    if not closed:
        pytest.skip("no file system here is mounted with noexec")
    assert "noexec" in unfit(closed[0])


def test_bits_that_the_server_can_not_choose_are_refused(home: House, require_postgresql: Installation) -> None:
    with pytest.raises(UsageError, match="128 bits alone"):
        MECHANISM.check_rest(home.rest("cybertec-tde", require_postgresql, bits="256"))
    with pytest.raises(UsageError, match="no bits '100'"):
        MECHANISM.check({"bits": "100"})


def test_without_a_directory_it_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CIPHERCOST_CYBERTEC_BINDIR", raising=False)
    with pytest.raises(MissingServer, match=r"Cybertec.*--bindir.*CIPHERCOST_CYBERTEC_BINDIR"):
        MECHANISM.bindir()


def test_a_stock_server_is_refused_with_clear_words(rest: Rest) -> None:
    with pytest.raises(MissingServer, match=r"is not Cybertec's.*no --encryption-key-command"):
        MECHANISM.prepare(rest)


@pytest.mark.parametrize(("arm", "passed"), [("plain", True), ("encrypted", False)])
def test_a_stock_server_is_plain_and_nothing_else(home: House, rest: Rest, arm: Arm, passed: bool) -> None:
    with home.up(rest, arm, {}) as look:
        assert MECHANISM.status(look) == (passed, "data_encryption is not there")


def test_its_version_is_read() -> None:
    assert version_said("postgres (PostgreSQL) 15.4_TDE_1.1.6\n") == "15.4_TDE_1.1.6"


# ── Cybertec's own ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_real_pair_is_proven() -> None:
    need("cybertec-tde")
    passed, text = proven("cybertec-tde")
    assert passed, text
    assert "data_encryption is on" in text
    assert "without its key it does not start" in text
    assert "with another key it does not start" in text


def test_a_cluster_that_was_made_in_clear_fails_both_witnesses(monkeypatch: pytest.MonkeyPatch) -> None:
    need("cybertec-tde")
    monkeypatch.setattr(cybertec_tde.CybertecTde, "settings", lambda *_: {})
    passed, text = proven("cybertec-tde")
    assert not passed
    assert "FAILED server: data_encryption is off" in text
    assert "FAILED disk: the canary is in" in text
