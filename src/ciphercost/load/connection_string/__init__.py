"""Connection strings as the clients of each server read them: what a string asks of encryption, and what its parameters mean.

`libpq` reads PostgreSQL's, `mysql` those of MySQL and MariaDB, `firebird` Firebird's, `redis` those of Valkey and Redis,
`memcached` memcached's, `jdbc` the hosts of JDBC URLs. Each has a table of parameters. A parameter is honoured, named as harmless, or
refused with the reason: none is ever dropped silently.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from typing import Literal
from urllib.parse import unquote

import msgspec

from ciphercost.host.client_identity import Named
from ciphercost.model.connection import Changes
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.secret import Secret

Level = Literal["", "disable", "allow", "prefer", "require", "verify-ca", "verify-full"]
"""What a string asks of encryption, in libpq's words; "": nothing."""
UNENFORCED: tuple[Level, ...] = ("disable", "allow", "prefer")
"""With these a client also connects unencrypted."""
VERIFY: dict[Level, str] = {"require": "require", "verify-ca": "ca", "verify-full": "full"}
"""Values of the factor `verify` of `tls`."""
SYSTEM = "system"
"""As a CA: the authorities that this system trusts."""


class Place(msgspec.Struct, frozen=True):
    """Where one server is."""

    host: str
    port: int
    address: str = ""
    """The address to connect to, if the string has one beside the name."""
    socket: str = ""
    """Directory or file of a Unix-domain socket, by which the clients reach it instead of by the host."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.socket or f"{host}:{self.port}"


class ConnectionString(msgspec.Struct, frozen=True, kw_only=True):
    """What a client makes of a connection string, its environment and its option files."""

    places: tuple[Place, ...]
    urls: tuple[str, ...]
    """For each place a URL that names only it, with all other parameters."""
    user: str
    database: str
    level: Level = ""
    said: str = ""
    """What decides the level, as the user wrote it: `sslmode=disable`, `PGSSLMODE=disable`."""
    unsaid: str = ""
    """Without a level: a sentence about the clients' default."""
    ca: str = ""
    """File or directory of authorities, or SYSTEM; empty: not named."""
    missing_ca: str = ""
    """Why a client refuses to verify without a named authority; empty: it uses the system's."""
    require_verifies: bool = False
    """Whether `require` verifies the server's chain if an authority is named, as libpq does."""
    crl: tuple[str, ...] = ()
    """Files of revocation lists."""
    identity: Named | None = None
    """Files of the client's certificate and key."""
    tls: Changes = {}
    """What it changes in encrypted connections."""
    factors: dict[str, str] = {}
    """What it asks of encryption beside the level, as factors of `tls`."""
    password: Secret | None = None
    """From a file that the string or the environment names."""
    passfile: str = ""
    """File of passwords that the string names instead of the default one."""
    notes: tuple[str, ...] = ()
    """One line for each parameter that is named but not used, and for each setting from elsewhere that decides."""
    stronger: str = ""
    """What makes the string verify the server."""
    plain_socket: str = ""
    """The server's Unix-domain socket for what is unencrypted in a run; what is encrypted goes to the host. Empty: all goes there."""
    instead_of_socket: str = ""
    """What to write if encryption is to be seen and the clients use a Unix-domain socket, as a sentence."""

    @property
    def local(self) -> str:
        """What kind of local connection the first place is; empty: none."""
        socket = self.places[0].socket
        return f"{socket}: a Unix-domain socket, an unencrypted local connection that no network sees" if socket else ""

    def needs_network(self) -> None:
        """Raises UsageError unless the string names exactly one server that is reached over a network."""
        if len(self.places) > 1:
            named = ", ".join(map(str, self.places))
            raise UsageError(
                f"--url names {len(self.places)} servers ({named}); name one, since only one can be measured"
            )
        if self.local and not self.plain_socket:
            raise UsageError(
                f"--url names {self.local}. {self.instead_of_socket or 'Name a host to measure encryption'}"
            )


def parameters(query: str) -> list[tuple[str, str]]:
    """Split what follows the `?` of a URL; names and values are percent-decoded, and `+` is itself. Raises UsageError. Pure."""
    pairs = []
    for parameter in filter(None, query.split("&")):
        name, equals, value = parameter.partition("=")
        if not equals or not name:
            raise UsageError(f"--url: '{unquote(name)}' has no value; write {unquote(name) or 'NAME'}=VALUE")
        pairs.append((unquote(name), unquote(value)))
    return pairs


def unknown(name: str, known: Collection[str], where: str = "--url") -> UsageError:
    """The error for a parameter that no table has. Pure."""
    return UsageError(f"{where}: unknown parameter '{name}': {nearest(name, set(known))}")


def holds_password(instead: str) -> UsageError:
    """The error for a password on the command line. It never repeats it. Pure."""
    return UsageError(
        "--url holds a password, which every user of this machine can read in the process list. Leave it out of the URL and "
        f"{instead}."
    )


def port_number(text: str, where: str = "--url") -> int:
    """Parse a port. Raises UsageError. Pure."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise UsageError(f"{where}: port {text} is not a number from 1 to 65535")
    return int(text)


def host_and_port(text: str) -> tuple[str, str]:
    """`h:1`, `[::1]:1`, `h` -> host and port (or ""), percent-decoded. Raises UsageError. Pure."""
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise not_a_url()
        return unquote(host), rest[1:]
    host, _, port = text.partition(":")
    if ":" in port:
        raise not_a_url()
    return unquote(host), port


def not_a_url() -> UsageError:
    """The error for text that is no URL. It repeats no part: one may be a password. Pure."""
    return UsageError(
        "--url: not a valid URL; write SCHEME://USER@HOST:PORT/…, with a port up to 65535 and an IPv6 address in [brackets]"
    )


def _becomes_another(authority: str) -> bool:
    """Whether a letter of it, once normalised as host names are, would split the URL differently. Pure."""
    return any(
        set("/?#@:") & set(unicodedata.normalize("NFKC", letter)) for letter in authority if not letter.isascii()
    )


class Parts(msgspec.Struct, frozen=True):
    """A URL, split but not decoded."""

    scheme: str
    user: str | None
    hosts: str
    path: str
    query: str


def split(url: str, schemes: tuple[str, ...], instead: str) -> Parts:
    """Split a URL that may name several hosts. `instead`: what to do instead of writing a password into it. Raises UsageError. Pure."""
    scheme, separator, rest = url.partition("://")
    if not separator:  # repeat no part: one may be a password
        raise UsageError(f"--url must begin with a scheme; write {schemes[0]}://USER@HOST:PORT/…")
    if scheme.lower() not in schemes:
        raise UsageError(f"--url must begin with {schemes[0]}://, not '{scheme}://'")
    rest, _, fragment = rest.partition("#")
    if fragment:
        raise UsageError("--url: nothing can follow a '#'; write %23 if it belongs to a name")
    rest, _, query = rest.partition("?")
    authority, _, path = rest.partition("/")
    user, at, hosts = authority.rpartition("@")
    brackets = hosts.count("["), hosts.count("]")
    strange = any(letter.isspace() or not letter.isprintable() for letter in authority)
    if strange or brackets[0] != brackets[1] or set("[]") & set(user) or _becomes_another(authority):
        raise not_a_url()
    if ":" in user:
        raise holds_password(instead)
    return Parts(scheme.lower(), user if at else None, hosts, path, query)
