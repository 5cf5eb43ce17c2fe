"""Shared by key-value stores that you already run: plain and TLS are two ports, so two URLs name one server. Not an engine."""

from __future__ import annotations

import contextlib
import socket
import ssl
from types import ModuleType
from typing import NamedTuple

import msgspec

from ciphercost.engines import _network
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host.deadlines import receive
from ciphercost.host.ports import address_of, is_loopback, listener
from ciphercost.load.connection_string import ConnectionString, memcached, redis
from ciphercost.load.passwords import with_password
from ciphercost.model.connection import Changes, Connection
from ciphercost.model.errors import UsageError
from ciphercost.model.secret import Secret

SECONDS = 5.0
REFUSED = b"CLIENT_ERROR"
"""How memcached's answer begins to a command before the login that it wants."""
NO_CLEAR = (
    "Plain and TLS are two ports of this server, and only the one with TLS was named: so there is no unencrypted control. To check "
    "that one too, name both: ciphercost prove {other} {url}"
)
IN_CLEAR = (
    "An unencrypted login would send the password readably over the network, which ciphercost never does: so there is no unencrypted "
    "arm. Run ciphercost on the server's own machine, or use the default user without a password"
)


NO_PASSWORD = Secret("")


def strings_of(engine: str) -> ModuleType:
    """The module that reads URLs of this engine: `redis` or `memcached`. Pure."""
    return memcached if engine == memcached.CLEAR else redis


class Pair(NamedTuple):
    """What `--url` names: one server by one or two ports."""

    plain: ConnectionString | None
    encrypted: ConnectionString | None

    @property
    def either(self) -> ConnectionString:
        """The encrypted one, if it is named."""
        named = self.encrypted or self.plain
        assert named is not None
        return named


def pair(engine: str, url: str) -> Pair:
    """Read one or two URLs of this engine, separated by a space. Raises UsageError."""
    by_tls: dict[bool, ConnectionString] = {}
    strings = strings_of(engine)
    for one_url in url.split():
        tls = strings.encrypts(one_url)
        asked = strings.read(one_url)
        if tls in by_tls:
            scheme = one_url.partition("://")[0].lower().removesuffix("s")
            raise UsageError(
                f"--url: two URLs {'with' if tls else 'without'} TLS; give one with {scheme}:// and one with {scheme}s://"
            )
        by_tls[tls] = asked
    if not by_tls:
        raise UsageError("--url is empty; give --url redis://HOST:PORT --url rediss://HOST:PORT")
    both = Pair(by_tls.get(False), by_tls.get(True))
    if both.plain and both.encrypted and both.plain.user != both.encrypted.user:
        raise UsageError(
            f"--url: the URLs name two users, {both.plain.user} and {both.encrypted.user}; both arms log in as the same one"
        )
    return both


def _other(engine: str, url: str) -> str:
    """The URL that goes with one of the two. Pure."""
    scheme = url.partition("://")[0].lower()
    return f"{scheme.removesuffix('s') if strings_of(engine).encrypts(url) else f'{scheme}s'}://HOST:PORT"


class RunningStore(_network.RunningServer):
    """A key-value store that you already run."""

    driver = "resp"
    no_password: Secret | None = NO_PASSWORD
    """What is sent where no password was found, so that a server that wants one says so; None: nothing."""

    def __init__(self, engine: str, url: str, programs: tuple[str, ...]) -> None:
        self._engine = engine
        self._both = pair(engine, url)
        super().__init__(self._both.plain or self._both.either, programs)
        self.asked = self._both.either
        self.ca = self.asked.ca
        self._places = [(self.address, self.port)]
        if encrypted := self._both.encrypted:
            (place,) = encrypted.places
            address = address_of(place.host, place.port)
            self._places.append((address, place.port))
            other: Changes = {"host": address, "port": place.port}
            if self.no_password is not None and not self.connection().password:
                other["password"] = self.no_password
            if address != place.host:
                other["tls_server_name"] = place.host
            self.other_ports = {"tls": other}
            # Two processes are two servers, whose CPU time can't be attributed.
            if listener(address, place.port, programs) != self.pid:
                self.pid, self.library, self.standing = 0, "", None
        if self._both.plain is None:
            self.no_plain_arm = NO_CLEAR.format(other=_other(engine, url), url=url)
        elif self.connection().password is not None and not is_loopback(self.address):
            self.no_plain_arm = IN_CLEAR

    def password(self) -> Secret | None:
        password: Secret | None = strings_of(self._engine).password_found(self._engine)
        return password

    def connection(self) -> Connection:
        # The name is that of the port with TLS alone, in `other_ports`.
        connection = super().connection() | {"database": None, "tls_server_name": None}
        for address, port in self._places:  # a typed password is known by the place at which it was asked for
            if connection.password is None:
                known = with_password(connection | {"host": address, "port": port}, None)
                connection |= {"password": known.password}
        if connection.password is None and self.user != redis.DEFAULT_USER:
            # Without a login the server would take any user's connection for that of its default user.
            connection |= {"password": self.no_password}
        return connection


class RunningMemcached(RunningStore):
    """A memcached that you already run.

    One without logins would take the agent's login for a value, and keep user and password as that of the key `login`. So the server is
    asked first whether it wants one.
    """

    driver = "memcached"
    no_password = None
    _wants_login: bool | None = None

    @property
    def wants_login(self) -> bool:
        """Whether a server there refuses a command before a login. One that can't be asked counts as one that does not."""
        if self._wants_login is None:
            refused = _refuses_strangers(*self._places[-1], tls=True) if self._both.encrypted else None
            if refused is None and self._both.plain:
                refused = _refuses_strangers(*self._places[0], tls=False)
            self._wants_login = bool(refused)
        return self._wants_login

    def connection(self) -> Connection:
        connection = super().connection()
        return connection if connection.password is None or self.wants_login else connection | {"password": None}


def _refuses_strangers(address: str, port: int, *, tls: bool) -> bool | None:
    """Whether a memcached there refuses a command before a login; None: it did not answer. Nothing secret is sent, so nobody is verified."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        contextlib.suppress(OSError),
        socket.create_connection((address, port), timeout=SECONDS) as connection,
        context.wrap_socket(connection) if tls else contextlib.nullcontext(connection) as asked,
    ):
        asked.sendall(b"version\r\n")
        return receive(asked, len(REFUSED), SECONDS) == REFUSED
    return None


class TakesStoreUrl(TakesUrl):
    """A key-value store that may be one you already run."""

    urls = 2
    refuses_anonymous = "invalid username-password pair"

    def connection_string(self, url: str) -> ConnectionString | None:
        both = pair(self.name, url)
        notes = tuple(dict.fromkeys(note for string in both if string for note in string.notes))
        return msgspec.structs.replace(both.either, urls=(url,), notes=notes)

    def check_pair(self, url: str) -> None:
        if None in pair(self.name, url):
            given = [
                f"--url {address}"
                for address in sorted((url, _other(self.name, url)), key=strings_of(self.name).encrypts)
            ]
            raise UsageError(
                f"--url {_other(self.name, url)} is missing: plain and TLS are two ports of this server, and a run compares both, so give both: "
                f"{' '.join(given)}; `ciphercost prove` and --versus need one"
            )

    def offers_tls(self, address: str, port: int) -> bool | None:
        """A port either has TLS or has not, so this one says nothing about others."""
        with socket.create_connection((address, port), timeout=5):
            return None

    def hint(self, code: str, text: str = "") -> str:
        if code == "NOPERM":
            return "The user lacks the right to one of these commands or keys: see `ciphercost list grants`"
        if self.refuses_anonymous in text or code in ("WRONGPASS", "NOAUTH") or "authentication failure" in text:
            if not strings_of(self.name).password_found(self.name):
                return f"No password was found: {self.give_password}, or type it on a terminal"
            return f"Does --url name the user, and does {self.password_from} hold the password?"
        return super().hint(code, text)
