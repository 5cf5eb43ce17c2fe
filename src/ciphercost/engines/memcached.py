"""memcached: memcached 1.6, which keeps keys and values in memory: how it is found, configured and started, and its TLS."""

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

USER = "ciphercost"
OPTIONS = ("-B", "ascii", "-U", "0", "-c", "10000", "-M", "-m", "65536")
"""Text protocol over TCP alone. `-M` and a limit no machine reaches (memory is taken as needed): no value is ever evicted."""


class MemcachedServer(StartedServer):
    """One that we started."""

    driver, user, database = "memcached", USER, ""

    def connection(self) -> dict[str, object]:
        return {name: value for name, value in super().connection().items() if name != "database"}


class Memcached(KeyValueStore):
    name = "memcached"
    title = "memcached"
    driver = "memcached"
    dialect = "memcached"
    programs = ("memcached",)
    suites = MappingProxyType({"1.6": "trixie"})
    packages = ("memcached",)
    version_words = r"memcached (\d[\d.]+)"
    volatile = True
    certificate_setting = "ssl_chain_cert"
    started = MemcachedServer

    def arguments(
        self, directory: Path, password: str, address: str, port: int, tls_port: int, settings: Mapping[str, str]
    ) -> list[str | Path]:
        users = own_file(directory / "users", f"{USER}:{password}\n")
        listen = f"notls:{address}:{port},{address}:{tls_port}" if tls_port else f"{address}:{port}"
        extended = ",".join(f"{name}={value}".rstrip("=") for name, value in settings.items())
        return [*OPTIONS, "-l", listen, "-Y", users, *(["-Z", "-o", extended] if tls_port else [])]

    def echo(self, text: str) -> str:
        return f"SET canary {text}; GET canary"

    def tls_settings(self, pki: Pki, factors: Mapping[str, str]) -> dict[str, str]:
        """It has no setting for the suites of TLS 1.3: OpenSSL's own three are those that a client can ask for."""
        settings = {
            "ssl_chain_cert": str(pki.certificate),
            "ssl_key": str(pki.key),
            "ssl_ciphers": ":".join(tls_names.offered("1.2")),
        }
        return settings if factors["resumption"] == "off" else settings | {"ssl_session_cache": ""}

    def answers(self, password: str, address: str, port: int) -> bool:
        """Whether a server there lets us in."""
        login = f"{USER} {password}"
        with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=1) as connection:
            connection.sendall(f"set login 0 0 {len(login)}\r\n{login}\r\n".encode())
            return connection.recv(64).startswith(b"STORED")
        return False


ENGINE = Memcached()
