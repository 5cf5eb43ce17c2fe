"""Firebird's connection strings: firebird://USER@HOST:PORT/ALIAS?wire_crypt=…

Firebird's own client has no URL for this. Parameters are named as in its configuration and in the options of its drivers.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import unquote

from ciphercost.load.connection_string import (
    ConnectionString,
    Level,
    Place,
    holds_password,
    host_and_port,
    not_a_url,
    parameters,
    split,
    unknown,
)
from ciphercost.model.errors import UsageError, nearest

INSTEAD = "set ISC_PASSWORD"
PORT = 3050
LEVELS: Mapping[str, Level] = MappingProxyType({"disabled": "disable", "enabled": "prefer", "required": "require"})
_SESSION = "about the session, not about encryption"
HARMLESS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("role", "charset", "lcctype", "encoding", "dialect", "sqldialect", "timezone"), _SESSION),
        **dict.fromkeys(("connecttimeout", "timeout"), "how long a client waits; ciphercost has its own deadlines"),
        **dict.fromkeys(("authplugins", "authpluginlist", "wirecompression"), "not about encryption; not checked"),
    }
)
KNOWN = ("wire_crypt", "role", "charset", "dialect", "auth_plugins", "wire_compression", "connect_timeout")
"""Names for suggestions."""


def read(url: str) -> ConnectionString:
    """What a client makes of this URL. Raises UsageError, also if it names no database or several servers."""
    parts = split(url, ("firebird",), INSTEAD)
    level: Level = ""
    as_written = ""
    notes = []
    for written, value in parameters(parts.query):
        name = written.lower().replace("_", "").replace("-", "")
        if name in ("password", "pwd"):
            raise holds_password(INSTEAD)
        if name == "wirecrypt":
            if value.lower() not in LEVELS:
                raise UsageError(f"{written}={value}: {nearest(value, ('Disabled', 'Enabled', 'Required'))}")
            level, as_written = LEVELS[value.lower()], f"{written}={value}"
        elif name == "wirecryptplugin":
            raise UsageError(f"{written}={value}: choose the cipher with --set cipher=…")
        elif name in HARMLESS:
            notes.append(f"{written}={value}: ignored; {HARMLESS[name]}")
        else:
            raise unknown(written, KNOWN)
    host, port = host_and_port(parts.hosts)
    if "," in host or (port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536)):
        raise not_a_url()
    database = unquote(parts.path)
    if not database:
        raise UsageError("--url names no database: write firebird://USER@HOST:PORT/ALIAS, or //PATH for a file's path")
    place = Place(host or "127.0.0.1", int(port) if port else PORT)
    return ConnectionString(
        places=(place,),
        urls=(url,),
        user=unquote(parts.user or "") or os.environ.get("ISC_USER", "") or getpass.getuser(),
        database=database,
        level=level,
        said=as_written,
        unsaid=""
        if level
        else "The string says nothing about encryption, so this client requires it. The default of Firebird's clients is "
        "WireCrypt=Enabled, which whoever is in the path can turn off: write wire_crypt=Required",
        notes=tuple(notes),
        stronger="write wire_crypt=Required",
    )
