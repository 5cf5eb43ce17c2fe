"""What `connect` says of an arm's connections by a driver."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import ssl
import tempfile
from typing import Any, NamedTuple

from ciphercost_agent_python.failure import Failure, bad_message
from ciphercost_agent_python.fields import Fields

MODES = ("off", "require", "verify-ca", "verify-full")
VERSIONS = {"1.0": "TLSv1", "1.1": "TLSv1.1", "1.2": "TLSv1.2", "1.3": "TLSv1.3"}
BINDINGS = ("disable", "prefer", "require")
_OF_TLS = ("tls", "tls_at_once", "channel_binding", "tls_ca", "tls_min", "tls_max", "tls_ciphers", "tls_identity")


class Settings(NamedTuple):
    """The fields of `connect`. A text is empty if the field is not there."""

    driver: str
    per_request: bool
    seconds: float
    """Until a connection must be usable."""
    host: str
    port: int
    """0: not given."""
    address: str
    """Where to connect; empty: to what `host` resolves to."""
    user: str
    password: str
    database: str
    search_path: str
    setup: str
    dsn: str
    tls: str
    tls_at_once: bool
    channel_binding: str
    tls_ca: str
    tls_min: str
    tls_max: str
    tls_ciphers: str
    identity: str
    """A file with the client's certificate and key."""
    witness: str
    options: dict[str, str]
    near: bool
    """Whether the server is on this machine, or on a network that the user trusts."""

    @property
    def encrypts(self) -> bool:
        return self.tls != "off"

    @property
    def prepares(self) -> bool:
        """Whether a driver that can do both prepares its statements at once."""
        return self.options.get("prepared") != "false" and not self.per_request

    @property
    def given(self) -> dict[str, Any]:
        """What is given of place, login and database, by the words that most drivers have for it."""
        words = {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "database": self.database,
        }
        return {name: value for name, value in words.items() if value}

    def context(self) -> ssl.SSLContext:
        """Python's own TLS with these settings, as applications make it for a driver that takes a context."""
        context = ssl.create_default_context(cafile=self.tls_ca or None)
        context.check_hostname = self.tls == "verify-full"
        context.verify_mode = ssl.CERT_NONE if self.tls == "require" else ssl.CERT_REQUIRED
        if self.tls_min:
            context.minimum_version = ssl.TLSVersion[VERSIONS[self.tls_min].replace(".", "_")]
        if self.tls_max:
            context.maximum_version = ssl.TLSVersion[VERSIONS[self.tls_max].replace(".", "_")]
        if self.identity:
            context.load_cert_chain(self.identity)
        return context

    def refuse_open_password(self) -> None:
        """Raises Failure for a login that this driver can't limit to methods that hide the password, on an unencrypted way to another machine."""
        if self.password and not self.encrypts and not self.dsn and not self.near:
            raise Failure(
                "connect",
                f"{self.driver} can't be kept from sending the password so that others can read it, and the connection to "
                f"{self.address or self.host} is unencrypted: measure with another client, or on this machine",
            )


def read(driver: str, fields: Fields, seconds: float, *, per_request: bool) -> Settings:
    """Take the fields of a driver of this agent. Raises Failure."""
    given = {name for name in _OF_TLS if fields.has(name)}
    dsn = fields.text("dsn", "")
    if dsn and given:
        raise bad_message(f"{min(given)}: a dsn decides about TLS")
    tls = _one_of(fields, "tls", MODES, "" if dsn else "off")
    options: dict[str, str] = {}
    for line in filter(None, fields.text("options", "").split("\n")):
        name, equals, value = line.partition("=")
        if not equals or not name:
            raise bad_message("options: write name=value, one per line")
        options[name] = value
    host, address = fields.text("host", ""), fields.text("address", "")
    if not host and not dsn:
        raise bad_message("missing field `host`")
    port = fields.whole("port", 0) if dsn else fields.whole("port")
    if not (0 if dsn else 1) <= port <= 65535:
        raise bad_message("port: must lie between 1 and 65535")
    trusted, relayed = fields.flag("trusted", False), fields.flag("relayed", False)
    settings = Settings(
        driver=driver,
        per_request=per_request,
        seconds=seconds,
        host=host,
        port=port,
        address=address,
        user=fields.text("user", ""),
        password=fields.text("password", ""),
        database=fields.text("database", ""),
        search_path=fields.text("search_path", ""),
        setup=fields.text("setup", ""),
        dsn=dsn,
        tls=tls,
        tls_at_once=fields.flag("tls_at_once", False),
        channel_binding=_one_of(fields, "channel_binding", BINDINGS, ""),
        tls_ca=fields.text("tls_ca", ""),
        tls_min=_one_of(fields, "tls_min", tuple(VERSIONS), ""),
        tls_max=_one_of(fields, "tls_max", tuple(VERSIONS), ""),
        tls_ciphers=fields.text("tls_ciphers", ""),
        identity=_file(fields.text("tls_identity", "")),
        witness=fields.text("witness", ""),
        options=options,
        near=trusted or (_is_loopback(address or host) and not relayed),
    )
    fields.end()
    return settings


def _one_of(fields: Fields, name: str, known: tuple[str, ...], otherwise: str) -> str:
    value: str = fields.text(name, otherwise)
    if value not in (*known, otherwise):
        raise bad_message(f"{name}: must be {', '.join(known[:-1])} or {known[-1]}")
    return value


def _is_loopback(host: str) -> bool:
    """Only an address counts, never a name."""
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(host)
        if address.version == 6 and address.ipv4_mapped is not None:
            return address.ipv4_mapped.is_loopback
        return address.is_loopback
    return False


_FILES: dict[str, str] = {}
_PLACE: list[tempfile.TemporaryDirectory[str]] = []


def _file(pem: str) -> str:
    """A file that only this user can read, with this text: drivers read keys from files. It goes with this process."""
    if not pem:
        return ""
    if pem not in _FILES:
        if not _PLACE:
            _PLACE.append(tempfile.TemporaryDirectory(prefix="ciphercost-agent-"))
        path = os.path.join(_PLACE[0].name, f"{len(_FILES)}.pem")  # noqa: PTH118
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:  # noqa: PTH123
            file.write(pem)
        _FILES[pem] = path
    return _FILES[pem]
