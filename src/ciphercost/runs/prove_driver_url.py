"""`ciphercost prove --client psycopg 'postgresql://…'`: what does that driver really do with an application's string?"""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from ciphercost import engines
from ciphercost.engines import Engine
from ciphercost.engines._mysql.greeting import greeting
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.engines.postgresql import password_for
from ciphercost.host import run_ownership, supervisor
from ciphercost.host.ports import address_of, is_loopback
from ciphercost.load import drivers, password_command, peer_checks
from ciphercost.load.agent import Agent
from ciphercost.load.connection_string import holds_password, libpq, mysql, option_files
from ciphercost.load.connection_string.keywords import as_url
from ciphercost.load.drivers import Driver
from ciphercost.load.plaintext_guard import (
    CERTIFICATE_REFUSED,
    CERTIFICATE_WANTED,
    refuses_certificate,
    wants_certificate,
)
from ciphercost.model.connection import Connected, Connection, DriverConnection
from ciphercost.model.errors import AgentError, RunError, UsageError
from ciphercost.model.own_tls import OwnTls
from ciphercost.model.proof_row import ProofRow
from ciphercost.model.run_directory import new_id
from ciphercost.model.secret import Secret
from ciphercost.plan.targets import target_of_url
from ciphercost.runs.client_probe import ClientProbe, is_number, judge

DENIED = ("1045", "28P01", "28000")
"""Error codes of a server for a wrong or missing password."""
PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306}
INSTEAD = {"postgresql": libpq.INSTEAD, "mysql": mysql.INSTEAD, "mariadb": mysql.INSTEAD}
_SECRET = re.compile(r"(?i)(?:^|[?&\s])[^=?&\s]*(?:pass(?:word|wd|phrase)?|pwd|secret)=[^&\s]|//[^/@?]*:[^/@?]+@")


class DriverProbe(ClientProbe):
    """Repeats the application's connection by the agent of the driver's language."""

    trusting = "the system"

    def __init__(self, text: str, url: str, driver: Driver, engine: Engine, place: Path) -> None:
        """`text`: as the application has it; `url`: the same as a URL."""
        named = _named(url, engine.name)
        self.engine, self.place = engine, place
        self.host, self.port = named.host, named.port
        self._driver = driver
        self._stack = contextlib.ExitStack()
        self._agent = self._started()
        user = named.user or _user(engine)
        self._connection = DriverConnection(
            driver=driver.name,
            dsn=text,
            user=user,
            password=_password(engine, self.host, self.port, named.database or user, user),
            witness=EncryptsConnections.of(engine).tls_witness,
        )

    def _started(self, environment: dict[str, str] | None = None) -> Agent:
        like = Connection(driver=self.engine.driver)
        argv, env = drivers.language(self._driver.language).process(self._driver, like, self.place)
        return self._stack.enter_context(Agent(argv, log=self.place / "agent.log", env={**env, **(environment or {})}))

    def close(self) -> None:
        self._stack.close()

    def connect(self) -> Connected:
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
            elif _denied(error) and not self._connection.password:
                more = f". No password was given: {TakesUrl.of(self.engine).give_password}"
            raise RunError(f"the application can't connect: {error.words}{more}") from None

    def _login(self) -> Connected:
        try:
            return self._agent.connect("own", self._connection)
        except AgentError as error:
            if not _denied(error) or self._connection.password or not sys.stdin.isatty():
                raise
        password = Secret(getpass.getpass(f"password of {self._connection.user}: "))
        self._connection |= {"password": password}
        return self._agent.connect("own", self._connection)

    def between(self, port: int, host: str = "") -> str:
        return self._reached(self._agent, port, host)

    def with_authorities(self, port: int, ca: Path) -> str:
        return self._reached(self._started({"SSL_CERT_FILE": str(ca), "SSL_CERT_DIR": str(self.place / "none")}), port)

    def _reached(self, agent: Agent, port: int, host: str = "") -> str:
        moved = self._connection | {"port": port, "relayed": not is_loopback(self.target)}
        if is_number(self.host):
            moved |= {"host": host or "127.0.0.1"}
        else:  # the other name is one, too: mysql2 checks no addresses
            moved |= {"host": peer_checks.STRANGER if host else self.host, "address": host or "127.0.0.1"}
        try:
            agent.connect("between", moved)
        except AgentError as error:
            return str(error) or error.code
        return ""

    def query_between(self, sql: str) -> list[list[str | None]]:
        return self._agent.query("between", sql)


def examine(text: str, client: str, own_tls: OwnTls, row: ProofRow | None = None) -> tuple[bool, str]:
    """(encrypted and verified, text to print) of the server that an application's string names. `row`: takes the facts.

    Raises CiphercostError if it can't connect or the driver rejects the string.
    """
    url = as_url(text)
    name = target_of_url(url).partition(":")[0]
    driver = drivers.find(client, name)
    if _SECRET.search(text):
        raise holds_password(INSTEAD[name])
    if own_tls.options:
        option, value = next(iter(own_tls.options.items()))
        raise UsageError(
            f"{option} {value}: the string decides what {driver.name} does; write it there, in the driver's own words"
        )
    named = _named(url, name)
    engine = engines.get(_answering(name, named.host, named.port))
    drivers.language(driver.language).fetch(driver)
    with supervisor.Supervisor(new_id()) as run_supervisor, supervisor.temporary(run_supervisor, "prove") as place:
        run_ownership.hand_over(place)
        probe = DriverProbe(text, url, driver, engine, place)
        try:
            return judge(probe, driver.title, row)
        finally:
            probe.close()


def _denied(error: AgentError) -> bool:
    """Whether a login failed for a wrong or missing password, by the server's code or libpq's text. Pure."""
    return error.code.startswith(DENIED) or "no password supplied" in str(error)


class _Named(NamedTuple):
    """What a string names."""

    host: str
    port: int
    user: str
    database: str


def _named(url: str, engine: str) -> _Named:
    """Raises UsageError for a string whose host the checks could not replace."""
    one = UsageError(
        "with --client the string must name one host, which the checks replace: write SCHEME://HOST:PORT/DATABASE?…, without hostaddr, "
        "service and socket"
    )
    try:
        parts = urlsplit(url)
        words = dict(parse_qsl(parts.query))
        host = parts.hostname or words.get("host", "localhost")
        port = parts.port or int(words.get("port", PORTS[engine]))
    except ValueError:
        raise one from None
    if re.search("[,/]", host) or {"hostaddr", "service", "socket", "unix_socket"} & words.keys():
        raise one
    user, database = unquote(parts.username or ""), unquote(parts.path.removeprefix("/"))
    return _Named(host, port, user or words.get("user", ""), database or words.get("dbname", ""))


def _answering(name: str, host: str, port: int) -> str:
    """The engine that answers: drivers of MySQL and MariaDB connect to both."""
    if engines.get(name).driver != "mysql":
        return name
    answer = greeting(address_of(host, port), port)
    return name if not answer.version else "mariadb" if answer.mariadb else "mysql"


def _user(engine: Engine) -> str:
    if engine.driver == "postgres":
        return os.environ.get("PGUSER", "") or getpass.getuser()
    return option_files.read(engine.name).get("user", ("", ""))[0] or getpass.getuser()


def _password(engine: Engine, host: str, port: int, database: str, user: str) -> Secret | None:
    if by_command := password_command.found():
        return by_command
    if engine.driver == "postgres":
        return password_for(host, port, database, user)
    return mysql.password_found(engine.name)
