"""memcached: memcached 1.6, which keeps keys and values in memory: how it is found, configured and started, and its TLS."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ciphercost.engines import Server, StartRequest
from ciphercost.engines._key_value import KeyValueStore
from ciphercost.engines._network import StartedServer
from ciphercost.engines._running_store import RunningMemcached, TakesStoreUrl
from ciphercost.engines.capabilities.settings import CLIENT_CERTIFICATES, Decided, TakesSettings
from ciphercost.host import tls_names
from ciphercost.host.run_ownership import own_file
from ciphercost.load.connection_string import memcached as strings
from ciphercost.model.connection import Connection

if TYPE_CHECKING:
    from ciphercost.host.pki import Pki

USER = "ciphercost"
OPTIONS = ("-B", "ascii", "-U", "0", "-c", "10000", "-M", "-m", "65536")
"""Text protocol over TCP alone. `-M` and a limit no machine reaches (memory is taken as needed): no value is ever evicted."""


REQUIRED = "2"
"""Its `ssl_verify_mode` by which a client without a certificate is refused."""

LONG = (
    "threads",
    "conn-limit",
    "max-reqs-per-event",
    "listen-backlog",
    "slab-min-size",
    "slab-growth-factor",
    "max-item-size",
)
"""Its options with a value that have a name of their own; all others are given by `-o`."""


class MemcachedServer(StartedServer):
    """One that we started."""

    driver, user, database = "memcached", USER, ""

    def connection(self) -> Connection:
        return super().connection() | {"database": None}


class Memcached(KeyValueStore, TakesStoreUrl, TakesSettings):
    name = "memcached"
    title = "memcached"
    driver = "memcached"
    dialect = "memcached"
    programs = ("memcached",)
    suites = MappingProxyType({"1.6": "trixie"})
    packages = ("memcached",)
    version_words = r"memcached (\d[\d.]+)"
    volatile = True
    schemes: Mapping[str, str] = MappingProxyType({strings.CLEAR: "tls", strings.ENCRYPTED: "tls"})
    password_from = strings.VARIABLE
    give_password = strings.INSTEAD
    refuses_anonymous = "unauthenticated"
    certificate_setting = "ssl_chain_cert"
    started = MemcachedServer
    setting_example = "threads=8"
    decided_settings = (
        Decided("ssl_min_version", "version"),
        Decided("ssl_ciphers", "cipher"),
        Decided("ssl_(chain_cert|key|keyformat)", "certificate"),
        Decided("ssl_(ca_cert|verify_mode)", CLIENT_CERTIFICATES, value="on"),
        Decided("ssl_session_cache", "resumption"),
        Decided("enable_ssl"),
        Decided(
            "memory_limit|disable_evictions",
            why="ciphercost gives it enough memory, because an evicted value would be an error of the load; remove it",
        ),
    )
    kept_settings = (
        "listen|port|udp_port|unix_.*|user(name)?|auth_.*|enable_(sasl|coredumps|shutdown)|protocol|extended|daemon|pid(file|_file)"
        "|memory_file|lock_memory|proxy_.*|verbose|help|license|version|ext_path"
    )

    def arguments(
        self, directory: Path, password: str, address: str, port: int, tls_port: int, settings: Mapping[str, str]
    ) -> list[str | Path]:
        users = own_file(directory / "users", f"{USER}:{password}\n")
        listen = f"notls:{address}:{port},{address}:{tls_port}" if tls_port else f"{address}:{port}"
        long_options = [
            f"--{option}={value}" for name, value in settings.items() if (option := name.replace("_", "-")) in LONG
        ]
        rest = {name: value for name, value in settings.items() if name.replace("_", "-") not in LONG}
        extended = ",".join(name if value in ("", "on") else f"{name}={value}" for name, value in rest.items())
        words: list[str | Path] = [*OPTIONS, *long_options, "-l", listen, "-Y", users, *(["-Z"] if tls_port else [])]
        return [*words, *(["-o", extended] if extended else [])]

    def malformed(self, name: str, value: str) -> str:
        """Refuse what would be another suboption, and `off`: a suboption without a value is on where it is named."""
        if "," in value:
            return "memcached separates its options by commas; write each as a --setting of its own"
        return f"memcached switches {name} on where it is named; remove it" if value in ("off", "no") else ""

    def start(self, request: StartRequest) -> Server:
        if request.installation.source == "running":
            return self.running(request.installation.location)
        return super().start(request)

    def running(self, url: str) -> Server:
        return RunningMemcached(self.name, url, self.programs)

    def echo(self, text: str) -> str:
        """Return a command that deletes a key that nobody has: the answer repeats its name, and nothing is stored."""
        return f"MD {text} k"

    def echoed(self, rows: list[list[str | None]], text: str) -> tuple[str, str]:
        return (text, text) if rows == [[f"NF k{text}"]] else ("", "")

    def tls_settings(self, pki: Pki, factors: Mapping[str, str]) -> dict[str, str]:
        """It has no setting for the suites of TLS 1.3: OpenSSL's own three are those that a client can ask for."""
        settings = {
            "ssl_chain_cert": str(pki.certificate),
            "ssl_key": str(pki.key),
            "ssl_ciphers": ":".join(tls_names.offered("1.2")),
        }
        if factors["client-cert"] == "on":
            settings |= {"ssl_ca_cert": str(pki.ca), "ssl_verify_mode": REQUIRED}
        return settings if factors["resumption"] == "off" else settings | {"ssl_session_cache": ""}

    def answers(self, password: str, address: str, port: int) -> bool:
        """Whether a server there lets us in."""
        login = f"{USER} {password}"
        with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=1) as connection:
            connection.sendall(f"set login 0 0 {len(login)}\r\n{login}\r\n".encode())
            return connection.recv(64).startswith(b"STORED")
        return False


ENGINE = Memcached()
