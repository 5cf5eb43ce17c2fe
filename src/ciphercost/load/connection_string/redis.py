"""Connection strings of Valkey and Redis: redis://USER@HOST:PORT/0 without TLS, rediss://… with it; valkey:// and valkeys:// mean the same.

Parameters are those of common clients: redis-py (`Redis.from_url`), go-redis (`ParseURL`) and Lettuce (`RedisURI`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import unquote

from ciphercost.host.client_identity import PASSPHRASE, Named
from ciphercost.load.connection_string import (
    ConnectionString,
    Level,
    Place,
    holds_password,
    host_and_port,
    not_a_url,
    parameters,
    port_number,
    split,
    unknown,
)
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.secret import Secret

CLEAR, ENCRYPTED = ("redis", "valkey"), ("rediss", "valkeys")
PORT = 6379
DEFAULT_USER = "default"
VARIABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"valkey": ("VALKEYCLI_AUTH", "REDISCLI_AUTH"), "redis": ("REDISCLI_AUTH",)}
)
"""By engine: where its command-line client looks for a password."""
INSTEAD = "set REDISCLI_AUTH, or VALKEYCLI_AUTH for Valkey"
REQUIREMENTS: Mapping[str, Level] = MappingProxyType(
    {"none": "require", "optional": "verify-ca", "required": "verify-ca"}
)
"""redis-py's `ssl_cert_reqs`; Python's `optional` is `required` for a client."""
PEERS: Mapping[str, Level] = MappingProxyType({"none": "require", "ca": "verify-ca", "full": "verify-full"})
"""Lettuce's `verifyPeer`."""
YES, NO = ("true", "1", "yes"), ("false", "0", "no")
_SESSION = "about the session, not about encryption"
HARMLESS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "timeout", "socket_timeout", "socket_connect_timeout", "dial_timeout", "read_timeout", "write_timeout",
                "retry_on_timeout", "max_retries", "min_retry_backoff", "max_retry_backoff",
            ),
            "how long a client waits; ciphercost has its own deadlines",
        ),
        **dict.fromkeys(
            (
                "protocol", "decode_responses", "encoding", "encoding_errors", "client_name", "clientname", "libraryname",
                "libraryversion", "health_check_interval", "socket_keepalive",
            ),
            _SESSION,
        ),
        **dict.fromkeys(
            ("max_connections", "pool_size", "pool_timeout", "min_idle_conns", "max_idle_conns"),
            "about a pool of connections; ciphercost has --clients",
        ),
    }
)  # fmt: skip
REFUSED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("ssl_min_version", "ssl_ciphers"), "choose it with --set version=… or --set cipher=…"),
        **dict.fromkeys(("ssl_ca_path", "ssl_ca_data"), "name the authority with ssl_ca_certs=FILE or --ca FILE"),
        "sentinelmasterid": "Sentinel is not supported; name the server itself",
    }
)
ABOUT_TLS = (
    "ssl_cert_reqs",
    "ssl_check_hostname",
    "ssl_ca_certs",
    "ssl_certfile",
    "ssl_keyfile",
    "skip_verify",
    "verifypeer",
)
KNOWN = (*ABOUT_TLS, "db", "username", *HARMLESS)
"""Names for suggestions."""


def encrypts(url: str) -> bool:
    """Whether a URL's scheme asks for TLS. Pure."""
    return url.partition("://")[0].lower() in ENCRYPTED


def read(url: str) -> ConnectionString:
    """What a client makes of this URL. Raises UsageError."""
    parts = split(url, (*CLEAR, *ENCRYPTED), INSTEAD)
    host, port = host_and_port(parts.hosts)
    if "," in host:
        raise UsageError("--url names several servers; name one, since only one can be measured")
    tls, user, database, notes = parts.scheme in ENCRYPTED, unquote(parts.user or ""), parts.path.strip("/"), []
    about: dict[str, str] = {}
    for written, value in parameters(parts.query):
        name = written.lower()
        if name in ("password", "pass"):
            raise holds_password(INSTEAD)
        if name == "ssl_password":
            raise holds_password(f"set {PASSPHRASE}")
        if name in REFUSED:
            raise UsageError(f"--url: {written}={value}: {REFUSED[name]}")
        if name in ABOUT_TLS:
            if not tls:
                raise UsageError(
                    f"--url: {written}={value} has no effect with {parts.scheme}://, which asks for no encryption; remove it, or write "
                    f"{parts.scheme}s://"
                )
            about[name] = value
        elif name == "db":
            database = value
        elif name == "username":
            user = value
        elif name in HARMLESS:
            notes.append(f"{written}={value}: ignored; {HARMLESS[name]}")
        else:
            raise unknown(written, KNOWN)
    if database not in ("", "0"):
        raise UsageError(
            f"--url: database {unquote(database)}: ciphercost reaches database 0 only, the one in which every connection begins; write /0, or "
            "leave it out"
        )
    files = about.get("ssl_certfile", ""), about.get("ssl_keyfile", "")
    level, as_written = _level(about) if tls else ("disable", f"{parts.scheme}://")
    if not host and not parts.hosts.startswith("["):
        host = "localhost"
    if not host:
        raise not_a_url()
    return ConnectionString(
        places=(Place(host, port_number(port) if port else PORT),),
        urls=(url,),
        user=user or DEFAULT_USER,
        database="",
        level=level,
        said=as_written,
        unsaid=""
        if level
        else "The string asks for encryption and does not say how the server is verified, so this is ciphercost's own strict client, "
        "which verifies chain and name. Clients differ: some verify no name unless they are told to",
        ca=about.get("ssl_ca_certs", ""),
        identity=Named(*files, "ssl_certfile", "ssl_keyfile") if any(files) else None,
        notes=tuple(notes),
        stronger=f"write {parts.scheme.removesuffix('s')}s:// and the port with TLS"
        if not tls
        else "let the client verify chain and name",
    )


def _level(about: Mapping[str, str]) -> tuple[Level, str]:
    """(what the parameters ask of encryption, how the user wrote it); ("", ""): nothing. Raises UsageError. Pure."""
    asked: tuple[Level, str] = ("", "")
    if written := about.get("skip_verify", ""):
        asked = ("require" if _switched("skip_verify", written) else "verify-full"), f"skip_verify={written}"
    for name, shown, values in (
        ("verifypeer", "verifyPeer", PEERS),
        ("ssl_cert_reqs", "ssl_cert_reqs", REQUIREMENTS),
    ):
        if written := about.get(name, ""):
            if written.lower() not in values:
                raise UsageError(f"--url: {shown}={written}: {nearest(written, values)}")
            asked = values[written.lower()], f"{shown}={written}"
    if written := about.get("ssl_check_hostname", ""):
        as_written = f"ssl_check_hostname={written}"
        if not _switched("ssl_check_hostname", written):
            return ("verify-ca", as_written) if asked[0] != "require" else asked
        if asked[0] == "require":
            raise UsageError(f"--url: {as_written} contradicts {asked[1]}; remove one of them")
        return "verify-full", as_written
    return asked


def _switched(name: str, text: str) -> bool:
    if text.lower() not in (*YES, *NO):
        raise UsageError(f"--url: {name}={text}: write true or false")
    return text.lower() in YES


def password_found(engine: str) -> Secret | None:
    """Return the password from the environment; None if there is none."""
    password = next((value for name in VARIABLES[engine] if (value := os.environ.get(name))), "")
    return Secret(password) if password else None
