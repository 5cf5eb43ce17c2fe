"""An agent of a language behind the Rust agent's interface: it takes the same `connect` fields and drives one driver."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from pathlib import Path

from ciphercost.host import client_identity
from ciphercost.host.supervisor import Supervisor
from ciphercost.load import drivers
from ciphercost.load.driver_agent import AgentProcess, DriverAgent, EngineDialect
from ciphercost.load.drivers import Driver
from ciphercost.load.jdbc import suites
from ciphercost.load.peer_checks import STRANGER
from ciphercost.model.connection import Connection, DriverConnection

LOOPBACK = ("127.0.0.1", "::1")
SHOWN = ("host", "tls", "tls_at_once", "channel_binding", "tls_min", "tls_max", "tls_ciphers", "options")
"""Fields of a connection that are neither secrets nor files of this machine."""


class LanguageAgent(DriverAgent):
    """The agent of a driver's language, with that driver."""

    def __init__(
        self,
        driver: Driver,
        engine: EngineDialect,
        options: Mapping[str, str],
        like: Connection,
        *,
        mask: Mapping[str, str] | None = None,
        cpus: Iterable[int] | None = None,
        log: Path | None = None,
        netns: Path | None = None,
        supervisor: Supervisor,
    ) -> None:
        """Start the agent.

        `options`: the client's settings (`--set`). `like`: the encrypted arm's connection. `mask`: variables that hide the CPU's
        crypto instructions. `supervisor`: that of the run, which owns the agent's files.
        """
        self.driver, self.title = driver, driver.title
        self._options, self._like, self._mask = options, like, mask or {}
        self.language = drivers.language(driver.language)
        self.compiles = self.language.compiles
        super().__init__(engine, cpus=cpus, log=log, netns=netns, supervisor=supervisor)

    def command(self) -> AgentProcess:
        argv, env = self.language.process(self.driver, self._like, self._place)
        return AgentProcess(argv, {**env, **self._mask, **(self.language.without_aes if self._mask else {})})

    def strangers_name(self, connection: Connection) -> str | None:
        """Of the same kind as the server's, because mysql2 checks names and no addresses."""
        return None if _is_address(self._name(connection)) else STRANGER

    def _name(self, connection: Connection) -> str:
        """The server's name, as an application gives it to this driver."""
        name = (connection.tls_server_name if connection.by_tls else None) or connection.host
        if connection.by_tls and not self.driver.checks_addresses and name in LOOPBACK:
            return "localhost"
        return name

    def cipher_name(self, name: str) -> str:
        return suites.openssl(name)

    def demanded(self, connection: Connection) -> Connection:
        version = "1.3" if connection.tls_max in (None, "1.3") else connection.tls_max
        return connection if version in self.driver.cipher else connection | {"tls_ciphers": None}

    def checked_by(self, connection: Connection) -> tuple[str, str]:
        return connection.tls or "off", connection.tls_ca or ""

    def settings(self, connection: Connection) -> dict[str, str]:
        given = {name: getattr(self.translated(connection), name) for name in SHOWN}
        return {name: str(value) for name, value in given.items() if value}

    def translated(self, connection: Connection) -> DriverConnection:
        """Translate a connection of the Rust agent's kind to one of this agent's."""
        tls = connection.tls if connection.by_tls else "off"
        host = self._name(connection)
        translated = DriverConnection(
            driver=self.driver.name,
            connections=connection.connections,
            threads=connection.threads,
            per_request=connection.per_request,
            user=connection.user,
            password=connection.password,
            setup=connection.setup,
            relayed=connection.relayed,
            trusted=connection.trusted,
            host=host,
            port=connection.port,
            address=connection.host if host != connection.host else None,
            database=connection.database,
            search_path=connection.search_path,
            tls=tls,
            witness=self.engine.tls_witness,
            options="\n".join(f"{name}={value}" for name, value in self._options.items()) or None,
        )
        if tls == "off":
            return translated
        return translated | {
            "tls_at_once": connection.tls_at_once,
            "channel_binding": connection.channel_binding
            if connection.channel_binding in self.driver.binding
            else None,
            "tls_ca": connection.tls_ca if tls != "require" else None,
            "tls_min": connection.tls_min,
            "tls_max": connection.tls_max,
            "tls_ciphers": self.demanded(connection).tls_ciphers,
            "tls_identity": client_identity.of(connection).pem if connection.mutual else None,
        }


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
