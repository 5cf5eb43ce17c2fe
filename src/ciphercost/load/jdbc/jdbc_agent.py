"""The Java agent behind the Rust agent's interface: it takes the same `connect` fields and drives one JDBC driver.

JDBC can't report what was negotiated, so the agent asks the server in each session.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from ciphercost.host import client_identity
from ciphercost.host.ports import address_of, is_loopback
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.driver_agent import AgentProcess, DriverAgent, EngineDialect
from ciphercost.load.jdbc import drivers, java, suites
from ciphercost.load.jdbc.drivers import Driver, Target, TlsRequest
from ciphercost.load.jdbc.options import AGENT, END, NEVER, _checks_names, _properties
from ciphercost.load.jdbc.verify import hint
from ciphercost.load.redact import SECRET
from ciphercost.model.connection import Call, Connection, JdbcCalls, JdbcConnection
from ciphercost.model.errors import AgentError
from ciphercost.model.secret import Secret, reveal

_PLACES = re.compile("StoreUrl|rootcert|SslCert|sslkey|keyStore$", re.IGNORECASE)
"""Properties whose values are files of this machine."""


def _count(value: str) -> int:
    """Convert `10` or `end` to the number that the agent gets. Pure."""
    return NEVER if value == END else int(value)


class JdbcAgent(DriverAgent):
    """The Java agent with one driver. `connect` takes the Rust agent's fields."""

    compiles = True

    def __init__(
        self,
        driver: Driver,
        engine: EngineDialect,
        options: Mapping[str, str],
        like: Connection,
        *,
        aes: bool = True,
        cpus: Iterable[int] | None = None,
        log: Path | None = None,
        netns: Path | None = None,
        supervisor: Supervisor,
    ) -> None:
        """Start the agent in its own virtual machine.

        `options`: the client's settings (`--set`). `like`: the encrypted arm's connection; some of its settings must be
        options of the virtual machine. `supervisor`: that of the run, which owns the agent's files.
        """
        self.driver, self.title = driver, driver.title
        self._options, self._like, self._aes = options, like, aes
        self._identity_password = client_identity.store_password()
        super().__init__(engine, cpus=cpus, log=log, netns=netns, supervisor=supervisor)

    def command(self) -> AgentProcess:
        machine = drivers.machine_options(self._host(self._like)[1], self._told(self._like).unsaid)
        return AgentProcess(java.command(machine, aes=self._aes), java.OTHERS)

    def cipher_name(self, name: str) -> str:
        return suites.openssl(name)

    def hint(self, error: AgentError) -> str:
        return hint(self.driver, error)

    def checked_by(self, connection: Connection) -> tuple[str, str]:
        _, wish = self._host(connection)
        return wish.mode, wish.ca

    def settings(self, connection: Connection) -> dict[str, str]:
        lines = reveal(self.translated(connection).properties).splitlines()
        told = dict(line.partition("=")[::2] for line in lines)
        return {name: value for name, value in told.items() if not SECRET.search(name) and not _PLACES.search(name)}

    def translated(self, connection: Connection) -> JdbcConnection:
        """Translate a connection of the Rust agent's kind to one of the Java agent's."""
        told = self._told(connection)
        more: JdbcCalls = {
            "connections": connection.connections,
            "threads": connection.threads,
            "per_request": connection.per_request,
            "setup": connection.setup,
            "relayed": connection.relayed,
            "trusted": connection.trusted,
        }
        user, password = connection.user or "", connection.password or Secret("")
        if key := reveal(connection.key):
            password = Secret(f"{key} {reveal(password)}")  # H2's way to give the key of its files
        return drivers.connection(
            self.driver, told, user, password, witness=self.engine.tls_witness, more={**more, **calls(self._options)}
        )

    def _told(self, connection: Connection) -> drivers.Address:
        host, wish = self._host(connection)
        near = is_loopback(connection.host) and not connection.relayed
        target = Target(host, connection.port, connection.database or "", near or connection.trusted)
        agents = {option.name for option in AGENT}
        more = {name: value for name, value in self._options.items() if name not in agents}
        more |= _properties(self._options.get("properties", ""))
        more |= _properties(";".join(filter(None, (connection.properties, connection.cipher))))
        if connection.search_path:
            more["currentSchema"] = connection.search_path
        return drivers.address(self.driver, target, wish, more)

    def _host(self, connection: Connection) -> tuple[str, TlsRequest]:
        """Return the host name for the driver's URL, and the encryption to ask for.

        A driver checks the certificate against the host in its URL. Behind a relay, whose address is not the server's,
        it can only check the chain.
        """
        host, name = connection.host, connection.tls_server_name or ""
        wish = _wish(connection, self._store(connection.tls_ca or ""))
        if connection.mutual and wish.mode != "plain":
            wish = msgspec.structs.replace(
                wish, identity=self._identity(connection), identity_password=self._identity_password
            )
        if wish.mode == "verify-full" and not _checks_names(self.driver):
            wish = msgspec.structs.replace(wish, mode="verify-ca")
        if not name or name == host:
            return host, wish
        if address_of(name, connection.port) == host:
            return name, wish
        return host, msgspec.structs.replace(wish, mode="verify-ca") if wish.mode == "verify-full" else wish

    def _store(self, ca: str) -> str:
        if not ca:
            return ""
        store = self._place / f"{abs(hash(ca)):x}.p12"
        if not store.exists():
            drivers.trust_store(Path(ca), store)
        return str(store)

    def _identity(self, connection: Connection) -> str:
        """A key store with the client's certificate, encrypted with a password that only the driver gets."""
        identity = client_identity.of(connection)
        store = self._place / f"own-{hashlib.sha256(identity.pem.reveal().encode()).hexdigest()[:16]}.p12"
        if not store.exists():
            descriptor = os.open(store, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(identity.store(self._identity_password))
        return str(store)


def calls(options: Mapping[str, str]) -> JdbcCalls:
    """What the client's settings (`--set`) decide about the agent's calls. Pure."""
    changes: JdbcCalls = {}
    if how := options.get("how"):
        changes["how"] = msgspec.convert(how, Call)
    if batch := options.get("batch"):
        changes["batch"] = _count(batch)
    if commit_every := options.get("commit_every"):
        changes["commit_every"] = _count(commit_every)
    if autocommit := options.get("autocommit"):
        changes["autocommit"] = autocommit == "true"
    if prepared := options.get("prepared"):
        changes["prepared"] = prepared == "true"
    return changes


def _wish(connection: Connection, store: str) -> TlsRequest:
    """How the driver is to encrypt a connection. Pure."""
    if connection.by_wire_crypt:
        return TlsRequest("require")
    if connection.tls is None or connection.tls == "off":
        return TlsRequest()
    ciphers = tuple(filter(None, (connection.tls_ciphers or "").split(":")))
    return TlsRequest(
        connection.tls,
        connection.tls_ca or "",
        store,
        connection.tls_max or "",
        ciphers,
        at_once=connection.tls_at_once,
        binding=connection.channel_binding or "",
    )
