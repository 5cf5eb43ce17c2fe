"""Valkey 8 and later, an in-memory key-value store: packages, configuration, start and TLS."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ciphercost.engines._key_value import KeyValueStore
from ciphercost.engines._network import StartedServer
from ciphercost.host import tls_names
from ciphercost.host.marks import own_file

if TYPE_CHECKING:
    from ciphercost.host.pki import Pki

SETTINGS = {"save": "86400 1", "appendonly": "no", "maxclients": "10000"}
"""Settings of both arms.

One snapshot per day: the server saves loaded data when it stops, and never during measurement.
"""


class ValkeyServer(StartedServer):
    """A server that ciphercost started."""

    driver, user, database = "resp", "default", ""

    def connection(self) -> dict[str, object]:
        """Leave the database out: every connection begins in the default one."""
        return {name: value for name, value in super().connection().items() if name != "database"}


class Valkey(KeyValueStore):
    name = "valkey"
    title = "Valkey"
    driver = "resp"
    dialect = "valkey"
    programs = ("valkey-server",)
    suites = MappingProxyType({"8.1": "trixie"})
    packages = ("valkey-server",)
    runs_in_place = ("usr/bin/valkey-check-rdb",)  # valkey-server is a link to it
    version_words = r"Valkey server v=(\d[\d.]+)"
    certificate_setting = "tls-cert-file"
    started = ValkeyServer

    def arguments(
        self, directory: Path, password: str, address: str, port: int, tls_port: int, settings: Mapping[str, str]
    ) -> list[str | Path]:
        chosen = SETTINGS | dict(settings) | {"bind": address, "port": str(port)}
        chosen |= {"dir": str(directory), "requirepass": password}
        chosen |= {"tls-port": str(tls_port)} if tls_port else {}
        lines = "".join(f"{name} {value}\n" for name, value in chosen.items())
        return [own_file(directory / "valkey.conf", lines)]

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

    def answers(self, password: str, address: str, port: int) -> bool:
        """Whether a server there accepts our login and has loaded its data."""
        with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=1) as connection:
            connection.sendall(f"AUTH {password}\r\n".encode())
            if connection.recv(64).startswith(b"+OK"):
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith(b"+PONG")
        return False


ENGINE = Valkey()
