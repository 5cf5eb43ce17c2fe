"""logins: a man in the middle that goes on to the login: what each client does with each of his ways, and what `prove` says then.

`make middle` prints both.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from ciphercost import engines
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host.impostor import CONVERSATIONS, Impostor, Speech
from ciphercost.host.impostor.conversation import Did, Way
from ciphercost.load.agent import Agent
from ciphercost.load.jdbc import drivers, java
from ciphercost.model.connection import ChannelBinding, Connection, JdbcConnection, Pool, TlsMode
from ciphercost.model.errors import AgentError
from ciphercost.model.secret import Secret, reveal
from ciphercost.model.spec import CellSpec
from ciphercost.runs import prove, prove_jdbc_url
from mysql_servers import server_copies
from userservers import user_server

SPEECHES: dict[str, Speech] = {"postgresql": "postgres", "mariadb": "mysql"}
PASSWORDLESS = "passwordless"
NOT = "NOT VERIFIED: anyone on the path"
BOUND = "VERIFIED (channel binding"
BY_PASSWORD = "VERIFIED (by the password"


VERDICT = re.compile(r"(UNENCRYPTED|ENCRYPTED|NOT PROVEN).*?(?= That is this|$)")
"""In what `prove` prints."""


class Login(NamedTuple):
    """A client, what it does with an impostor in each way (in the order of the protocol's ways), and what `prove` says."""

    server: str
    client: str
    did: tuple[Did, ...]
    proven: bool
    says: str
    asks: str = ""
    """Of a JDBC driver: properties in its URL. Of the Rust agent: its field `tls`, and factors behind it."""
    user: str = ""
    """An account of the server other than the usual one."""

    def __str__(self) -> str:
        return "-".join(filter(None, (self.server, self.client, self.asks.replace("&", ","), self.user)))

    @property
    def logs_in(self) -> bool:
        """Whether it logs in to the server itself."""
        return self.did[0] != "refused"

    @property
    def factors(self) -> dict[str, str]:
        """What the Rust agent is asked beside `tls`."""
        more = "" if self.jdbc else self.asks.partition("&")[2]
        return dict(part.split("=") for part in more.split("&") if part)

    @property
    def jdbc(self) -> bool:
        return self.client.startswith("jdbc")


LOGINS = [
    Login("postgresql", "jdbc", ("ended",) * 5, True, BOUND, "sslmode=require&channelBinding=require"),
    Login("postgresql", "jdbc", ("ended",) * 5, True, BOUND, "sslmode=prefer&channelBinding=require"),
    Login(
        "postgresql", "jdbc", ("ended", "statement", "statement", "password", "ended"), False, NOT,
        "sslmode=require&channelBinding=prefer",
    ),
    Login(
        "postgresql", "jdbc", ("ended", "statement", "ended", "ended", "ended"), False, NOT,
        "sslmode=require&channelBinding=prefer&requireAuth=scram-sha-256",
    ),
    Login(
        "postgresql", "jdbc", ("statement", "statement", "statement", "password", "ended"), False, NOT,
        "sslmode=require&channelBinding=disable",
    ),
    Login(
        "postgresql", "rust", ("statement", "statement", "statement", "password", "ended"), True,
        "but the server's identity was not verified", "require",
    ),
    Login(
        "postgresql", "rust", ("ended",) * 5, True, "peer verified by channel binding",
        "require&channel-binding=require",
    ),
    Login("mariadb", "jdbc:4.0", ("ended",) * 6, True, BY_PASSWORD),
    Login("mariadb", "jdbc:3.5", ("ended",) * 6, True, BY_PASSWORD, "sslMode=verify-full"),
    # It refuses these, but not a certificate of an authority that Java trusts, whatever its name.
    Login("mariadb", "jdbc:4.0", ("ended",) * 6, False, NOT, "sslMode=verify-ca"),
    Login(
        "mariadb", "jdbc:4.0", ("statement", "statement", "password", "password", "password", "ended"), False, NOT,
        "sslMode=trust",
    ),
    Login(
        "mariadb", "jdbc:4.0", ("statement", "statement", "password", "password", "password", "ended"), False, NOT,
        "sslMode=trust", PASSWORDLESS,
    ),
    Login("mariadb", "rust", ("ended",) * 6, True, "peer verified by the password", "verify-full"),
    Login("mariadb", "rust", ("ended",) * 6, True, "peer verified by the password", "verify-full", "of_ed25519"),
    Login("mariadb", "rust", ("ended",) * 6, True, "peer verified by the password", "verify-full", "of_parsec"),
    Login(
        "mariadb", "rust", (*("refused",) * 5, "ended"), False, "has no password by which the server could prove it",
        "verify-full", PASSWORDLESS,
    ),
    Login(
        "mariadb", "rust", ("statement", "statement", "password", "password", "ended", "ended"), True,
        "but the server's identity was not verified", "require",
    ),
]  # fmt: skip
ACCOUNTS = {
    PASSWORDLESS: ("", "IDENTIFIED BY ''"),
    "of_ed25519": ("secret", "IDENTIFIED VIA ed25519 USING PASSWORD('secret')"),
    "of_parsec": ("secret", "IDENTIFIED VIA parsec USING PASSWORD('secret')"),
}
"""MariaDB's accounts, by name: password and how they log in."""


class Running:
    """The servers, each started once, and one agent of each kind."""

    def __init__(self, place: Path, stack: contextlib.ExitStack) -> None:
        self._place = place
        self._stack = stack
        self._fields: dict[str, Connection] = {}
        self._agents: dict[bool, Agent] = {}

    def fields(self, server: str) -> Connection:
        """The fields of `connect` of a running server."""
        if server not in self._fields:
            start = {"postgresql": self._postgresql, "mariadb": self._mariadb}[server]
            self._fields[server] = start()
        return self._fields[server]

    def _postgresql(self) -> Connection:
        return self._stack.enter_context(user_server("postgresql", self._place)).fields

    def _mariadb(self) -> Connection:
        """One with the certificate that it makes itself."""
        copies = self._stack.enter_context(server_copies(engines.get("mariadb").find("11.8"), self._place))
        fields = self._stack.enter_context(copies.started({"ssl": "1"})).connection()
        agent = self._agent(jdbc=False)
        agent.connect("own", fields)
        agent.query("own", "INSTALL SONAME 'auth_ed25519'")
        agent.query("own", "INSTALL SONAME 'auth_parsec'")
        for name, (_, how) in ACCOUNTS.items():
            agent.query("own", f"CREATE USER {name}@'127.%' {how}")
            agent.query("own", f"GRANT ALL ON *.* TO {name}@'127.%'")
        return fields

    def _agent(self, *, jdbc: bool) -> Agent:
        if jdbc not in self._agents:
            self._agents[jdbc] = self._stack.enter_context(java.agent() if jdbc else Agent())
        return self._agents[jdbc]

    def account(self, login: Login) -> tuple[str, str]:
        """User and password."""
        fields = self.fields(login.server)
        if login.user:
            return login.user, ACCOUNTS[login.user][0]
        return str(fields.user), reveal(fields.password)

    def url(self, login: Login, port: int) -> str:
        user, _ = self.account(login)
        asks = f"&{login.asks}" if login.asks else ""
        return f"jdbc:{login.server}://localhost:{port}/{self.fields(login.server).database}?user={user}{asks}"

    def log_in(self, login: Login, port: int) -> None:
        """Log in there and send a statement. Raises AgentError."""
        user, password = self.account(login)
        agent, arm = self._agent(jdbc=login.jdbc), "tried"
        if login.jdbc:
            engine = engines.get(login.server)
            jars = drivers.find(login.client.partition(":")[2], login.server).jars()
            connection: Pool = JdbcConnection(
                driver="jdbc", jars=":".join(map(str, jars)), url=self.url(login, port), user=user,
                witness=EncryptsConnections.of(engine).tls_witness, password=Secret(password) if password else None,
            )  # fmt: skip
        else:
            tls = msgspec.convert(login.asks.partition("&")[0], TlsMode)
            fields = self.fields(login.server) | {"user": user, "port": port, "tls": tls}
            if binding := login.factors.get("channel-binding"):
                fields |= {"channel_binding": msgspec.convert(binding, ChannelBinding)}
            connection = fields | {"password": Secret(password) if password else None}
        agent.connect(arm, connection)
        agent.query(arm, "SELECT 1")

    def met(self, login: Login, way: Way) -> Did:
        """What the client does with an impostor in this way."""
        place = self._place / "impostor"
        port = self.fields(login.server).port
        with (
            Impostor(SPEECHES[login.server], "127.0.0.1", port, place, certificate="rsa2048", way=way) as impostor,
            contextlib.suppress(AgentError),
        ):
            self.log_in(login, impostor.port)
        # A client that prefers TLS tries again without it.
        return next((did for did in impostor.met if did != "ended"), "ended")

    def examined(self, login: Login) -> tuple[bool, str]:
        """What `prove` says of the client's connection to the server itself."""
        fields = self.fields(login.server)
        user, password = self.account(login)
        variable = TakesUrl.of(engines.get(login.server)).password_from
        with environment({variable: password}):
            if login.jdbc:
                return prove_jdbc_url.examine(self.url(login, fields.port), client=login.client)
            verify = {"verify": "require"} if login.asks.startswith("require") else {}
            url = f"{login.server}://{user}@localhost:{fields.port}/{fields.database}"
            return prove.examine(CellSpec(login.server, "tls", url=url, factors=verify | login.factors))


@contextlib.contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """These variables in the environment; an empty one is absent."""
    before = {name: os.environ.pop(name, None) for name in values}
    os.environ.update({name: value for name, value in values.items() if value})
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def ways(login: Login) -> tuple[Way, ...]:
    return CONVERSATIONS[SPEECHES[login.server]].ways


def main(servers: Collection[str], clients: Collection[str]) -> int:
    """Print what each of these clients does and what `prove` says, with `!` before what differs from what is expected. Returns the
    number of those.
    """
    wrong = 0
    with (
        tempfile.TemporaryDirectory(prefix="ciphercost-middle-", dir="/var/tmp") as place,
        contextlib.ExitStack() as stack,
    ):
        Path(place).chmod(0o711)
        running = Running(Path(place), stack)
        for login in LOGINS:
            if login.server not in servers or login.client.partition(":")[0] not in clients:
                continue
            did = tuple(running.met(login, way) for way in ways(login))
            proven, text = running.examined(login)
            as_expected = did == login.did and proven == login.proven and login.says in " ".join(text.split())
            wrong += not as_expected
            print(f"{'' if as_expected else '! '}{login}")
            print("    " + ", ".join(f"{way}: {what}" for way, what in zip(ways(login), did, strict=True)))
            verdict = VERDICT.search(" ".join(text.split()))
            print(f"    prove: exit {0 if proven else 1}: {verdict[0] if verdict else text}", flush=True)
    return wrong
