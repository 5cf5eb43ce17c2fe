"""cybertec-tde: a shell really runs the command that prints its key; a stock server is refused; a real server if one is
named."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from ciphercost.engines.postgresql import parse_version
from ciphercost.host.installation import Installation
from ciphercost.mechanisms import cybertec_tde
from ciphercost.mechanisms._rest import AtRestContext, KeyState
from ciphercost.mechanisms.cybertec_tde import MECHANISM, Control, control_of, unfit
from ciphercost.model.errors import MissingServer, UsageError
from ciphercost.model.spec import Arm
from vendor_servers import Rows, VendorClusters, mode, need, proven, recorded, vendor_clusters


@pytest.fixture(scope="module")
def home() -> Iterator[VendorClusters]:
    with vendor_clusters() as clusters:
        yield clusters


@pytest.fixture
def rest(home: VendorClusters, require_postgresql: Installation) -> AtRestContext:
    return home.rest("cybertec-tde", require_postgresql)


def printed(command: str) -> subprocess.CompletedProcess[str]:
    """Return what the server reads: it passes the command to a shell."""
    return subprocess.run(command, shell=True, capture_output=True, text=True, check=False)


def test_the_command_is_one_word_for_a_shell_and_prints_the_key(rest: AtRestContext) -> None:
    command = MECHANISM.settings("encrypted", rest)["initdb:encryption-key-command"]
    assert shlex.split(command) == [command]
    done = printed(command)
    assert (done.returncode, len(bytes.fromhex(done.stdout.strip()))) == (0, 16)
    assert done.stdout == MECHANISM.key_file(rest).read_text()
    assert MECHANISM.settings("encrypted", rest)["initdb:encryption-key-command"] == command
    assert printed(command).stdout == done.stdout, "the whole run has one key"
    assert (mode(MECHANISM.key_file(rest)), mode(Path(command))) == (0o600, 0o700)
    assert done.stdout.strip() not in Path(command).read_text()


@pytest.mark.parametrize(("bits", "size"), [("128", 16), ("192", 24), ("256", 32)])
def test_a_key_has_the_requested_length(
    home: VendorClusters, require_postgresql: Installation, bits: str, size: int
) -> None:
    rest = home.rest("cybertec-tde", require_postgresql, bits=bits)
    command = MECHANISM.settings("encrypted", rest)["initdb:encryption-key-command"]
    assert len(bytes.fromhex(printed(command).stdout)) == size


def test_the_plain_arm_is_created_like_any_cluster(rest: AtRestContext) -> None:
    assert MECHANISM.settings("plain", rest) == {}


@pytest.mark.parametrize("state", ["missing", "wrong"])
def test_without_the_key_the_command_fails_and_with_another_prints_that(rest: AtRestContext, state: KeyState) -> None:
    command = MECHANISM.settings("encrypted", rest)["initdb:encryption-key-command"]
    before = printed(command).stdout
    with MECHANISM.key_taken(state, rest, rest.secrets):
        done = printed(command)
        if state == "missing":
            assert done.returncode != 0
            assert done.stdout == ""
        else:
            assert done.returncode == 0
            assert done.stdout != before
            assert len(done.stdout) == len(before)
    assert printed(command).stdout == before


def test_a_path_with_shell_characters_is_refused(tmp_path: Path) -> None:
    assert unfit(tmp_path) == ""
    for name in ("a b", "it's", "a;b", "a$b", "100%D"):
        assert "characters with a meaning in a shell" in unfit(tmp_path / name)


def test_a_noexec_file_system_is_refused() -> None:
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    closed = [Path(fields[1]) for fields in mounts if "noexec" in fields[3].split(",") and "\\" not in fields[1]]
    if not closed:
        pytest.skip("no file system here is mounted with noexec")
    assert "noexec" in unfit(closed[0])


def test_bits_that_the_server_can_not_choose_are_refused(
    home: VendorClusters, require_postgresql: Installation
) -> None:
    with pytest.raises(UsageError, match="128 bits only"):
        MECHANISM.check_rest(home.rest("cybertec-tde", require_postgresql, bits="256"))
    with pytest.raises(UsageError, match="no bits '100'"):
        MECHANISM.check({"bits": "100"})


def test_without_a_directory_the_error_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CIPHERCOST_CYBERTEC_BINDIR", raising=False)
    with pytest.raises(MissingServer, match=r"Cybertec.*--bindir.*CIPHERCOST_CYBERTEC_BINDIR"):
        MECHANISM.bindir()


def test_a_stock_server_is_refused_with_clear_words(rest: AtRestContext) -> None:
    with pytest.raises(MissingServer, match=r"is not Cybertec's.*no --encryption-key-command"):
        MECHANISM.prepare(rest)


@pytest.mark.parametrize(("arm", "passed"), [("plain", True), ("encrypted", False)])
def test_a_stock_server_is_plain_and_nothing_else(
    home: VendorClusters, rest: AtRestContext, arm: Arm, passed: bool
) -> None:
    with home.up(rest, arm, {}) as look:
        assert MECHANISM.status(look) == (passed, "data_encryption is missing")


def test_its_version_is_read() -> None:
    assert parse_version("postgres (PostgreSQL) 15.4_TDE_1.1.6\n") == "15.4_TDE_1.1.6"


# ── what a server said ────────────────────────────────────────────────────────────────────────────────────────────────

CONTROL = """\
pg_control version number:            1300
Catalog version number:               202007201
Database system identifier:           7710985150369331167
Database cluster state:               in production
Latest checkpoint's REDO location:    0/1554C00
Latest checkpoint's oldestCommitTsXid:0
Maximum length of identifiers:        64
Float8 argument passing:              by value
Data page checksum version:           0
Mock authentication nonce:            c45cd75303b38e1eccaadd65535fa7522b848331e5edb1bc02dbeaa1d3cbd356
"""
"""Some of the lines before these, as 13.3 prints them."""
FINGERPRINT = "Data encryption fingerprint:          740A905130FE614CE0BE36B612157A09\n"
SAYS = {
    "15.4_TDE_1.1.6": f"{CONTROL}Data encryption:                      on\nEncryption key length:                128\n{FINGERPRINT}",
    "15, 256 bits": f"{CONTROL}Data encryption:                      on\nEncryption key length:                256\n{FINGERPRINT}",
    "15, unencrypted": f"{CONTROL}Data encryption:                      off\n",
    "13.3": f"{CONTROL}Data encryption:                      on\n{FINGERPRINT}",
    "documented": f"{CONTROL}Data encryption: on, 128-bit\n",
    "stock": CONTROL,
}
"""Of 13.3 as printed here; of 14 and 15.4 as seen in trials elsewhere and in the vendor's patches."""


@pytest.mark.parametrize(
    ("version", "state", "bits", "words"),
    [
        ("15.4_TDE_1.1.6", "on", "128", "on, 128 bits"),
        ("15, 256 bits", "on", "256", "on, 256 bits"),
        ("15, unencrypted", "off", "", "off"),
        ("13.3", "on", "", "on"),
        ("documented", "on", "128", "on, 128 bits"),
        ("stock", "", "", ""),
    ],
)
def test_the_control_file_of_every_version_is_parsed(version: str, state: str, bits: str, words: str) -> None:
    control = control_of(SAYS[version])
    assert (control, str(control)) == (Control(state, bits), words)


def test_a_stock_pg_controldata_says_nothing_of_encryption(home: VendorClusters, rest: AtRestContext) -> None:
    with home.up(rest, "plain", {}) as look:
        assert MECHANISM._control(look) == Control()


class Directory(Protocol):
    """A directory with two programs: `initdb` with these options, and `pg_controldata` that prints this text; empty: it
    fails."""

    def __call__(self, options: str, says: str) -> Path: ...


@pytest.fixture
def binaries(home: VendorClusters) -> Directory:
    def make(options: str, says: str) -> Path:
        home.count += 1
        place = home.scratch / f"bin-{home.count}"
        place.mkdir()
        place.chmod(0o755)
        control = f"cat <<'END'\n{says}END\n" if says else "exit 1\n"
        for name, text in (("initdb", f"echo '{options}'\n"), ("pg_controldata", control)):
            (place / name).write_text(f"#!/bin/sh\n{text}")
            (place / name).chmod(0o755)
        return place

    return make


NEW, OLD = "--encryption-key-command --key-bits", "--encryption-key-command"
ON: Rows = [["on"]]


@pytest.mark.parametrize(
    ("options", "bits", "setting", "version", "passed", "words"),
    [
        (NEW, "128", ON, "15.4_TDE_1.1.6", True, "data_encryption is on, pg_controldata prints on, 128 bits"),
        (NEW, "256", ON, "15, 256 bits", True, "data_encryption is on, pg_controldata prints on, 256 bits"),
        (NEW, "128", ON, "documented", True, "data_encryption is on, pg_controldata prints on, 128 bits"),
        (NEW, "256", ON, "15.4_TDE_1.1.6", False, "pg_controldata prints on, 128 bits, but 256 bits were requested"),
        (NEW, "128", ON, "15, 256 bits", False, "pg_controldata prints on, 256 bits, but 128 bits were requested"),
        (NEW, "128", ON, "15, unencrypted", False, "data_encryption is on, pg_controldata prints off"),
        (NEW, "128", [["off"]], "15.4_TDE_1.1.6", False, "data_encryption is off, pg_controldata prints on, 128 bits"),
        (NEW, "128", [], "stock", False, "data_encryption is missing"),
        (NEW, "128", ON, "13.3", False, "pg_controldata does not print it"),
        (NEW, "256", ON, "", False, "pg_controldata does not print it"),
        (OLD, "128", ON, "13.3", True, "pg_controldata prints on; this version always uses keys of 128 bits"),
    ],
)
def test_the_key_has_the_requested_length_in_every_session(
    home: VendorClusters,
    binaries: Directory,
    options: str,
    bits: str,
    setting: Rows,
    version: str,
    passed: bool,
    words: str,
) -> None:
    place = binaries(options, SAYS.get(version, ""))
    rest = home.rest("cybertec-tde", Installation("postgresql", "15.4_TDE_1.1.6", "path", str(place)), bits=bits)
    heard, detail = MECHANISM.status(recorded(rest, "encrypted", {"data_encryption": setting}, home.scratch))
    assert heard is passed, detail
    assert detail.endswith(words)


@pytest.mark.parametrize(
    ("setting", "version", "passed"),
    [
        ([["off"]], "15, unencrypted", True),
        ([], "stock", True),
        (ON, "15.4_TDE_1.1.6", False),
        ([["off"]], "13.3", False),
    ],
)
def test_a_plain_arm_has_neither_the_setting_nor_a_control_file_that_says_on(
    home: VendorClusters, binaries: Directory, setting: Rows, version: str, passed: bool
) -> None:
    place = binaries(NEW, SAYS[version])
    rest = home.rest("cybertec-tde", Installation("postgresql", "15.4_TDE_1.1.6", "path", str(place)))
    assert MECHANISM.status(recorded(rest, "plain", {"data_encryption": setting}, home.scratch))[0] is passed


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
