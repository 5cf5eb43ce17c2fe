"""Commands that take the address of a user's server: each is attacked by `make middle`, and none drops the authority that the user names."""

from __future__ import annotations

import socket
from pathlib import Path

import click
import pytest

import warm
from ciphercost.commands import cli
from ciphercost.host import pki
from ciphercost.plan import authority_checks
from middle.behind import COMMANDS


def takes_address(command: click.Command) -> bool:
    """Whether an option or an argument of it may be an address, by its help."""
    options = {name for param in command.params for name in param.opts}
    return bool(options & {"--url", "--ca"}) or any("URL" in (param.metavar or "") for param in command.params)


def test_each_of_them_meets_the_man_in_the_middle() -> None:
    assert {name for name, command in cli.commands.items() if takes_address(command)} == set(COMMANDS)


@pytest.mark.parametrize(
    "argv",
    [
        ("calibrate", "postgresql", "--url", "postgresql://me@127.0.0.1:{port}/d"),
        ("calibrate", "mariadb", "--url", "mariadb://me@127.0.0.1:{port}/d"),
        ("calibrate", "mysql", "--client", "jdbc", "--url", "mysql://me@127.0.0.1:{port}/d"),
        (
            "calibrate",
            "valkey",
            "--workload",
            "connect",
            "--url",
            "redis://127.0.0.1:{port}",
            "--url",
            "rediss://127.0.0.1:{port}",
        ),
        ("calibrate", "url", "--url", "http://127.0.0.1:{port}/", "--url", "https://127.0.0.1:{port}/"),
        ("run", "postgresql:none", "--url", "postgresql://me@127.0.0.1:{port}/d"),
        ("run", "mysql:aes-cbc-256", "--workload", "search", "--url", "mysql://me@127.0.0.1:{port}/d"),
        ("run", "url:none", "--url", "http://127.0.0.1:{port}/", "--url", "https://127.0.0.1:{port}/"),
    ],
    ids=" ".join,
)
def test_an_authority_that_would_verify_nothing_is_refused_before_a_login(
    argv: tuple[str, ...], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        done = warm.run([*(word.format(port=port) for word in argv), "--ca", authority(tmp_path)], cwd=tmp_path)
        assert done.returncode == 2, done.stdout + done.stderr
        assert "would verify no certificate" in done.stderr
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize("argv", [("run", "valkey:tls"), ("prove", "postgresql:tls"), ("calibrate", "postgresql")])
def test_an_authority_of_no_server_of_the_users_is_refused(argv: tuple[str, ...], tmp_path: Path) -> None:
    done = warm.run([*argv, "--ca", authority(tmp_path)], cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert authority_checks.WHOSE["--ca"] in done.stderr


def authority(place: Path) -> str:
    return str(pki.Pki(place / "authority").ca)
