"""Hosts of JDBC URLs: one, several, in the forms that each driver has for them, or none.

Sources: "Connection URL Syntax" in MySQL Connector/J's manual, "About MariaDB Connector/J" (connection strings), pgjdbc's
"Initializing the Driver", and Jaybird's manual.
"""

from __future__ import annotations

import re
from urllib.parse import quote

import msgspec

from ciphercost.model.errors import UsageError, nearest

SCHEMES = {
    "mysql": "mysql",
    "mariadb": "mariadb",
    "postgresql": "postgresql",
    "firebirdsql": "firebird",
    "firebird": "firebird",
}
"""Engines by the word after `jdbc:`."""
MODES = {
    "mysql": ("loadbalance", "replication", "failover"),
    "mariadb": ("sequential", "failover", "loadbalance", "load-balance-read", "replication"),
}
"""Words between the scheme and the hosts that say which of several servers the driver chooses."""
PORTS = {"mysql": 3306, "mariadb": 3306, "postgresql": 5432, "firebird": 3050}
_PLAIN = re.compile(r"(?:[^/@?,()]*@)?(?P<host>\[[0-9a-fA-F:.]+\]|[\w.%-]+)(?::(?P<port>\d+))?")
_LOCAL = re.compile(r"[?&;](localSocket|pipe|socketFactory)=([^&;]*)", re.IGNORECASE)
"""Properties by which a driver may connect without a network: a path, or the class that makes its sockets."""
_NAMED = re.compile(r"\(([^()=]+)=([^()]*)\)")


class Single(msgspec.Struct, frozen=True):
    """A URL that names one host of those that the application's URL names."""

    url: str
    place: str
    """As a person reads it."""


def singles(url: str) -> tuple[Single, ...]:
    """Split a JDBC URL into one for each host, with the same properties; a URL of one host in the usual form stays as it is.

    Raises UsageError for a form that is not supported, naming it. It repeats no property, which may be a password. Pure.
    """
    match = re.match(r"jdbc:([a-z0-9]+)((?:[:+][a-z-]+)*):", url, re.IGNORECASE)
    word = match[1].lower() if match else url.removeprefix("jdbc:").partition(":")[0]
    if match is None or word not in SCHEMES:
        if word == "h2":
            raise UsageError(
                "jdbc:h2: not examined: H2's drivers verify no server (see LIMITS.md); ciphercost run h2:tls measures its TLS"
            )
        raise UsageError(f"jdbc:{word}: no engine has this JDBC scheme; {nearest(word, SCHEMES)}")
    engine, more = SCHEMES[word], match[2].lower()
    rest = url[match.end() :]
    if "+srv" in more:
        raise UsageError(
            f"jdbc:{word}+srv: hosts that DNS names (SRV records) are not supported; write jdbc:{word}://HOST:PORT/…"
        )
    if engine == "firebird":
        return _firebird(url, word, more, rest)
    for name, value in _LOCAL.findall(rest):
        if name.lower() != "socketfactory" or re.search(r"unix|pipe", value, re.IGNORECASE):
            raise UsageError(
                f"jdbc: {name} makes the driver connect by a socket of this machine, where no network sees it and ciphercost can't capture "
                f"it; remove {name}, and name a host"
            )
    mode = more.strip(":")
    if mode and mode not in MODES.get(engine, ()):
        raise UsageError(f"jdbc:{word}:{mode}: not supported; {nearest(mode, MODES.get(engine, ()))}")
    if not rest.startswith("//"):
        if engine == "postgresql" and not rest.startswith("/"):
            return (Single(f"jdbc:postgresql://localhost:5432/{rest}", "localhost:5432, the driver's default"),)
        if engine == "postgresql":
            return (Single(f"jdbc:postgresql://localhost:5432{rest}", "localhost:5432, the driver's default"),)
        raise UsageError(f"jdbc:{word}: names no host; write jdbc:{word}://HOST:PORT/DATABASE")
    hosts, path = _cut(rest[2:])
    path = path if path.startswith("/") else f"/{path}"
    parsed_hosts = [_one(part) for part in _separated(hosts)] if hosts else [("localhost", "", "")]
    if len(parsed_hosts) == 1 and not mode and hosts and not parsed_hosts[0][2] and "(" not in hosts:
        return (Single(url, f"{parsed_hosts[0][0]}:{parsed_hosts[0][1] or PORTS[engine]}"),)
    single_urls = []
    for host, port, properties in parsed_hosts:
        place = f"{host}:{port or PORTS[engine]}"
        query = path + ("&" if "?" in path else "?") + properties if properties else path
        single_urls.append(Single(f"jdbc:{word}://{place}{query}", place))
    return tuple(single_urls)


def _cut(rest: str) -> tuple[str, str]:
    """(the hosts, the path and properties). A slash or question mark inside parentheses belongs to a host. Pure."""
    depth = 0
    for at, letter in enumerate(rest):
        depth += (letter == "(") - (letter == ")")
        if letter in "/?;" and depth <= 0:
            return rest[:at], rest[at:]
    return rest, ""


def _separated(hosts: str) -> list[str]:
    """Split at the commas that are outside of parentheses and brackets. Pure."""
    parts, depth = [""], 0
    group = hosts.startswith("[") and hosts.find("]") == len(hosts) - 1 and "," in hosts
    for letter in hosts[1:-1] if group else hosts:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _one(text: str) -> tuple[str, str, str]:
    """(host, port, the host's own properties as a query) of one part. Raises UsageError. Pure."""
    if plain := _PLAIN.fullmatch(text):
        return plain["host"], plain["port"] or "", ""
    named: dict[str, str] = {}
    if text.lower().startswith("address=("):
        named = {name.strip(): value.strip() for name, value in _NAMED.findall(text[len("address=") :])}
        left = _NAMED.sub("", text[len("address=") :])
    elif text.startswith("(") and text.endswith(")"):
        pairs = [item.partition("=") for item in text[1:-1].split(",")]
        named = {name.strip(): value.strip() for name, _, value in pairs}
        left = ""
    else:
        left = text
    small = {name.lower(): value for name, value in named.items()}
    if left.strip() or not small.get("host"):
        raise UsageError(
            "jdbc: a host of this URL has a form that is not supported; write HOST:PORT, address=(host=HOST)(port=PORT) or "
            "(host=HOST,port=PORT)"
        )
    port = small.get("port", "")
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise UsageError(f"jdbc: port={port} of host {small['host']} is not a number from 1 to 65535")
    if small.get("protocol", "tcp").lower() not in ("tcp", ""):
        raise UsageError(
            f"jdbc: host {small['host']} has protocol={small['protocol']}, a local connection that no network sees"
        )
    if "path" in small or "localsocket" in small:
        raise UsageError(f"jdbc: host {small['host']} is a Unix-domain socket, a local connection that no network sees")
    properties = {
        name: value
        for name, value in named.items()
        if name.lower() not in ("host", "port", "type", "protocol", "priority")
    }
    host = f"[{small['host']}]" if ":" in small["host"] and not small["host"].startswith("[") else small["host"]
    return host, port, "&".join(f"{name}={quote(value, safe='')}" for name, value in properties.items())


def _firebird(url: str, word: str, more: str, rest: str) -> tuple[Single, ...]:
    """Jaybird's URLs: //HOST:PORT/DATABASE, or the old form HOST/PORT:DATABASE. Raises UsageError. Pure."""
    kind = more.strip(":")
    if kind in ("local", "embedded"):
        raise UsageError(f"jdbc:{word}:{kind}: opens the database in this process, a connection that no network sees")
    if kind not in ("", "java", "native"):
        raise UsageError(f"jdbc:{word}:{kind}: not supported; write jdbc:{word}://HOST:PORT/DATABASE")
    if kind == "native":
        raise UsageError(f"jdbc:{word}:native: only Jaybird's pure Java connection is examined; write jdbc:{word}://…")
    if rest.startswith("//"):
        hosts, _ = _cut(rest[2:])
        if "," in hosts:
            raise UsageError(f"jdbc:{word}: Jaybird connects to one host; name one")
        return (Single(url, hosts),)
    old = re.fullmatch(r"(\[[0-9a-fA-F:]+\]|[\w.-]+)(?:/(\d+))?:(.*)", rest)
    if old is None:
        raise UsageError(f"jdbc:{word}: names no host; write jdbc:{word}://HOST:PORT/DATABASE")
    place = f"{old[1]}:{old[2] or PORTS['firebird']}"
    return (Single(f"jdbc:{word}://{place}/{old[3]}", place),)
