"""memcached: memcached 1.6, which keeps keys and values in memory: how it is found, configured and started, and its TLS."""

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

USER = "ciphercost"
OPTIONS = ("-B", "ascii", "-U", "0", "-c", "10000", "-M", "-m", "65536")
"""Text protocol over TCP alone. `-M` and a limit no machine reaches (memory is taken as needed): no value is ever evicted."""


class MemcachedServer(StartedServer):
    """One that we started."""

    driver, user, database = "memcached", USER, ""

    def connection(self) -> dict[str, object]:
        return {name: value for name, value in super().connection().items() if name != "database"}


class Memcached(Packaged, HasTls):
    name = "memcached"
    title = "memcached"
    driver = "memcached"
    dialect = "memcached"
    language = "kv"
    usual_workload = "kv-get"
    programs = ("memcached",)
    suites = MappingProxyType({"1.6": "trixie"})
    packages = ("memcached",)
    place = "usr/bin"
    places = ("usr/bin", "usr/local/bin")
    version_option = "--version"
    version_words = r"memcached (\d[\d.]+)"
    no_url = "is started by ciphercost: leave --url out"
    volatile = True
    mute = ("server",)  # it does not report how a session is encrypted
    tls_resumption = ("on",)

    def check_factors(self, mechanism: str, factors: Mapping[str, str], version: str) -> None:  # noqa: ARG002
        if mechanism == "tls" and factors.get("group"):
            raise UsageError(f"memcached has no setting for the key exchange group: leave group={factors['group']} out")

    def initialise(
        self,
        installation: Installation,  # noqa: ARG002
        directory: Path,
        supervisor: Supervisor,  # noqa: ARG002
        settings: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> None:
        """Make a directory with a random password, 0600."""
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
        """TLS has a port of its own: the encrypted arm's `ways`."""
        given, env = apart(settings)
        password = (directory / PASSWORD_FILE).read_text()
        users = own_file(directory / "users", f"{USER}:{password}\n")
        tls: list[int] = []

        def command(port: int) -> list[str | Path]:
            tls[:] = [free_port()] if given else []
            listen = f"notls:127.0.0.1:{port},127.0.0.1:{tls[0]}" if tls else f"127.0.0.1:{port}"
            extended = ",".join(f"{name}={value}".rstrip("=") for name, value in given.items())
            options: list[str | Path] = ["-l", listen, "-Y", users, *(["-Z", "-o", extended] if tls else [])]
            return [self.program(installation), *OPTIONS, *options]

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
        server = MemcachedServer(started, directory)
        server.ways = {"tls": {"port": tls[0]}} if tls else {}
        return server

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


def answers(password: str, port: int) -> bool:
    """Whether a server on loopback lets us in."""
    login = f"{USER} {password}"
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
        connection.sendall(f"set login 0 0 {len(login)}\r\n{login}\r\n".encode())
        return connection.recv(64).startswith(b"STORED")
    return False


ENGINE = Memcached()
