"""How TLS begins on PostgreSQL (negotiation), and what the login is bound to (channel binding)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import warm
from ciphercost import engines
from ciphercost.load.agent import Agent
from ciphercost.model.connection import Connection
from ciphercost.model.errors import AgentError
from ciphercost.prove.wire_witness import begins_at_once
from conftest import Require
from userservers import UserServer, user_server

DIRECT = "17"
"""A version that takes TLS with the first byte."""
TO_PROVE = "ENCRYPTED, proven by every witness"


def version_here(require: Require, fits: Callable[[int], bool], which: str) -> str:
    """A version of PostgreSQL whose major number fits."""
    versions = [installation.version for installation in engines.get("postgresql").available()]
    version = next((candidate for candidate in versions if fits(int(candidate.partition(".")[0]))), "")
    require(version, f"no PostgreSQL {which} here: `ciphercost install postgresql`")
    return version


@pytest.fixture(scope="module")
def newer(require: Require) -> str:
    return version_here(require, lambda version: version >= int(DIRECT), f"{DIRECT} or later")


def prove(*argv: str, cwd: Path) -> tuple[int, str]:
    done = warm.run(["prove", *argv], cwd=cwd)
    assert "Traceback" not in done.stderr
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def test_tls_begins_with_the_first_byte_and_the_capture_shows_it(newer: str, tmp_path: Path) -> None:
    status, text = prove(f"postgresql@{newer}:tls", "--set", "negotiation=direct", cwd=tmp_path)
    assert status == 0, text
    assert "TLS begins with the first byte" in text
    assert TO_PROVE in text


def test_bytes_that_ask_for_tls_first_are_no_direct_negotiation() -> None:
    request = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
    assert begins_at_once(b"\x16\x03\x01\x02\x00", "seen") == (True, "seen; TLS begins with the first byte")
    passed, detail = begins_at_once(request + b"\x16\x03\x01", "seen")
    assert not passed
    assert "does not begin with the first byte" in detail


@pytest.mark.parametrize(
    ("target", "settings", "words"),
    [
        ("postgresql@15:tls", ["negotiation=direct"], ["negotiation=direct", "version 17 is the first", "postgresql@17"]),
        ("nginx:tls", ["negotiation=direct"], ["negotiation=direct", "only PostgreSQL", "leave it out"]),
        ("valkey:tls", ["channel-binding=prefer"], ["channel-binding=prefer", "only PostgreSQL", "leave it out"]),
        ("postgresql:tls", ["negotiation=direct", "hop=stunnel"], ["negotiation=direct", "hop=stunnel"]),
        ("postgresql:tls", ["negotiation=drect"], ["negotiation 'drect'", "did you mean 'direct'"]),
    ],
)  # fmt: skip
def test_what_can_not_be_is_refused_in_one_line(
    target: str, settings: list[str], words: list[str], tmp_path: Path
) -> None:
    given = [word for setting in settings for word in ("--set", setting)]
    status, text = prove(target, *given, cwd=tmp_path)
    assert status == 2, text
    for phrase in words:
        assert phrase in text


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, require: Require) -> Iterator[UserServer]:
    require(list(engines.get("postgresql").available()), "no PostgreSQL here: `ciphercost install postgresql`")
    with user_server("postgresql", tmp_path_factory.mktemp("server")) as running:
        yield running


def test_a_string_that_asks_for_it_begins_tls_at_once_on_a_users_server(newer: str, tmp_path: Path) -> None:
    with user_server("postgresql", tmp_path, version=newer.partition(".")[0]) as running:
        url = f"{running.url}?sslmode=verify-full&sslrootcert={running.ca}&sslnegotiation=direct"
        done = warm.run(["prove", url], cwd=tmp_path, env={**os.environ, **running.environment})
    text = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 0, text
    assert "TLS begins with the first byte" in text
    assert "changes nothing" not in text


def test_a_server_that_is_too_old_is_named(require: Require, tmp_path: Path) -> None:
    older = version_here(require, lambda version: version < int(DIRECT), f"before {DIRECT}")
    with user_server("postgresql", tmp_path, version=older.partition(".")[0]) as running:
        url = f"{running.url}?sslmode=verify-full&sslrootcert={running.ca}&sslnegotiation=direct"
        done = warm.run(["prove", url], cwd=tmp_path, env={**os.environ, **running.environment})
    assert done.returncode == 1
    assert f" from version {DIRECT} on" in " ".join(done.stdout.split())


@contextlib.contextmanager
def connected(connection: Connection) -> Iterator[tuple[str, str, bool]]:
    with Agent() as agent:
        answer = agent.connect("bound", connection.single)
        yield answer.auth, answer.verified_by, answer.verified


@pytest.mark.parametrize(
    ("binding", "auth", "by"),
    [
        ("disable", "scram-sha-256", ""),
        ("prefer", "scram-sha-256-plus", ""),
        ("require", "scram-sha-256-plus", "channel binding"),
    ],
)
def test_a_login_is_bound_as_asked(binding: str, auth: str, by: str, server: UserServer) -> None:
    with connected(server.fields | {"tls": "require", "channel_binding": binding}) as answer:  # type: ignore[typeddict-item]
        assert answer == (auth, by, bool(by))


def test_an_unencrypted_connection_has_nothing_to_bind_to(server: UserServer) -> None:
    with pytest.raises(AgentError, match="channel_binding"), connected(server.fields | {"channel_binding": "require"}):
        pass
