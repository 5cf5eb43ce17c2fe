"""A command against a server on another host, at an address of IPv6, and of MySQL's protocol: proven, and its checks of the server found out."""

from __future__ import annotations

import shlex
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import forwarders
from ciphercost.host import link
from conftest import Require, RequirePossible, RequireServer
from test_real_command import cell_of, pgbench, run
from userservers import UserServer, user_server


@pytest.fixture(scope="module")
def server(require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[UserServer]:
    require_server("postgresql")
    with user_server("postgresql", tmp_path_factory.mktemp("postgresql")) as found:
        found.pgbench("-i", "-q")
        yield found


def proven(directory: Path) -> dict[str, Any]:
    """The cell, which went through a relay."""
    cell = cell_of(directory)
    assert cell["status"] == "ok"
    details = {proof["arm"]: proof["detail"] for proof in cell["proofs"]}
    assert "TLSv1.3" in details["encrypted"]
    assert "no TLS in" in details["plain"]
    assert not any("captured packets" in detail for detail in details.values())
    return cell


def codes(cell: dict[str, Any]) -> set[str]:
    return {warning["code"] for warning in cell["warnings"]}


def test_a_server_on_another_host(server: UserServer, tmp_path: Path, require_possible: RequirePossible) -> None:
    require_possible(link.check_rights)
    # The certificate's name is not that of the relay, so the command says which name it expects.
    place = "host=localhost hostaddr={host} port={port}"
    both = pgbench(server, "disable", place=place), pgbench(server, "verify-full", place=place)
    with forwarders.far(server.fields.port) as (host, port):
        done = run(server, tmp_path, *both, url=f"{host}:{port}")
    assert done.returncode == 0, done.stdout + done.stderr
    cell = proven(tmp_path)
    assert cell["encryption"]["verified"] == "yes"
    assert "server-not-seen" in codes(cell)
    assert "client_cpu_per_op" in cell["overhead"]
    assert "server_cpu_per_op" not in cell["overhead"]


@pytest.mark.usefixtures("require_capture")
def test_a_server_on_another_host_whose_name_no_relay_has_is_proven_by_packets(
    server: UserServer, tmp_path: Path, require_possible: RequirePossible
) -> None:
    require_possible(link.check_rights)
    # A client that takes only the host at this address for its server, and a relay has another one.
    with forwarders.far(server.fields.port) as (host, port):
        only = f"sh -c 'test $0 = {host} && exec \"$@\" || {{{{ echo certificate verify failed >&2; exit 1; }}}}' {{host}} "
        place = "host=localhost hostaddr={host} port={port}"
        both = pgbench(server, "disable", place=place), only + pgbench(server, "verify-full", place=place)
        done = run(server, tmp_path, *both, url=f"{host}:{port}", canary="pgbench_accounts")
    assert done.returncode == 0, done.stdout + done.stderr
    details = {proof["arm"]: proof["detail"] for proof in cell_of(tmp_path)["proofs"]}
    assert "by captured packets (through a relay on this machine it failed: " in details["encrypted"]
    assert "TLSv1.3" in details["encrypted"]


def test_an_address_of_ipv6(server: UserServer, tmp_path: Path, require: Require) -> None:
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError as error:
        require(None, f"no IPv6 here: {error.strerror}")
    both = pgbench(server, "disable"), pgbench(server, "verify-ca")
    with forwarders.forwarding(listener, server.fields.port) as port:
        done = run(server, tmp_path, *both, url=f"[::1]:{port}")
    assert done.returncode == 0, done.stdout + done.stderr
    cell = proven(tmp_path)
    assert (cell["encryption"]["verified"], cell["encryption"]["verified_by"]) == ("yes", "chain")
    assert "server_cpu_per_op" in cell["overhead"], "whoever listens there"


# ── MySQL ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

CLIENTS = {
    "mysql": ("mysql", "--ssl-mode=DISABLED", {
        "--ssl-mode=REQUIRED": "no",
        "--ssl-mode=VERIFY_CA --ssl-ca={ca}": "yes by chain",
        "--ssl-mode=VERIFY_IDENTITY --ssl-ca={ca}": "yes",
    }),
    "mariadb": ("mariadb", "--skip-ssl", {
        "--ssl --skip-ssl-verify-server-cert": "no",
        "--ssl --ssl-ca={ca} --ssl-verify-server-cert": "yes",
    }),
}  # fmt: skip
"""By engine: its client, the option without TLS, and how its options with TLS verify the server."""


@pytest.fixture(scope="module", params=CLIENTS)
def speaker(
    request: pytest.FixtureRequest, require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[UserServer]:
    """A server of MySQL's protocol."""
    name: str = request.param
    require_server(name)
    with user_server(name, tmp_path_factory.mktemp(name)) as found:
        yield found


def test_a_client_of_mysql_meets_the_impostor_of_its_protocol(speaker: UserServer, tmp_path: Path) -> None:
    program, plain, ways = CLIENTS[speaker.engine.name]
    client = next(Path(speaker.installation.location).parents[1].rglob(f"bin/{program}"))
    words = [
        str(client),
        "--no-defaults",
        "--host={host}",
        "--port={port}",
        "--protocol=TCP",
        f"--user={speaker.fields.user}",
    ]

    def command(option: str) -> str:
        return f"{shlex.join(words)} {option} -e 'SELECT 1 AS canary'"

    for number, (option, verified) in enumerate(ways.items()):
        directory = tmp_path / str(number)
        directory.mkdir()
        done = run(
            speaker, directory, command(plain), command(option), ca="{ca}" in option, operations=1, canary="canary"
        )
        assert done.returncode == 0, done.stdout + done.stderr
        encryption = proven(directory)["encryption"]
        by = f" by {encryption['verified_by']}" if "verified_by" in encryption else ""
        assert encryption["verified"] + by == verified, option
