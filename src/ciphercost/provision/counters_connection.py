"""counters_connection: how to reach your own server to read its counters: encrypted if the server offers that or the URL asks for it.

A run compares an unencrypted with an encrypted arm. Here one connection is made, as a careful client would make it.
"""

from __future__ import annotations

from pathlib import Path

from ciphercost.engines import Server
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host.ports import is_loopback
from ciphercost.load.connection_string import VERIFY, Level
from ciphercost.load.connection_string.redis import encrypts
from ciphercost.mechanisms.tls import VERIFY as MODES
from ciphercost.model.connection import Connection, TlsMode
from ciphercost.model.errors import UsageError
from ciphercost.model.own_tls import OwnTls
from ciphercost.plan.connection_strings import level_of
from ciphercost.provision.prepared_cell import users_tls


def mode(level: Level, *, here: bool, offered: bool) -> TlsMode:
    """How to encrypt. `level`: what the URL asks; `here`: nobody can be between us and the server; `offered`: whether it offers TLS.

    Without a level a server on another machine must prove who it is, and one that offers no TLS is refused, because whoever is in the
    path can make it look so. Raises UsageError. Pure.
    """
    if level == "disable":
        return "off"
    if level in VERIFY:
        return MODES[VERIFY[level]]
    may_be_clear = here or level in ("allow", "prefer")
    if not offered and not may_be_clear:
        raise UsageError(
            "--url: the server offers no encryption, and somebody in the path could make it look so; if its counters may be read "
            "unencrypted, say so in the URL (?sslmode=disable, or ?ssl-mode=DISABLED for MySQL and MariaDB)"
        )
    return ("require" if may_be_clear else "verify-full") if offered else "off"


def of(engine: TakesUrl, url: str, server: Server, own_tls: OwnTls, directory: Path) -> Connection:
    """One connection to your server. `own_tls`: given beside the URL; `directory`: for a file of authorities.

    Raises UsageError, OSError if nothing answers there.
    """
    connection = server.connection()
    chosen = _mode(engine, url, connection, own_tls.ca)
    if chosen == "off":
        for option, value in own_tls.options.items():
            raise UsageError(f"{option} {value} has no effect: this connection is not encrypted; remove it")
        if engine.language == "kv" and connection.password and not is_loopback(connection.host):
            raise UsageError(
                "--url: an unencrypted login would send the password readably over the network, which ciphercost never does; name "
                "the port with TLS, or run it on the server's own machine"
            )
        return connection | {"tls": "off"}
    connection = connection | server.other_ports.get("tls", {}) | {"tls": chosen, "resumption": False}
    return connection | users_tls(server, own_tls, directory)


def _mode(engine: TakesUrl, url: str, connection: Connection, ca: str) -> TlsMode:
    here = is_loopback(connection.host)
    asked = engine.connection_string(url)
    if asked is None:  # on the web the scheme says it all
        encrypted = url.lower().startswith("https:")
        level: Level = "verify-full" if encrypted and ca else "" if encrypted else "disable"
        return mode(level, here=here, offered=True)
    level = level_of(asked, ca)
    if engine.language == "kv":
        return mode(level, here=here and not ca, offered=encrypts(url))
    offered = level in ("", "allow", "prefer") and engine.offers_tls(*connection.address) is not False
    return mode("verify-full" if ca and level in ("", "allow", "prefer") else level, here=here, offered=offered)
