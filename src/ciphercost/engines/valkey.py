"""Valkey 8 and later, an in-memory key-value store: packages, configuration, start and TLS."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ciphercost.engines import Server
from ciphercost.engines._network import PASSWORD_FILE, StartedServer, own_file
from ciphercost.engines._packaged import Packaged
from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.host import tls_names
from ciphercost.host.installation import Installation
from ciphercost.host.launch import apart, launch
from ciphercost.host.marks import hand_over
from ciphercost.host.ports import free_port
from ciphercost.model.errors import UsageError

if TYPE_CHECKING:
    from ciphercost.host.pki import Pki
    from ciphercost.host.supervisor import Supervisor

SETTINGS = {"bind": "127.0.0.1", "save": "86400 1", "appendonly": "no", "maxclients": "10000"}
"""Settings of both arms.

One snapshot per day: the server saves loaded data when it stops, and never during measurement.
"""


class ValkeyServer(StartedServer):
    """A server that ciphercost started."""

    driver, user, database = "resp", "default", ""

    def connection(self) -> dict[str, object]:
        """Leave the database out: every connection begins in the default one."""
        return {name: value for name, value in super().connection().items() if name != "database"}


class Valkey(Packaged, HasTls):
    name = "valkey"
    title = "Valkey"
    driver = "resp"
    dialect = "valkey"
    language = "kv"
    usual_workload = "kv-get"
    programs = ("valkey-server",)
    suites = MappingProxyType({"8.1": "trixie"})
    packages = ("valkey-server",)
    place = "usr/bin"
    places = ("usr/bin", "usr/local/bin")
    runs_in_place = ("usr/bin/valkey-check-rdb",)  # valkey-server is a link to it
    version_option = "--version"
    version_words = r"Valkey server v=(\d[\d.]+)"
    no_url = "is started by ciphercost: leave --url out"
    mute = ("server",)  # it reports nothing about the encryption of a session
    tls_resumption = ("on",)

    def check_factors(self, mechanism: str, factors: Mapping[str, str], version: str) -> None:  # noqa: ARG002
        if mechanism == "tls" and factors.get("group"):
            raise UsageError(f"valkey has no setting for the key exchange group: leave group={factors['group']} out")

    def initialise(
        self,
        installation: Installation,  # noqa: ARG002
        directory: Path,
        supervisor: Supervisor,  # noqa: ARG002
        settings: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> None:
        """Create a directory with a random password (mode 0600)."""
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        hand_over(directory)
        own_file(directory / PASSWORD_FILE, secrets.token_hex(16))

    def start(
        self,
        installation: Installation,
        directory: Path,
        supervisor: Supervisor,
        *,
        cpus: Iterable[int] | None = None,
        settings: Mapping[str, str] | None = None,
        logs: Path | None = None,
    ) -> Server:
        """TLS has a port of its own, given by `Server.ways`."""
        given, env = apart(settings)
        password = (directory / PASSWORD_FILE).read_text()
        tls: list[int] = []

        def command(port: int) -> list[str | Path]:
            tls[:] = [free_port()] if "tls-cert-file" in given else []
            chosen = SETTINGS | given | {"port": str(port), "dir": str(directory), "requirepass": password}
            chosen |= {"tls-port": str(tls[0])} if tls else {}
            lines = "".join(f"{name} {value}\n" for name, value in chosen.items())
            return [self.program(installation), own_file(directory / "valkey.conf", lines)]

        started = launch(
            supervisor,
            f"{self.title} {installation.version}",
            command,
            partial(answers, password),
            directory=directory,
            logs=logs,
            env=env,
            cpus=cpus,
            also=lambda: tls,
        )
        server = ValkeyServer(started, directory)
        server.ways = {"tls": {"port": tls[0]}} if tls else {}
        return server

    def echo(self, text: str) -> str:
        return f"ECHO {text}"

    def tls_settings(self, pki: Pki, factors: Mapping[str, str]) -> dict[str, str]:
        return {
            "tls-cert-file": str(pki.certificate),
            "tls-key-file": str(pki.key),
            "tls-ca-cert-file": str(pki.ca),
            "tls-auth-clients": "no",
            "tls-protocols": '"TLSv1.2 TLSv1.3"',
            "tls-ciphers": ":".join(tls_names.offered("1.2")),
            "tls-ciphersuites": ":".join(tls_names.offered("1.3")),
            "tls-session-caching": "no" if factors["resumption"] == "off" else "yes",
        }


def answers(password: str, port: int) -> bool:
    """Whether a server on loopback accepts our login and has loaded its data."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
        connection.sendall(f"AUTH {password}\r\n".encode())
        if connection.recv(64).startswith(b"+OK"):
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
    return False


ENGINE = Valkey()
