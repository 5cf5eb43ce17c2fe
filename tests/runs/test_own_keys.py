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
def user_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, require_server: RequireServer
) -> Iterator[Store]:
    require_server(request.param)
    with store(request.param, tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.fixture(autouse=True)
def only_given_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REDISCLI_AUTH", "VALKEYCLI_AUTH"):
        monkeypatch.delenv(name, raising=False)


def asked(user_store: Store, cwd: Path, *argv: str, **environment: str) -> tuple[int, str]:
    """(exit status, all that was printed) of a command with the user's password."""
    command = measured if "--quick" in argv else ciphercost
    done = command(*argv, cwd=cwd, **{**user_store.environment, **environment})
    assert PASSWORD not in done.stdout + done.stderr
    return done.returncode, " ".join((done.stdout + done.stderr).replace("===", " ").split())


def test_own_keys_are_measured_with_the_right_to_read_them_alone(user_store: Store, tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text(OWN)
    argv = (
        "run",
        user_store.target,
        *user_store.urls,
        "--ca",
        str(user_store.ca),
        "--sql",
        "own.txt",
        *SHORT,
        "--json",
        "out.json",
    )
    before = user_store.state()
    with user_store.monitored() as lines:
        status, output = asked(user_store, tmp_path, *argv)
    assert status == 0, output
    assert user_store.state() == before
    assert [line for line in lines[:-1] if not SAID.match(line)] == []
    assert sum('"GET"' in line for line in lines) > KEYS
    assert "--sql" in output
    (cell,) = result_of(tmp_path)["cells"]
    assert cell["status"] == "ok"
    assert re.search(rf"\b{user_store.name} \d+\.\d+", output), "its version is what it said at the login"


def test_a_storm_on_own_keys_needs_no_more_rights(user_store: Store, tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text(OWN)
    argv = ("run", user_store.target, *user_store.urls, "--ca", str(user_store.ca), "--sql", "own.txt", *SHORT)
    before = user_store.state()
    storm = ("--storm", "800", "--clients", "4", "--rate", "500", "--json", "out.json")
    status, output = asked(user_store, tmp_path, *argv, *storm)
    assert status == 0, output
    assert user_store.state() == before
    (cell,) = result_of(tmp_path)["cells"]
    assert {"back_p50", "back_last"} <= set(cell["storm"]["ratios"])
    assert not cell["storm"]["arms"]["encrypted"].get("errors")


def test_both_ports_are_proven_and_the_control_is_the_plain_one(user_store: Store, tmp_path: Path) -> None:
    before = user_store.state()
    status, output = asked(
        user_store, tmp_path, "prove", user_store.clear, user_store.encrypted, "--ca", str(user_store.ca)
    )
    assert status == 0, output
    assert "ENCRYPTED, proven" in output
    assert [word for word in ("client", "server", "wire") if f"ok {word}:" in output] == ["client", "wire"]
    assert "NOT PROVEN" not in output
    assert user_store.state() == before
    user_store.ask(f'ACL SETUSER bare reset on ">{PASSWORD}"')
    urls = [url.replace("me@", "bare@") for url in (user_store.clear, user_store.encrypted)]
    status, output = asked(user_store, tmp_path, "prove", *urls, "--ca", str(user_store.ca))
    assert status == 0, "a user without any right to a command can be proven"
    assert "ENCRYPTED, proven by every witness" in output
    user_store.ask("ACL DELUSER bare")


def test_of_the_port_with_tls_alone_there_is_no_control_and_nothing_is_sent_unencrypted(
    user_store: Store, tmp_path: Path
) -> None:
    status, output = asked(user_store, tmp_path, "prove", user_store.encrypted, "--ca", str(user_store.ca))
    assert status == 0, output
    assert "only the one with TLS" in output
    assert "no unencrypted control" in output
    assert "plain arm" not in output
    assert f"ciphercost prove {user_store.name}://HOST:PORT {user_store.encrypted}" in output
    status, output = asked(user_store, tmp_path, "prove", user_store.encrypted)
    assert status == 1
    assert "unknown authority" in output
    assert "NOT PROVEN" in output


def test_a_string_without_tls_is_not_encrypted(user_store: Store, tmp_path: Path) -> None:
    status, output = asked(user_store, tmp_path, "prove", user_store.clear)
    assert status == 1
    assert "NOT ENCRYPTED: " in output
    assert f"no encryption ({user_store.name}://)" in output
    status, output = asked(user_store, tmp_path, "prove", f"{user_store.name}://me@127.0.0.1:1")
    assert status == 1
    assert "no answer from 127.0.0.1:1" in output


def test_what_verifies_nobody_is_said_so(user_store: Store, tmp_path: Path) -> None:
    status, output = asked(user_store, tmp_path, "prove", f"{user_store.encrypted}?ssl_cert_reqs=none")
    assert status == 0, output
    assert "ENCRYPTED, but the server's identity" in output


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


def test_what_can_not_be_honoured_is_refused_in_one_line(user_store: Store, tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text(OWN)
    words = {
        "target": user_store.target,
        "name": user_store.name,
        "clear": user_store.clear,
        "encrypted": user_store.encrypted,
    }
    for argv, text in REFUSALS:
        done = ciphercost(*(word.format(**words) for word in argv), cwd=tmp_path, **user_store.environment)
        assert done.returncode == 2, argv
        assert text.format(**words) in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_a_login_without_the_right_password_says_what_to_do(user_store: Store, tmp_path: Path) -> None:
    status, output = asked(
        user_store, tmp_path, "prove", user_store.encrypted, "--ca", str(user_store.ca), REDISCLI_AUTH="wrong"
    )
    assert status == 1
    assert "Does --url name the user, and does" in output
    status, output = asked(
        user_store, tmp_path, "prove", user_store.encrypted, "--ca", str(user_store.ca), REDISCLI_AUTH=""
    )
    assert status == 1
    assert "No password was found: set" in output


def test_nothing_is_there_to_clean(user_store: Store, tmp_path: Path) -> None:
    status, output = asked(user_store, tmp_path, "clean", "--url", user_store.encrypted)
    assert (status, "ciphercost creates nothing there" in output) == (0, True)


def test_a_command_without_the_right_to_it_fails_before_any_load(
    user_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDISCLI_AUTH", PASSWORD)
    for command in ("GET others:1", "HGET mine:1 a"):
        (tmp_path / "own.txt").write_text(f"{command}\n")
        with pytest.raises(AgentError, match="NOPERM") as refused:
            opened(user_store.cell(tmp_path / "own.txt"), tmp_path)
        assert "before any load" in str(refused.value)


def test_a_users_own_writes_are_run_as_given(
    user_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user_store.ask(f'ACL SETUSER writer reset on ">{PASSWORD}" ~counters:* +incr +ping')
    monkeypatch.setenv("REDISCLI_AUTH", PASSWORD)
    (tmp_path / "own.txt").write_text("INCR counters:1\n")
    cell = user_store.cell(tmp_path / "own.txt")
    cell = structs.replace(cell, url=cell.url.replace("me@", "writer@"))
    session = opened(cell, tmp_path)
    assert [answer.errors for answer in session.slices.values()] == [0, 0]
    assert user_store.ask("GET counters:1") == [str(sum(answer.operations for answer in session.slices.values()))]
    user_store.ask("DEL counters:1")
    # With the right to PING alone, connections are measured.
    connecting = opened(structs.replace(cell, sql="", workload="connect"), tmp_path)
    assert [answer.errors for answer in connecting.slices.values()] == [0, 0]


def test_no_password_goes_unencrypted_to_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDISCLI_AUTH", PASSWORD)
    url = "redis://me@192.0.2.1:6379 rediss://me@192.0.2.1:6380"
    assert "would send the password readably" in RunningStore("redis", url, ()).no_plain_arm
    monkeypatch.delenv("REDISCLI_AUTH")
    assert "would send the password readably" in RunningStore("redis", url, ()).no_plain_arm
    default = RunningStore("redis", url.replace("me@", ""), ())
    assert not default.no_plain_arm
    assert default.connection().password is None
