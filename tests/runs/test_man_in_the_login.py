"""A man in the middle that ends TLS with a certificate of his own and goes on to the login, with real servers behind him.

What each client does with each of his ways, and what `prove` says then. `tests/middle/logins.py` has the clients, and prints all
of them as one table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

import cases
import steady
from ciphercost.host.impostor.conversation import Did, Way
from conftest import RequireServer
from middle.logins import LOGINS, VERDICT, Login, Running, ways

VERSIONS = {"postgresql": "", "mariadb": "11.8"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Servers and agents, each started when it is needed first."""
    place = tmp_path_factory.mktemp("logins")
    with ExitStack() as stack:
        yield Running(place, stack)


@pytest.fixture
def login(request: pytest.FixtureRequest, require_server: RequireServer) -> Login:
    """A client; one over JDBC needs Java."""
    chosen: Login = request.param
    require_server(chosen.server, VERSIONS[chosen.server])
    if chosen.jdbc:
        request.getfixturevalue("require_java")
    return chosen


clients = pytest.mark.parametrize("login", LOGINS, ids=str, indirect=True)


def met(running: Running, login: Login, way: Way) -> Did:
    """What the client does. To the impostor, one that is slow is unclear."""
    for _ in range(steady.TRIES):
        if (did := running.met(login, way)) != "unclear":
            break
    return did


@clients
def test_a_client_does_this_with_an_impostor(running: Running, login: Login) -> None:
    assert dict(zip(ways(login), login.did, strict=True)) == {way: met(running, login, way) for way in ways(login)}


@clients
def test_prove_says_so(running: Running, login: Login, record_property: cases.Record) -> None:
    proven, text = running.examined(login)
    verdict = VERDICT.search(" ".join(text.split()))
    cases.record(record_property, "connections", f"impostor: {login}", verdict[0] if verdict else text)
    assert proven == login.proven, text
    assert login.says in " ".join(text.split())


@pytest.mark.parametrize("login", [login for login in LOGINS if login.logs_in], ids=str, indirect=True)
def test_without_an_impostor_each_client_logs_in(running: Running, login: Login) -> None:
    """A refusal proves nothing where everything is refused."""
    running.log_in(login, running.fields(login.server).port)
