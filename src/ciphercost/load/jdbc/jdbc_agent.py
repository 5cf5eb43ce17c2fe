"""The Java agent behind the Rust agent's interface: it takes the same `connect` fields and drives one JDBC driver.

JDBC can't report what was negotiated, so the agent asks the server in each session. Settings don't prove that the
driver verifies its peer: an impostor must have shown it another certificate and must have been refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ciphercost.host import client_identity
from ciphercost.host.impostor import Speech
from ciphercost.host.ports import address_of, is_loopback
from ciphercost.host.supervisor import Supervisor, temporary
from ciphercost.load.agent import Agent
from ciphercost.load.jdbc import drivers, java, suites
from ciphercost.load.jdbc.drivers import Driver, Mode, Target, TlsRequest
from ciphercost.load.jdbc.options import AGENT, END, NEVER, _checks_names, _properties
from ciphercost.load.jdbc.verify import MOST_SHOWN, Verdict, hint, refuses_impostor, refuses_other_name
from ciphercost.load.plaintext_guard import encrypted_first, words
from ciphercost.load.redact import SECRET
from ciphercost.model.connection import Call, Connected, Connection, JdbcCalls, JdbcConnection, Pool
from ciphercost.model.errors import AgentError, RunError, Unproven, server_code
from ciphercost.model.secret import Secret, reveal
from ciphercost.model.slices import AgentSlice
from ciphercost.model.spec import ARMS, Arm

SPEECHES: dict[str, Speech] = {"mysql": "mysql", "postgres": "postgres", "h2": "tls"}
"""How a server's protocol begins, by name of the Rust agent's driver. Other servers have no certificates."""
CHECKS: tuple[Mode, ...] = ("verify-ca", "verify-full")


def _count(value: str) -> int:
    """Convert `10` or `end` to the number that the agent gets. Pure."""
    return NEVER if value == END else int(value)


# ── the agent ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class EngineDialect(Protocol):
    """What the Java agent needs to know about the engine."""

    name: str

    @property
    def driver(self) -> str:
        """The protocol, by name of the Rust agent's driver."""

    @property
    def tls_witness(self) -> str:
        """SQL that returns how the session is encrypted."""


class JdbcAgent(Agent):
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
        self.driver = driver
        self.engine = engine
        self._options = options
        self._closing = contextlib.ExitStack()
        self._place = self._closing.enter_context(temporary(supervisor, "jdbc"))
        self._identity_password = client_identity.store_password()
        self._checked: dict[tuple[str, str], Verdict] = {}
        self.said: dict[str, Connected] = {}
        """The answers to `connect`, by arm."""
        try:
            machine = drivers.machine_options(self._host(like)[1], self._told(like).unsaid)
            super().__init__(java.command(machine, aes=aes), cpus=cpus, log=log, env=java.OTHERS, netns=netns)
        except BaseException:
            self._closing.close()
            raise

    def close(self) -> None:
        super().close()
        self._closing.close()

    # ── connecting ────────────────────────────────────────────────────────────────────────────────────────────────────

    def connect(self, arm: str, connection: Pool) -> Connected:
        """Open an arm's connections; those of the Rust agent's kind are translated."""
        if not isinstance(connection, Connection):
            return super().connect(arm, connection)
        answer = super().connect(arm, self.translated(connection))
        answer = msgspec.structs.replace(
            answer,
            server_version=plain_version(answer.server_version),
            cipher=suites.openssl(answer.cipher),
            resumed=None,  # JDBC can't report it
        )
        if answer.encrypted and connection.by_tls:
            by, words = self._verified(connection)
            answer = msgspec.structs.replace(
                answer, peer="the server", checked=words, verified=bool(by), verified_by=by
            )
        self.said[arm] = answer
        return answer

    def disconnect(self, arm: str) -> None:
        super().disconnect(arm)
        self.said.pop(arm, None)

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
        agents = {each.name for each in AGENT}
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

    def _verified(self, connection: Connection) -> Verdict:
        """Return by what the driver refuses every other server, and a sentence about it.

        Tried once per set of connection settings.
        """
        _, wish = self._host(connection)
        if wish.mode not in CHECKS or self.engine.driver not in SPEECHES:
            return Verdict("", "")
        key = (wish.mode, wish.ca)
        if key not in self._checked:
            self._checked[key] = self._try(connection, wish)
        return self._checked[key]

    def _try(self, connection: Connection, wish: TlsRequest) -> Verdict:
        kind = "ecdsa-p256" if any("ECDSA" in suite for suite in wish.ciphers) else "rsa2048"

        def call(port: int, host: str = "127.0.0.1") -> str:
            return self._reached(connection.single | {"host": host, "port": port})

        found = refuses_impostor(
            SPEECHES[self.engine.driver], connection.host, connection.port, self._place, call, kind
        )
        if found.by != "certificate" or wish.mode != "verify-full":
            return found
        named, more = refuses_other_name(connection.host, connection.port, call)
        return Verdict("certificate" if named else "", f"{found.words}, {more}")

    def _reached(self, connection: Connection) -> str:
        """Return why this connection fails; empty: it succeeds.

        The driver checks the name in that address.
        """
        try:
            super().connect("stranger", self.translated(connection | {"tls_server_name": None}))
        except AgentError as error:
            return str(error) or error.code
        super().disconnect("stranger")
        return ""

    def enter(
        self,
        connect: Mapping[Arm, Connection],
        told: Callable[[AgentError, Arm], None] | None = None,
        encrypted: Collection[Arm] = (ARMS[1],),
    ) -> None:
        """Check that the driver can log in at all, in these arms. Raises RunError with the driver's reason and a hint.

        `told`: on a server that the user runs, called with the reason if an arm of `encrypted` can't log in; no other is tried
        then.
        """
        for arm in encrypted_first(connect):
            try:
                super().connect("enter", self.translated(connect[arm].single))
                super().disconnect("enter")
            except AgentError as error:
                more = hint(self.driver, error)
                if told and arm in encrypted:
                    told(error, arm)
                    more += f". {words(str(error), error.code)}"
                raise RunError(
                    f"{self.driver.title} can't connect, {arm} arm: {str(error)[:MOST_SHOWN]}{server_code(error.code)}{more}"
                ) from None

    # ── loading ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def slice(
        self,
        arm: str,
        seconds: float,
        **more: Any,
    ) -> AgentSlice:
        """Run a slice like any agent.

        Raises Unproven if its driver or its session's encryption differs from what `connect` reported.
        """
        answer = super().slice(arm, seconds, **more)
        answer = msgspec.structs.replace(answer, cipher=suites.openssl(answer.cipher))
        if (connected := self.said.get(arm)) is None:
            return answer
        for name in ("driver_version", "encrypted", "protocol", "cipher"):
            now, then = getattr(answer, name), getattr(connected, name)
            if now != then:
                raise Unproven(
                    f"client witness, {arm} arm, under load: {name} is '{now}', but at connect it was '{then}'"
                )
        return answer


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


def plain_version(text: str) -> str:
    """Reduce `5.5.5-10.11.18-MariaDB-deb12` to `10.11.18`. Pure."""
    match = re.match(r"(?:5\.5\.5-)?(\d+(?:\.\d+)*)", text)
    return match[1] if match else text


def config_diff(connect: Mapping[Arm, JdbcConnection]) -> list[str]:
    """List how the driver's settings differ between the arms, without secrets and paths of this machine. Pure."""
    told = {
        arm: dict(line.partition("=")[::2] for line in reveal(each.properties).splitlines())
        for arm, each in connect.items()
    }
    plain, encrypted = told["plain"], told["encrypted"]
    names = [name for name in sorted({*plain, *encrypted}) if plain.get(name) != encrypted.get(name)]
    shown = [
        name
        for name in names
        if not SECRET.search(name) and not re.search("StoreUrl|rootcert|SslCert|sslkey|keyStore$", name, re.IGNORECASE)
    ]
    return [f"{name}: {plain.get(name, 'not set')} | {encrypted.get(name, 'not set')}" for name in shown]
