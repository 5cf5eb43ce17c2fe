"""`ciphercost prove` with connection strings as users have them, on servers of their own: what does such a client get?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import warm
from conftest import RequireServer
from connection_cases import ON_A_SERVER, WITHOUT_TLS, Case
from userservers import UserServer, user_server


@pytest.fixture(scope="module", params=sorted(ON_A_SERVER))
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, require_server: RequireServer
) -> Iterator[UserServer]:
    """A server whose connections may be encrypted or not."""
    require_server(request.param)
    with user_server(request.param, tmp_path_factory.mktemp(request.param)) as found:
        yield found


def answers(url: str, cases: tuple[Case, ...], ca: Path, environment: Mapping[str, str], home: Path) -> list[str]:
    """What is wrong with the answers to these cases."""
    wrong = []
    for case in cases:
        query = case.query.format(ca=ca, none=home / "none")
        more = {name: value.format(ca=ca) for name, value in case.environment}
        done = warm.run(["prove", f"{url}?{query}"], cwd=home, env={**environment, **more, "HOME": str(home)})
        said = " ".join((done.stdout + done.stderr).split())
        missing = [text for text in case.texts if text not in said]
        if done.returncode != case.status or missing:
            wrong.append(f"{query}: exit {done.returncode}, without {missing}: {said}")
    return wrong


def test_a_string_gets_the_answer_that_its_client_gets(server: UserServer, tmp_path: Path) -> None:
    assert answers(server.url, ON_A_SERVER[server.engine.name], server.ca, server.environment, tmp_path) == []


@pytest.mark.parametrize(("name", "setting"), [("postgresql", "off"), ("mariadb", "OFF")])
def test_a_server_without_tls_is_no_reason_to_call_a_string_encrypted(
    name: str, setting: str, tmp_path: Path, require_server: RequireServer
) -> None:
    require_server(name)
    with user_server(name, tmp_path, settings={"ssl": setting}) as server:
        assert answers(server.url, WITHOUT_TLS[name], server.ca, server.environment, tmp_path) == []
