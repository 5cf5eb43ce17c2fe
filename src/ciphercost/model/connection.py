"""connection: the message `connect` and its answer (PROTOCOL.md): how the connections of one arm reach their server, and what
they negotiated.

Engines, mechanisms and workloads each add what they decide, as `Changes`; `connection | changes` is a new connection.
`tests/load/test_messages.py` compares the fields with those of the agents' sources.
"""

from __future__ import annotations

from typing import Literal, Self, TypedDict

import msgspec

from ciphercost.model.secret import Secret, reveal

TlsMode = Literal["off", "require", "verify-ca", "verify-full"]
TlsVersion = Literal["1.0", "1.1", "1.2", "1.3"]
HttpVersion = Literal["1.1", "2", "3"]
WireCrypt = Literal["off", "require"]
ChannelBinding = Literal["disable", "prefer", "require"]
Call = Literal["executeUpdate", "execute", "batch"]
"""The JDBC call for statements that return no rows."""


class Pool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="connect"):
    """What every driver's `connect` has. A field with its default is not sent."""

    arm: str = ""
    """Set when the message is sent."""
    driver: str
    connections: int = 1
    threads: int = 1
    per_request: bool = False
    timeout: float | None = None
    """Seconds until a connection must be usable. None: the usual deadline for a login."""
    user: str | None = None
    password: Secret | None = None
    setup: str | None = None
    """Statements, separated by `;`, that each connection runs first."""
    relayed: bool = False
    """Whether the address is that of a relay to a server on another machine."""
    trusted: bool = False
    """Whether the user trusts the network to the server."""


class Connection(Pool, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="connect"):
    """The settings of an arm's connections, for all drivers of the Rust agent. None: not set, so the agent's default.

    An agent refuses fields that the driver does not have.
    """

    # an address
    host: str = ""
    port: int = 0
    socket: str | None = None
    """Path of the server's Unix-domain socket, or `@` and an abstract name: connections are made there, unencrypted, and `host` and
    `port` only name the server.
    """
    database: str | None = None
    search_path: str | None = None
    # TLS
    tls: TlsMode | None = None
    tls_at_once: bool = False
    channel_binding: ChannelBinding | None = None
    tls_ca: str | None = None
    tls_server_name: str | None = None
    tls_min: TlsVersion | None = None
    tls_max: TlsVersion | None = None
    tls_ciphers: str | None = None
    tls_groups: str | None = None
    tls_security_level: int | None = None
    tls_certificate: str | None = None
    tls_key: str | None = None
    tls_identity: Secret | None = None
    """The same as one PEM text: the certificate, the chain above it, and the unencrypted key."""
    resumption: bool | None = None
    # HTTP
    http: HttpVersion | None = None
    authority: str | None = None
    headers: Secret | None = None
    """Of every request, one a line."""
    clear_host: str | None = None
    clear_port: int | None = None
    clear_authority: str | None = None
    early_data: bool = False
    lengths: str = ""
    """How many requests connections carry before they close: `REQUESTS:WEIGHT`, separated by spaces. Empty: they stay open."""
    # Firebird
    wire_crypt: WireCrypt | None = None
    wire_crypt_plugins: str | None = None
    create: bool = False
    # databases in the agent's process, and H2's files
    path: str | None = None
    """A database's file; in HTTP the path of requests that name none."""
    key: Secret | None = None
    passphrase: bool = False
    """Whether `key` is one."""
    reserve: int | None = None
    pragmas: str | None = None
    library: str | None = None
    extension: str | None = None
    cipher: str | None = None
    # no server
    busy_ns: int | None = None
    jitter: float | None = None
    # only for servers that a JDBC driver alone can reach
    properties: str | None = None
    """The driver's properties, `NAME=VALUE;NAME=VALUE`."""

    def __or__(self, changes: Changes) -> Self:
        """The same connection with these fields instead. None: not set."""
        return msgspec.structs.replace(self, **changes)

    @property
    def by_tls(self) -> bool:
        """Whether it asks for TLS."""
        return self.tls not in (None, "off")

    @property
    def mutual(self) -> bool:
        """Whether the client presents a certificate of its own."""
        return bool(self.tls_certificate or self.tls_identity)

    @property
    def by_wire_crypt(self) -> bool:
        """Whether it asks for Firebird's wire encryption."""
        return self.wire_crypt not in (None, "off")

    @property
    def address(self) -> tuple[str, int]:
        return self.host, self.port

    @property
    def alone(self) -> Self:
        """The same settings for one client that opens its connections as the load does."""
        return self | {"connections": 1, "threads": 1}

    @property
    def single(self) -> Self:
        """The same settings for one connection that stays open."""
        return self | {"connections": 1, "threads": 1, "per_request": False}

    def given(self) -> dict[str, object]:
        """Every field that is set, by its name in PROTOCOL.md."""
        fields = msgspec.structs.fields(self)
        return {field.name: value for field in fields if (value := getattr(self, field.name)) != field.default}

    def header_lines(self) -> list[str]:
        return reveal(self.headers).splitlines()


class Changes(TypedDict, total=False):
    """Fields of a `Connection` that something decides: an engine, a mechanism, a workload, a user."""

    arm: str
    driver: str
    connections: int
    threads: int
    per_request: bool
    timeout: float | None
    user: str | None
    password: Secret | None
    setup: str | None
    relayed: bool
    trusted: bool
    host: str
    port: int
    socket: str | None
    database: str | None
    search_path: str | None
    tls: TlsMode | None
    tls_at_once: bool
    channel_binding: ChannelBinding | None
    tls_ca: str | None
    tls_server_name: str | None
    tls_min: TlsVersion | None
    tls_max: TlsVersion | None
    tls_ciphers: str | None
    tls_groups: str | None
    tls_security_level: int | None
    tls_certificate: str | None
    tls_key: str | None
    tls_identity: Secret | None
    resumption: bool | None
    http: HttpVersion | None
    authority: str | None
    headers: Secret | None
    clear_host: str | None
    clear_port: int | None
    clear_authority: str | None
    early_data: bool
    lengths: str
    wire_crypt: WireCrypt | None
    wire_crypt_plugins: str | None
    create: bool
    path: str | None
    key: Secret | None
    passphrase: bool
    reserve: int | None
    pragmas: str | None
    library: str | None
    extension: str | None
    cipher: str | None
    busy_ns: int | None
    jitter: float | None
    properties: str | None


class JdbcConnection(Pool, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="connect"):
    """The settings of an arm's connections by a JDBC driver, for the Java agent."""

    url: str
    jars: str
    """Paths separated by `:`, the driver's own first."""
    properties: Secret | None = None
    """`NAME=VALUE`, one a line. One may be a password."""
    driver_class: str | None = None
    witness: str | None = None
    how: Call | None = None
    batch: int | None = None
    autocommit: bool | None = None
    commit_every: int | None = None
    prepared: bool | None = None

    def __or__(self, changes: JdbcChanges) -> Self:
        """The same connection with these fields instead. None: not set."""
        return msgspec.structs.replace(self, **changes)


class JdbcCalls(TypedDict, total=False):
    """What the client's settings and the load decide about a JDBC driver's connections and calls."""

    connections: int
    threads: int
    per_request: bool
    setup: str | None
    relayed: bool
    trusted: bool
    how: Call | None
    batch: int | None
    autocommit: bool | None
    commit_every: int | None
    prepared: bool | None


class JdbcChanges(JdbcCalls, total=False):
    """Fields of a `JdbcConnection` that something decides."""

    arm: str
    driver: str
    timeout: float | None
    user: str | None
    password: Secret | None
    url: str
    jars: str
    properties: Secret | None
    driver_class: str | None
    witness: str | None


class DriverConnection(Pool, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="connect"):
    """The settings of an arm's connections by a driver of an application, for the agent of its language."""

    host: str | None = None
    """As an application names it: the server's certificate is checked against this name."""
    port: int | None = None
    address: str | None = None
    """Where to connect. None: to what `host` resolves to."""
    database: str | None = None
    search_path: str | None = None
    dsn: str | None = None
    """A connection string of the driver's own. It decides what the other fields leave open, and there are no fields of TLS beside it."""
    tls: TlsMode | None = None
    tls_at_once: bool = False
    channel_binding: ChannelBinding | None = None
    tls_ca: str | None = None
    """PEM file. None: the system's authorities."""
    tls_min: TlsVersion | None = None
    tls_max: TlsVersion | None = None
    tls_ciphers: str | None = None
    tls_identity: Secret | None = None
    witness: str | None = None
    """SQL that returns how the session is encrypted, for drivers that can't report it."""
    options: str | None = None
    """The driver's own settings, `NAME=VALUE`, one a line."""

    def __or__(self, changes: DriverChanges) -> Self:
        """The same connection with these fields instead. None: not set."""
        return msgspec.structs.replace(self, **changes)


class DriverChanges(TypedDict, total=False):
    """Fields of a `DriverConnection` that something decides."""

    arm: str
    driver: str
    connections: int
    threads: int
    per_request: bool
    timeout: float | None
    user: str | None
    password: Secret | None
    setup: str | None
    relayed: bool
    trusted: bool
    host: str | None
    port: int | None
    address: str | None
    database: str | None
    search_path: str | None
    dsn: str | None
    tls: TlsMode | None
    tls_at_once: bool
    channel_binding: ChannelBinding | None
    tls_ca: str | None
    tls_min: TlsVersion | None
    tls_max: TlsVersion | None
    tls_ciphers: str | None
    tls_identity: Secret | None
    witness: str | None
    options: str | None


class Connected(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="connected"):
    """An agent's answer to `connect`: what was negotiated. A text is empty if there is nothing to report."""

    arm: str = ""
    connections: int
    encrypted: bool
    protocol: str
    cipher: str
    group: str = ""
    resumed: int | None = None
    """Connections with a resumed session. None: the client can't report it."""
    verified: bool = False
    verified_by: str = ""
    peer: str = ""
    peer_key: str = ""
    server_version: str = ""
    auth: str = ""
    library: str = ""
    application: str = ""
    driver_version: str = ""
    """Of a driver that is not the agent's own, as it names itself."""
    # what ciphercost adds
    checked: str = ""
    """How a driver was seen to verify its peer, as a sentence."""
    client_certificate: str = ""
    """Who verified the client's certificate; empty: the server requires none."""
