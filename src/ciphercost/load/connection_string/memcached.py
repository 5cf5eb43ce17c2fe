"""Connection strings of memcached: memcached://USER@HOST:PORT without TLS, memcacheds://… with it.

Its clients have no common form of URL; this is that of Valkey and Redis. A user is needed only where the server asks for a login
(its option -Y).
"""

from __future__ import annotations

import os
from urllib.parse import unquote

from ciphercost.load.connection_string import (
    ConnectionString,
    Place,
    holds_password,
    host_and_port,
    not_a_url,
    parameters,
    port_number,
    split,
)
from ciphercost.model.errors import UsageError
from ciphercost.model.secret import Secret

CLEAR, ENCRYPTED = "memcached", "memcacheds"
PORT = 11211
DEFAULT_USER = ""
"""Of a server without logins."""
VARIABLE = "MEMCACHED_PASSWORD"
INSTEAD = f"set {VARIABLE}"


def encrypts(url: str) -> bool:
    """Whether a URL's scheme asks for TLS. Pure."""
    return url.partition("://")[0].lower() == ENCRYPTED


def read(url: str) -> ConnectionString:
    """What a client makes of this URL. Raises UsageError. Pure."""
    parts = split(url, (CLEAR, ENCRYPTED), INSTEAD)
    host, port = host_and_port(parts.hosts)
    if "," in host:
        raise UsageError("--url names several servers; name one, since only one can be measured")
    for written, _ in parameters(parts.query):
        if written.lower() in ("password", "pass"):
            raise holds_password(INSTEAD)
        raise UsageError(f"--url: unknown parameter '{written}': memcached's URLs have none here; remove it")
    if parts.path.strip("/"):
        raise UsageError(f"--url: memcached has no databases; remove /{unquote(parts.path)}")
    if not host and not parts.hosts.startswith("["):
        host = "localhost"
    if not host:
        raise not_a_url()
    tls = parts.scheme == ENCRYPTED
    return ConnectionString(
        places=(Place(host, port_number(port) if port else PORT),),
        urls=(url,),
        user=unquote(parts.user or ""),
        database="",
        level="" if tls else "disable",
        said="" if tls else f"{CLEAR}://",
        unsaid="The string asks for encryption and does not say how the server is verified, so this is ciphercost's own strict client, "
        "which verifies chain and name. Clients differ: some verify nothing unless they are told to"
        if tls
        else "",
        stronger="let the client verify chain and name" if tls else f"write {ENCRYPTED}:// and the port with TLS",
    )


def password_found(engine: str = "") -> Secret | None:  # noqa: ARG001 - as `redis` has it
    """Return the password from the environment; None if there is none."""
    password = os.environ.get(VARIABLE, "")
    return Secret(password) if password else None
