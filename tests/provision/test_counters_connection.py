"""Counters are read over a connection that nobody in the path can make weaker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.load.agent import Agent
from ciphercost.load.connection_string import Level
from ciphercost.model.errors import UsageError
from ciphercost.model.own_tls import OwnTls
from ciphercost.plan.targets import counting
from ciphercost.provision import counters_connection
from ciphercost.provision.counters_connection import mode
from conftest import RequireServer
from userservers import UserServer, user_server

LEVELS: tuple[Level, ...] = ("", "disable", "allow", "prefer", "require", "verify-ca", "verify-full")
EXPLICIT: tuple[Level, ...] = ("require", "verify-ca", "verify-full")


@given(st.sampled_from(LEVELS), st.booleans(), st.booleans())
def test_a_server_elsewhere_is_verified_or_the_url_says_otherwise(level: Level, here: bool, offered: bool) -> None:
    if (level, here, offered) == ("", False, False):
        with pytest.raises(UsageError, match="--url: the server offers no encryption"):
            mode(level, here=here, offered=offered)
        return
    chosen = mode(level, here=here, offered=offered)
    if level in EXPLICIT:
        assert chosen == level
    if not here and level == "":
        assert chosen == "verify-full"
    if chosen == "off":
        assert level == "disable" or (not offered and (here or level in ("allow", "prefer")))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, require_server: RequireServer) -> Iterator[UserServer]:
    require_server("postgresql")
    with user_server("postgresql", tmp_path_factory.mktemp("server")) as started, pytest.MonkeyPatch.context() as patch:
        for variable, value in started.environment.items():
            patch.setenv(variable, value)
        yield started


@pytest.mark.parametrize(
    ("query", "named", "encrypted", "verified"),
    [
        ("", False, True, False),
        ("", True, True, True),
        ("?sslmode=disable", False, False, False),
        ("?sslmode=verify-full", True, True, True),
    ],
)
def test_a_servers_tls_is_used(
    server: UserServer, tmp_path: Path, query: str, named: bool, encrypted: bool, verified: bool
) -> None:
    engine = TakesUrl.of(counting(server.url))
    url = f"{server.url}{query}"
    connection = counters_connection.of(
        engine, url, engine.running(url), OwnTls(str(server.ca) if named else ""), tmp_path
    )
    with Agent() as agent:
        answer = agent.connect("look", connection)
    assert (answer.encrypted, answer.verified) == (encrypted, verified)


def test_an_authority_without_encryption_is_refused(server: UserServer, tmp_path: Path) -> None:
    engine = TakesUrl.of(counting(server.url))
    url = f"{server.url}?sslmode=disable"
    with pytest.raises(UsageError, match=r"--ca .* has no effect: .*not encrypted"):
        counters_connection.of(engine, url, engine.running(url), OwnTls(str(server.ca)), tmp_path)


def test_no_password_goes_in_clear_to_a_store_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDISCLI_AUTH", "word")
    url = "redis://me@192.0.2.1:6379"  # nobody's: RFC 5737
    engine = TakesUrl.of(counting(url))
    with pytest.raises(UsageError, match=r"--url: .*would send the password"):
        counters_connection.of(engine, url, engine.running(url), OwnTls(), tmp_path)
