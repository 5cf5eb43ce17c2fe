"""`ciphercost prove jdbc:…`: is an application's connection encrypted and the server verified, and with what? No load.

The driver gets only the options that the application gives it. Four checks follow: the server reports on the session, a
relay captures the bytes, an impostor presents another certificate and goes on to the login, and the real server is addressed by
another name. The last three replace host and port in the URL.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import sys
from functools import partial
from pathlib import Path

import msgspec

from ciphercost import engines
from ciphercost.engines import Engine, firebird
from ciphercost.engines._mysql.greeting import greeting
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.engines.postgresql import password_for
from ciphercost.host import client_identity, run_ownership, supervisor
from ciphercost.host.client_identity import ClientIdentity
from ciphercost.host.ports import address_of, is_loopback
from ciphercost.load import password_command
from ciphercost.load.agent import Agent
from ciphercost.load.connection_string import jdbc, option_files
from ciphercost.load.connection_string.jdbc import PORTS, SCHEMES
from ciphercost.load.connection_string.mysql import password_found
from ciphercost.load.jdbc import java, key_stores, options
from ciphercost.load.jdbc.drivers import STORE_PASSWORD, TITLES, Driver, trust_store
from ciphercost.load.jdbc.key_stores import KEY_STORES
from ciphercost.load.plaintext_guard import (
    CERTIFICATE_REFUSED,
    CERTIFICATE_WANTED,
    refuses_certificate,
    wants_certificate,
)
from ciphercost.model.connection import Connected, JdbcConnection
from ciphercost.model.errors import AgentError, RunError, UsageError
from ciphercost.model.own_tls import NONE, OwnTls
from ciphercost.model.proof_row import ProofRow
from ciphercost.model.run_directory import new_id
from ciphercost.model.secret import Secret
from ciphercost.model.spec import CellSpec
from ciphercost.plan import connection_strings
from ciphercost.runs import prove_servers
from ciphercost.runs.client_probe import ClientProbe, is_number, judge
from ciphercost.runs.prove_servers import NamedServer

DENIED = ("1045", "28P01", "28000")
"""Error codes of a server for a wrong or missing password."""
_PLACE = re.compile(r"//(?:[^/@?]*@)?(?P<place>(?P<host>\[[0-9a-fA-F:]+\]|[\w.-]+)(?::(?P<port>\d+))?)(?=[/?;]|$)")
_USER = re.compile(r"(?:[?&;](?:user|userName)=([^&;]*))|//([^/:@?]+)@")
_SECRET = re.compile(
    r"(?i)[?&;,(](?!trust)[^=?&;]*(?:pass(?:word|wd|phrase)|pwd|secret|dbcryptconfig)[^=?&;]*=[^&;)]|//[^/@?]*:[^/@?]+@"
)
"""The password of a trust store is no secret: it protects public certificates."""


_OWN_KEY = re.compile(r"(?i)[?&;,(](sslkey|sslcert|clientCertificateKeyStoreUrl|keyStore)=")


class Address(msgspec.Struct, frozen=True):
    """The parts of a URL that the relay replaces. `host` is empty if it can't be parsed: several hosts, or another form."""

    url: str
    engine: str
    host: str = ""
    port: int = 0

    def moved(self, port: int, host: str = "") -> str:
        """The same URL with another port, and another host if given. Pure."""
        match = _PLACE.search(self.url)
        assert match is not None
        begin, end = match.span("place")
        return f"{self.url[:begin]}{host or match['host']}:{port}{self.url[end:]}"


def read(url: str) -> Address:
    """Parse a JDBC URL of one host. Raises UsageError for an unknown database. Pure."""
    engine = SCHEMES[url.split(":")[1].lower()]
    place = _PLACE.search(url)
    if place is None:
        return Address(url, engine)
    return Address(url, engine, place["host"].strip("[]"), int(place["port"] or PORTS[engine]))


def refuse_password(url: str) -> None:
    """Raises UsageError for a password in a JDBC URL. Pure."""
    if _SECRET.search(url):
        engine = SCHEMES.get(url.partition(":")[2].partition(":")[0].lower(), "")
        where = f"set {TakesUrl.of(engines.get(engine)).password_from}" if engine else "set it in the environment"
        raise UsageError(
            "the URL contains a password, and every user of this machine can read command lines; remove it from the URL and "
            f"{where}"
        )


class Probe(ClientProbe):
    """Repeats the application's connection by its JDBC driver."""

    trusting = "Java"

    def __init__(
        self, address: Address, engine: Engine, driver: Driver, place: Path, identity: ClientIdentity | None = None
    ) -> None:
        self.address = address
        self.host, self.port = address.host, address.port
        self.engine = engine
        self.place = place
        self._log = place / "agent.log"
        self._stack = contextlib.ExitStack()
        self._agent = self._stack.enter_context(java.agent(log=self._log))
        match = _USER.search(address.url)
        user = next(filter(None, match.groups()), "") if match else _user(address)
        self._connection = JdbcConnection(
            driver="jdbc",
            url=address.url,
            jars=":".join(map(str, driver.jars())),
            witness=EncryptsConnections.of(engine).tls_witness,
            user=user,
            driver_class=driver.driver_class or None,
            properties=_own_properties(driver, address.url, place, identity),
            password=_password(address, user) or None,
        )
        loopback = _is_loopback(address)
        self._own_name = bool(address.host) and (loopback or not is_number(address.host))
        """Whether the driver can reach the relay under the server's own name."""
        self._hosts: list[str] = []
        """An option of the virtual machine by which the server's name is this machine's."""
        self._between = self._agent
        if address.host and not loopback and self._own_name:
            hosts = place / "hosts"
            hosts.write_text(f"127.0.0.1 {address.host}\n")
            self._hosts = [f"-Djdk.net.hosts.file={hosts}"]
            self._between = self._stack.enter_context(java.agent(self._hosts, log=self._log))

    def close(self) -> None:
        self._stack.close()

    def connect(self) -> Connected:
        """Connect as the application does. Raises UsageError if the driver rejects the URL, RunError with the driver's reason."""
        try:
            return self._login()
        except AgentError as error:
            if error.code == "driver":
                raise UsageError(str(error)) from None
            more = ""
            if wants_certificate(str(error)):
                more = f". {CERTIFICATE_WANTED}"
            elif refuses_certificate(str(error)):
                more = f". {CERTIFICATE_REFUSED}"
            elif error.code.startswith(DENIED) and not self._connection.password:
                more = f". No password was given: {TakesUrl.of(self.engine).give_password}"
            raise RunError(f"the application can't connect: {error.words}{more}") from None

    def _login(self) -> Connected:
        try:
            return self._agent.connect("own", self._connection)
        except AgentError as error:
            if not error.code.startswith(DENIED) or self._connection.password or not sys.stdin.isatty():
                raise
        password = Secret(getpass.getpass(f"password of {self._connection.user}: "))
        self._connection |= {"password": password}
        return self._agent.connect("own", self._connection)

    def between(self, port: int, host: str = "") -> str:
        """Connect to this port of 127.0.0.1, or of `host` by that name. Returns the reason for a failure, or ""."""
        return self._reached(self._agent if host else self._between, port, host)

    def with_authorities(self, port: int, ca: Path) -> str:
        store = trust_store(ca, self.place / "authorities.p12")
        with java.agent([*self._hosts, *java.trusting(store, STORE_PASSWORD)], log=self._log) as agent:
            return self._reached(agent, port)

    def _reached(self, agent: Agent, port: int, host: str = "") -> str:
        shown = host or ("" if self._own_name else "127.0.0.1")
        relayed = bool(self.address.host) and not is_loopback(self.target)
        moved = self._connection | {"url": self.address.moved(port, shown), "relayed": relayed}
        try:
            agent.connect("between", moved)
        except AgentError as error:
            return str(error) or error.code
        return ""

    def query_between(self, sql: str) -> list[list[str | None]]:
        return self._between.query("between", sql)


def _own_properties(driver: Driver, url: str, place: Path, identity: ClientIdentity | None) -> Secret | None:
    """The driver's properties for the client's certificate, or for the passphrase of the key store that the URL names."""
    if identity is None:
        passphrase = (
            client_identity.passphrase_found() if driver.family in KEY_STORES and _OWN_KEY.search(url) else None
        )
        return Secret(f"{KEY_STORES[driver.family].password}={passphrase.reveal()}") if passphrase else None
    store, password = place / "own.p12", client_identity.store_password()
    properties = key_stores.properties(driver.family, TITLES[driver.family], str(store), password)
    store.touch(0o600)
    store.write_bytes(identity.store(password))
    return Secret("\n".join(f"{name}={value}" for name, value in properties.items()))


def examine(
    url: str, jars: str = "", client: str = "", own_tls: OwnTls = NONE, row: ProofRow | None = None
) -> tuple[bool, str]:
    """(every server encrypted and verified, text to print). A URL that names several servers is examined once for each.
    `row`: takes the facts of a URL that names one server.

    Raises CiphercostError if it can't connect or the driver rejects the URL.
    """
    refuse_password(url)
    if own_tls.options and (there := _OWN_KEY.search(url)):
        option, value = next(iter(own_tls.options.items()))
        raise UsageError(f"{option} {value}: the URL names another key ({there[1]}); remove one of them")
    identity = connection_strings.identity(own_tls, None)
    every = jdbc.singles(url)
    outcomes = prove_servers.examine_each(
        [
            NamedServer(server.place, server.url, partial(_examine_one, server.url, jars, client, identity))
            for server in every
        ],
        row,
    )
    lines = []
    for number, (server, (_, text)) in enumerate(zip(every, outcomes, strict=True), start=1):
        title = f"{server.place} ({number} of the {len(every)} servers that the URL names), with the URL's properties\n"
        if len(every) == 1:
            title = f"{server.place}, with the URL's properties\n" if server.url != url else ""
        lines.append(f"{title}{text}")
    return all(proven for proven, _ in outcomes), "\n".join(lines)


def _examine_one(url: str, jars: str, client: str, identity: ClientIdentity | None, row: ProofRow) -> tuple[bool, str]:
    """The same for one server."""
    address = read(url)
    cell = CellSpec(address.engine, "tls", client=client or options.WORD, driver=jars)
    driver = options.driver_of(cell)
    options.check_java(driver)
    engine = engines.get(_engine(address))
    with supervisor.Supervisor(new_id()) as run_supervisor, supervisor.temporary(run_supervisor, "prove") as place:
        run_ownership.hand_over(place)
        probe = Probe(address, engine, driver, place, identity)
        try:
            return judge(probe, driver.title, row)
        finally:
            probe.close()


def _engine(address: Address) -> str:
    """The engine that answers: drivers of MySQL and MariaDB connect to both."""
    if engines.get(address.engine).driver != "mysql" or not address.host:
        return address.engine
    answer = greeting(address_of(address.host, address.port), address.port)
    return address.engine if not answer.version else "mariadb" if answer.mariadb else "mysql"


def _user(address: Address) -> str:
    variable = {"postgresql": "PGUSER", "firebird": "ISC_USER"}.get(address.engine, "")
    user = os.environ.get(variable, "") if variable else option_files.read(address.engine).get("user", ("", ""))[0]
    return user or getpass.getuser()


def _password(address: Address, user: str) -> Secret | None:
    if by_command := password_command.found():
        return by_command
    if address.engine == "postgresql":
        database = re.search(r"//[^/]*/([^?;]*)", address.url)
        return password_for(address.host, address.port, database[1] if database else user, user)
    return firebird.password_found() if address.engine == "firebird" else password_found(address.engine)


def _is_loopback(address: Address) -> bool:
    """Whether the server's host name resolves to 127.0.0.1."""
    return bool(address.host) and address_of(address.host, address.port) == "127.0.0.1"
