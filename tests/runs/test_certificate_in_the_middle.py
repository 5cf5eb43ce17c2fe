"""A man in the middle of logins by client certificate and by a command's password: he is let in nowhere and learns nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import warm
from client_certs import ClientAuthority
from conftest import RequireServer
from middle.attacks import ATTACKS, NONE, Attack
from middle.chains import Chains
from middle.middle import Middle, Upgrade
from middle.mysql import Mysql
from middle.postgresql import Postgresql
from test_own_certificates import require_certificate
from userservers import UserServer, user_server

TOKEN = "token-4711-of-a-command"
PASSPHRASE = "sesame"
UPGRADES: dict[str, type[Upgrade]] = {"postgresql": Postgresql, "mariadb": Mysql}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> ClientAuthority:
    return ClientAuthority(tmp_path_factory.mktemp("clients"))


@pytest.fixture(scope="module", params=sorted(UPGRADES))
def server(
    request: pytest.FixtureRequest,
    authority: ClientAuthority,
    tmp_path_factory: pytest.TempPathFactory,
    require_server: RequireServer,
) -> Iterator[UserServer]:
    require_server(request.param)
    with user_server(request.param, tmp_path_factory.mktemp(request.param)) as running:
        require_certificate(running, authority.ca)
        yield running


@pytest.mark.parametrize(
    "attack", [NONE, *(attack for attack in ATTACKS if not attack.factors)], ids=lambda attack: attack.name
)
def test_he_learns_nothing_of_a_login(
    server: UserServer, authority: ClientAuthority, attack: Attack, tmp_path: Path
) -> None:
    shown = Chains(tmp_path / "chains").present(attack.chain)
    certificate = authority.client("wanted", PASSPHRASE)["sealed"]
    environment = {**os.environ, "MYSQL_PWD": "x", "CIPHERCOST_KEY_PASSPHRASE": PASSPHRASE}
    by_command = ["--password-command", "echo x" if attack == NONE else f"echo {TOKEN}"]
    with Middle(UPGRADES[server.engine.name](), attack, shown, lambda _: server.fields.port) as middle:
        ca = server.ca if attack.tunnels else shown.ca
        url = server.url_for("wanted", middle.port)
        done = warm.run(["prove", url, "--ca", ca, *certificate.options, *by_command], env=environment)
        middle.finish()
    output = " ".join((done.stdout + done.stderr).split())
    assert "Traceback" not in output
    assert middle.lines, "nobody connected"
    if attack == NONE:
        assert done.returncode == 0, output
        return
    assert done.returncode == 1, output
    assert middle.in_clear == []
    assert middle.learned == b""
    heard = b"".join(bytes(line.heard) for line in middle.lines)
    assert TOKEN.encode() not in heard
    assert b"wanted" not in heard, "he does not even learn who the client is"
