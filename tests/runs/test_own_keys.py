"""A key-value store that the user runs: own commands on own keys, with the right to these alone, and nothing is created."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from ciphercost.engines._running_store import RunningStore
from ciphercost.model.errors import AgentError
from conftest import RequireServer
from shops import opened
from stores import KEYS, PASSWORD, Store, store
from test_real import SHORT, ciphercost, measured, result_of

OWN = f"\\set id random(1, {KEYS})\nGET mine::id\n"
SAID = re.compile(r'^\S+ \[0 [^\]]+\] ("HELLO" "2" "AUTH" "\(redacted\)" "\(redacted\)"|"QUIT"|"GET" "mine:\d+")$')
"""A line of MONITOR that a run as `me` may cause."""


@pytest.fixture(scope="module", params=["valkey", "redis"])
def own(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, require_server: RequireServer
) -> Iterator[Store]:
    require_server(request.param)
    with store(request.param, tmp_path_factory.mktemp("store")) as found:
        yield found


@pytest.fixture(autouse=True)
def only_given_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REDISCLI_AUTH", "VALKEYCLI_AUTH"):
        monkeypatch.delenv(name, raising=False)


def asked(own: Store, cwd: Path, *argv: str, **environment: str) -> tuple[int, str]:
    """(exit status, all that was printed) of a command with the user's password."""
    command = measured if "--quick" in argv else ciphercost
    done = command(*argv, cwd=cwd, **{**own.environment, **environment})
    assert PASSWORD not in done.stdout + done.stderr
    return done.returncode, " ".join((done.stdout + done.stderr).replace("===", " ").split())


def test_own_keys_are_measured_with_the_right_to_read_them_alone(own: Store, tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text(OWN)
    argv = ("run", own.target, *own.urls, "--ca", str(own.ca), "--sql", "own.txt", *SHORT, "--json", "out.json")
    before = own.state()
    with own.monitored() as lines:
        status, said = asked(own, tmp_path, *argv)
    assert status == 0, said
    assert own.state() == before
    assert [each for each in lines[:-1] if not SAID.match(each)] == []
    assert sum('"GET"' in each for each in lines) > KEYS
    assert "--sql" in said
    (cell,) = result_of(tmp_path)["cells"]
    assert cell["status"] == "ok"
    assert re.search(rf"\b{own.name} \d+\.\d+", said), "its version is what it said at the login"


def test_both_ports_are_proven_and_the_control_is_the_plain_one(own: Store, tmp_path: Path) -> None:
    before = own.state()
    status, said = asked(own, tmp_path, "prove", own.clear, own.encrypted, "--ca", str(own.ca))
    assert status == 0, said
    assert "ENCRYPTED, proven" in said
    assert [word for word in ("client", "server", "wire") if f"ok {word}:" in said] == ["client", "wire"]
    assert "NOT PROVEN" not in said
    assert own.state() == before
    own.ask(f'ACL SETUSER bare reset on ">{PASSWORD}"')
    urls = [each.replace("me@", "bare@") for each in (own.clear, own.encrypted)]
    status, said = asked(own, tmp_path, "prove", *urls, "--ca", str(own.ca))
    assert status == 0, "a user without any right to a command can be proven"
    assert "ENCRYPTED, proven by every witness" in said
    own.ask("ACL DELUSER bare")


def test_of_the_port_with_tls_alone_there_is_no_control_and_nothing_is_sent_unencrypted(
    own: Store, tmp_path: Path
) -> None:
    status, said = asked(own, tmp_path, "prove", own.encrypted, "--ca", str(own.ca))
    assert status == 0, said
    assert "only the one with TLS was named: so there is no unencrypted control" in said
    assert "plain arm" not in said
    assert f"ciphercost prove {own.name}://HOST:PORT {own.encrypted}" in said
    status, said = asked(own, tmp_path, "prove", own.encrypted)
    assert status == 1
    assert "unknown authority" in said
    assert "NOT PROVEN" in said


def test_a_string_without_tls_is_not_encrypted(own: Store, tmp_path: Path) -> None:
    status, said = asked(own, tmp_path, "prove", own.clear)
    assert status == 1
    assert f"NOT ENCRYPTED: this string asks for no encryption ({own.name}://)" in said
    status, said = asked(own, tmp_path, "prove", f"{own.name}://me@127.0.0.1:1")
    assert status == 1
    assert "no answer from 127.0.0.1:1" in said


def test_what_verifies_nobody_is_said_so(own: Store, tmp_path: Path) -> None:
    status, said = asked(own, tmp_path, "prove", f"{own.encrypted}?ssl_cert_reqs=none")
    assert status == 0, said
    assert "ENCRYPTED, but the server's identity was not verified" in said


REFUSALS: list[tuple[tuple[str, ...], str]] = [
    (("run", "{target}", "--url", "{clear}", "--sql", "own.txt"), "--url {name}s://HOST:PORT is missing"),
    (("run", "{target}", "--url", "{encrypted}", "--sql", "own.txt"), "--url {name}://HOST:PORT is missing"),
    (("run", "{target}", "--url", "{clear}", "--url", "{encrypted}"), "writes keys of its own"),
    (("run", "{target}", "--url", "{clear}", "--url", "{clear}", "--sql", "own.txt"), "two URLs without TLS"),
    (("run", "{name}:gocryptfs", "--url", "{clear}", "--url", "{encrypted}"), "remove --url"),
    (("prove", "{clear}", "http://127.0.0.1/"), "must begin with redis://"),
    (("prove", "{name}s://me:word@h"), "--url holds a password"),
    (("prove", "{encrypted}?sslmode=require"), "unknown parameter 'sslmode'"),
    (("run", "memcached:tls", "--url", "{clear}", "--workload", "connect"), "must begin with memcached://"),
    (("run", "{target}", "--url", "memcached://h", "--workload", "connect"), "must begin with redis://"),
]


def test_what_can_not_be_honoured_is_refused_in_one_line(own: Store, tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text(OWN)
    words = {"target": own.target, "name": own.name, "clear": own.clear, "encrypted": own.encrypted}
    for argv, text in REFUSALS:
        done = ciphercost(*(each.format(**words) for each in argv), cwd=tmp_path, **own.environment)
        assert done.returncode == 2, argv
        assert text.format(**words) in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_a_login_without_the_right_password_says_what_to_do(own: Store, tmp_path: Path) -> None:
    status, said = asked(own, tmp_path, "prove", own.encrypted, "--ca", str(own.ca), REDISCLI_AUTH="wrong")
    assert status == 1
    assert "Does --url name the user, and does" in said
    status, said = asked(own, tmp_path, "prove", own.encrypted, "--ca", str(own.ca), REDISCLI_AUTH="")
    assert status == 1
    assert "No password was found: set" in said


def test_nothing_is_there_to_clean(own: Store, tmp_path: Path) -> None:
    status, said = asked(own, tmp_path, "clean", "--url", own.encrypted)
    assert (status, "ciphercost creates nothing there" in said) == (0, True)


def test_a_command_without_the_right_to_it_fails_before_any_load(
    own: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDISCLI_AUTH", PASSWORD)
    for command in ("GET others:1", "HGET mine:1 a"):
        (tmp_path / "own.txt").write_text(f"{command}\n")
        with pytest.raises(AgentError, match="NOPERM") as refused:
            opened(own.cell(tmp_path / "own.txt"), tmp_path)
        assert "before any load" in str(refused.value)


def test_a_users_own_writes_are_run_as_given(own: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own.ask(f'ACL SETUSER writer reset on ">{PASSWORD}" ~counters:* +incr +ping')
    monkeypatch.setenv("REDISCLI_AUTH", PASSWORD)
    (tmp_path / "own.txt").write_text("INCR counters:1\n")
    cell = own.cell(tmp_path / "own.txt")
    cell = structs.replace(cell, url=cell.url.replace("me@", "writer@"))
    found = opened(cell, tmp_path)
    assert [each.errors for each in found.slices.values()] == [0, 0]
    assert own.ask("GET counters:1") == [str(sum(each.operations for each in found.slices.values()))]
    own.ask("DEL counters:1")
    # With the right to PING alone, connections are measured.
    connecting = opened(structs.replace(cell, sql="", workload="connect"), tmp_path)
    assert [each.errors for each in connecting.slices.values()] == [0, 0]


def test_no_password_goes_unencrypted_to_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDISCLI_AUTH", PASSWORD)
    url = "redis://me@192.0.2.1:6379 rediss://me@192.0.2.1:6380"
    assert "would send the password readably" in RunningStore("redis", url, ()).no_plain_arm
    monkeypatch.delenv("REDISCLI_AUTH")
    assert "would send the password readably" in RunningStore("redis", url, ()).no_plain_arm
    default = RunningStore("redis", url.replace("me@", ""), ())
    assert not default.no_plain_arm
    assert default.connection().password is None
