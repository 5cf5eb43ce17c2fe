"""Shared by key-value stores that you already run: plain and TLS are two ports, so two URLs name one server. Not an engine."""

from __future__ import annotations

import socket
from typing import NamedTuple

import msgspec

from ciphercost.engines import _network
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host.ports import address_of, is_loopback, listener
from ciphercost.load.connection_string import ConnectionString, redis
from ciphercost.load.passwords import with_password
from ciphercost.model.connection import Changes, Connection
from ciphercost.model.errors import UsageError
from ciphercost.model.secret import Secret

NO_CLEAR = (
    "Plain and TLS are two ports of this server, and only the one with TLS was named: so there is no unencrypted control. To check "
    "that one too, name both: ciphercost prove {other} {url}"
)
IN_CLEAR = (
    "An unencrypted login would send the password readably over the network, which ciphercost never does: so there is no unencrypted "
    "arm. Run ciphercost on the server's own machine, or use the default user without a password"
)


NO_PASSWORD = Secret("")


class Pair(NamedTuple):
    """What `--url` names: one server by one or two ports."""

    plain: ConnectionString | None
    encrypted: ConnectionString | None

    @property
    def either(self) -> ConnectionString:
        """The encrypted one, if it is named."""
        found = self.encrypted or self.plain
        assert found is not None
        return found


def pair(url: str) -> Pair:
    """Read one or two URLs, separated by a space. Raises UsageError."""
    found: dict[bool, ConnectionString] = {}
    for each in url.split():
        tls = redis.encrypts(each)
        asked = redis.read(each)
        if tls in found:
            raise UsageError(
                f"--url: two URLs {'with' if tls else 'without'} TLS; give one with redis:// and one with rediss://"
            )
        found[tls] = asked
    if not found:
        raise UsageError("--url is empty; give --url redis://HOST:PORT --url rediss://HOST:PORT")
    both = Pair(found.get(False), found.get(True))
    if both.plain and both.encrypted and both.plain.user != both.encrypted.user:
        raise UsageError(
            f"--url: the URLs name two users, {both.plain.user} and {both.encrypted.user}; both arms log in as the same one"
        )
    return both


def _other(url: str) -> str:
    """The URL that goes with one of the two. Pure."""
    scheme = url.partition("://")[0].lower()
    return f"{scheme.removesuffix('s') if redis.encrypts(url) else f'{scheme}s'}://HOST:PORT"


class RunningStore(_network.RunningServer):
    """A key-value store that you already run."""

    driver = "resp"

    def __init__(self, engine: str, url: str, programs: tuple[str, ...]) -> None:
        self._engine = engine
        self._both = pair(url)
        super().__init__(self._both.plain or self._both.either, programs)
        self.asked = self._both.either
        self.ca = self.asked.ca
        self._places = [(self.address, self.port)]
        if encrypted := self._both.encrypted:
            (place,) = encrypted.places
            address = address_of(place.host, place.port)
            self._places.append((address, place.port))
            other: Changes = {"host": address, "port": place.port}
            if not self.connection().password:
                other["password"] = NO_PASSWORD  # so that a server that wants one says so
            if address != place.host:
                other["tls_server_name"] = place.host
            self.other_ports = {"tls": other}
            # Two processes are two servers, whose CPU time can't be attributed.
            if listener(address, place.port, programs) != self.pid:
                self.pid, self.library, self.standing = 0, "", None
        if self._both.plain is None:
            self.no_plain_arm = NO_CLEAR.format(other=_other(url), url=url)
        elif self.connection().password is not None and not is_loopback(self.address):
            self.no_plain_arm = IN_CLEAR

    def password(self) -> Secret | None:
        return redis.password_found(self._engine)

    def connection(self) -> Connection:
        # The name is that of the port with TLS alone, in `other_ports`.
        connection = super().connection() | {"database": None, "tls_server_name": None}
        for address, port in self._places:  # a typed password is known by the place at which it was asked for
            if connection.password is None:
                known = with_password(connection | {"host": address, "port": port}, None)
                connection |= {"password": known.password}
        if connection.password is None and self.user != redis.DEFAULT_USER:
            # Without a login the server would take any user's connection for that of its default user.
            connection |= {"password": NO_PASSWORD}
        return connection


class TakesStoreUrl(TakesUrl):
    """A key-value store that may be one you already run."""

    urls = 2
    refuses_anonymous = "invalid username-password pair"

    def connection_string(self, url: str) -> ConnectionString | None:
        both = pair(url)
        notes = tuple(dict.fromkeys(note for each in both if each for note in each.notes))
        return msgspec.structs.replace(both.either, urls=(url,), notes=notes)

    def check_pair(self, url: str) -> None:
        if None in pair(url):
            given = [f"--url {each}" for each in sorted((url, _other(url)), key=redis.encrypts)]
            raise UsageError(
                f"--url {_other(url)} is missing: plain and TLS are two ports of this server, and a run compares both, so give both: "
                f"{' '.join(given)}; `ciphercost prove` and --versus need one"
            )

    def offers_tls(self, address: str, port: int) -> bool | None:
        """A port either has TLS or has not, so this one says nothing about others."""
        with socket.create_connection((address, port), timeout=5):
            return None

    def hint(self, code: str, text: str = "") -> str:
        if code == "NOPERM":
            return "The user lacks the right to one of these commands or keys: see `ciphercost list grants`"
        if self.refuses_anonymous in text or code in ("WRONGPASS", "NOAUTH"):
            if not redis.password_found(self.name):
                return f"No password was found: {self.give_password}, or type it on a terminal"
            return f"Does --url name the user, and does {self.password_from} hold the password?"
        return super().hint(code, text)
