"""Connection strings of MySQL and MariaDB: the URL first, then the [client] groups of the option files, as their clients read them.

Sources: the MySQL manual, "Command Options for Encrypted Connections" and "Connecting Using URI-Like Strings"; MariaDB's pages
on its client's options. MariaDB's `--ssl` falls back to an unencrypted connection: seen with the clients 10.11 and 11.8.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import quote, unquote

from ciphercost.host.client_identity import PASSPHRASE, Named
from ciphercost.load.connection_string import (
    ConnectionString,
    Level,
    Place,
    holds_password,
    host_and_port,
    not_a_url,
    option_files,
    parameters,
    port_number,
    split,
    unknown,
)
from ciphercost.model.connection import Changes, TlsVersion
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.secret import Secret

INSTEAD = "set MYSQL_PWD, or put it into the [client] group of ~/.my.cnf"
PORT = 3306
MODES: Mapping[str, Level] = MappingProxyType(
    {
        "DISABLED": "disable",
        "PREFERRED": "prefer",
        "REQUIRED": "require",
        "VERIFY_CA": "verify-ca",
        "VERIFY_IDENTITY": "verify-full",
    }
)
VERSIONS: dict[str, TlsVersion] = {"TLSv1": "1.0", "TLSv1.1": "1.1", "TLSv1.2": "1.2", "TLSv1.3": "1.3"}
ON, OFF = ("1", "true", "on", "yes", ""), ("0", "false", "off", "no")

HONOURED = (
    "ssl-mode",
    "ssl",
    "ssl-verify-server-cert",
    "ssl-ca",
    "ssl-capath",
    "ssl-crl",
    "ssl-cert",
    "ssl-key",
    "tls-version",
    "tls-versions",
    "socket",
    "protocol",
    "user",
    "host",
    "port",
)
_WAITS = "how long a client waits; ciphercost has its own deadlines (CIPHERCOST_TIMEOUT)"
_SESSION = "about the session, not about encryption"
_LOGIN = "about the login, not about encryption"
HARMLESS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            ("connect-timeout", "connection-timeout", "read-timeout", "write-timeout", "timeout", "socket-timeout"),
            _WAITS,
        ),
        **dict.fromkeys(
            (
                "charset",
                "default-character-set",
                "character-sets-dir",
                "collation",
                "init-command",
                "max-allowed-packet",
                "net-buffer-length",
                "connect-attributes",
                "connection-attributes",
                "program-name",
                "reconnect",
                "autocommit",
                "time-zone",
                "connection-limit",
                "pool-size",
                "local-infile",
            ),
            _SESSION,
        ),
        **dict.fromkeys(
            ("compress", "compression", "compression-algorithms", "compression-level", "zstd-compression-level"),
            _SESSION,
        ),
        **dict.fromkeys(
            (
                "auth-method",
                "default-auth",
                "plugin-dir",
                "get-server-public-key",
                "server-public-key-path",
                "enable-cleartext-plugin",
            ),
            _LOGIN,
        ),
    }
)
"""Named in one line and not used: parameter, and why."""
_CIPHERS = "name the cipher with --set cipher=…, which also proves that it was negotiated"
_FINGERPRINT = "verifying the server by its certificate's fingerprint is not supported yet"
REFUSED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("ssl-cipher", "tls-ciphersuites", "tls-ciphers"), _CIPHERS),
        **dict.fromkeys(("ssl-fp", "ssl-fplist", "ssl-fp-list", "tls-fp", "tls-fplist"), _FINGERPRINT),
        "ssl-crlpath": "name the revocation lists as a file, with ssl-crl",
        "ssl-fips-mode": "ciphercost's client has no FIPS mode; remove it",
        "ssl-session-data": "ciphercost resumes no stored session; remove it",
        "ssl-session-data-continue-on-failed-reuse": "ciphercost resumes no stored session; remove it",
        "tls-sni-servername": "ciphercost's client always sends the name of the URL; remove it",
    }
)
OF_KEY = ("ssl-passphrase", "tls-passphrase")
"""MariaDB's names of the passphrase of a key."""
SECRETS = ("password", "password1", "password2", "password3", "pwd", "passwd", *OF_KEY)
KNOWN = (*HONOURED, *HARMLESS, *REFUSED)


class Value(NamedTuple):
    """The value of a parameter, and how the user wrote it."""

    text: str
    as_written: str
    file: str = ""
    """The option file that has it; empty: the URL."""


def read(url: str, engine: str) -> ConnectionString:
    """What the clients of `engine`, mysql or mariadb, make of this URL here. Reads the option files.

    Raises UsageError, which never repeats a password.
    """
    parts = split(url, (engine,), INSTEAD)
    given, notes = _of_query(parts.query)
    options = option_files.read(engine)
    values = dict(given)
    for name, (text, file) in options.items():
        if name not in SECRETS:
            values.setdefault(name, Value(text, f"{name}={text} in {file}", file))
    for name, value in values.items():
        if name in REFUSED and (value.file or name in given) and not _ignored(name, value):
            raise UsageError(f"{value.as_written}: {REFUSED[name]}")
    user = unquote(parts.user or "") or _text(values, "user") or getpass.getuser()
    database = unquote(parts.path)
    places = _places(parts.hosts, values, notes, engine)
    written = given.get("socket")
    decisive = [
        value.as_written
        for name, value in values.items()
        if value.file and name not in ("user", "host", "port", "protocol", "socket")
    ]
    if decisive:
        notes.insert(0, f"Not in the string, but used, as the clients do: {', '.join(decisive)}")
    level, as_written = _level(values, engine)
    return ConnectionString(
        places=places,
        urls=tuple(_alone(engine, parts.user, place, parts.path, parts.query) for place in places),
        user=user,
        database=database,
        level=level,
        said=as_written,
        unsaid="" if level else _unsaid(engine),
        ca=_text(values, "ssl-ca") or _text(values, "ssl-capath"),
        missing_ca="MySQL's clients then refuse to connect without an authority: write ssl-ca=FILE"
        if engine == "mysql"
        else "",
        crl=(_text(values, "ssl-crl"),) if _text(values, "ssl-crl") and level.startswith("verify") else (),
        identity=_identity(values, options, level),
        tls=_versions(values),
        notes=tuple(notes),
        stronger="write ssl-mode=VERIFY_IDENTITY and ssl-ca=FILE"
        if engine == "mysql"
        else "write ssl-verify-server-cert=1 and ssl-ca=FILE",
        plain_socket=places[0].socket or (written.text if written else ""),
        instead_of_socket=f"To examine the server's TLS, with the socket as the unencrypted control, write 127.0.0.1:{places[0].port} for "
        "the host and keep the socket"
        if places[0].socket
        else "",
    )


def _of_query(query: str) -> tuple[dict[str, Value], list[str]]:
    """The parameters of the URL under their canonical names, and a line for each harmless one. Raises UsageError. Pure."""
    given: dict[str, Value] = {}
    notes = []
    for written, value in parameters(query):
        name = written.lower().replace("_", "-")
        if name in SECRETS:
            raise holds_password(f"set {PASSPHRASE}" if name in OF_KEY else INSTEAD)
        if name not in KNOWN:
            raise unknown(written, KNOWN)
        if name in HARMLESS:
            notes.append(f"{written}={value}: ignored; {HARMLESS[name]}")
        given[name] = Value(value, f"{written}={value}")
    return given, notes


def _ignored(name: str, value: Value) -> bool:
    """Whether an option file's cipher setting has no value, which is the clients' default. Pure."""
    return bool(value.file) and not value.text and name.endswith(("cipher", "ciphersuites", "-cert", "-key"))


def _level(values: Mapping[str, Value], engine: str) -> tuple[Level, str]:
    """(what is asked of encryption, how the user wrote it). Raises UsageError for a value that no client knows. Pure."""
    mode, switch, verify = (values.get(name) for name in ("ssl-mode", "ssl", "ssl-verify-server-cert"))
    if mode:
        if mode.text.upper() not in MODES:
            raise UsageError(f"{mode.as_written}: {nearest(mode.text, MODES)}")
        return MODES[mode.text.upper()], mode.as_written
    checks = _switched(verify) if verify else None
    encrypts = _switched(switch) if switch else None
    if encrypts is False and switch:
        return "disable", switch.as_written
    if checks and verify:
        return "verify-full", verify.as_written
    named = values.get("ssl-ca") or values.get("ssl-capath")
    if named and engine == "mysql":
        return "verify-ca", f"{named.as_written} without ssl-mode, which is VERIFY_CA to MySQL's clients"
    # MariaDB's clients go on unencrypted if the server does not offer TLS.
    for value in (switch, verify, named):
        if value:
            return (
                "prefer",
                f"{value.as_written} without ssl-verify-server-cert, with which MariaDB's clients also connect unencrypted",
            )
    return "", ""


def _switched(value: Value) -> bool:
    if value.text.lower() not in (*ON, *OFF):
        raise UsageError(f"{value.as_written}: write 1 or 0")
    return value.text.lower() in ON


def _unsaid(engine: str) -> str:
    begin = "The string says nothing about encryption, so this is ciphercost's own strict client. "
    if engine == "mysql":
        return (
            begin
            + "The default of MySQL's clients is ssl-mode=PREFERRED, which whoever is in the path can turn off: write "
            "ssl-mode=VERIFY_IDENTITY"
        )
    return (
        begin + "MariaDB's clients before 11.4 do not encrypt then; later ones encrypt and verify: write "
        "ssl-verify-server-cert=1"
    )


def _identity(values: Mapping[str, Value], options: Mapping[str, tuple[str, str]], level: Level) -> Named | None:
    """The client's certificate and key, and the passphrase that an option file has. Pure."""
    cert, key = _text(values, "ssl-cert"), _text(values, "ssl-key")
    if level == "disable" or not (cert or key):
        return None
    sealed = next((options[name][0] for name in OF_KEY if name in options), "")
    return Named(cert, key, "ssl-cert", "ssl-key", Secret(sealed) if sealed else None)


def _versions(values: Mapping[str, Value]) -> Changes:
    """What the allowed versions of TLS change in a connection. Raises UsageError. Pure."""
    name = "tls-version" if _text(values, "tls-version") else "tls-versions"
    text = _text(values, name).strip("[]")
    if not text:
        return {}
    known = {word.lower(): version for word, version in VERSIONS.items()}
    named = [word.strip().lower() for word in text.split(",")]
    for word in named:
        if word not in known:
            raise UsageError(f"{values[name].as_written}: {nearest(word, VERSIONS)}")
    allowed = sorted(known[word] for word in named)
    every = list(VERSIONS.values())
    if every.index(allowed[-1]) - every.index(allowed[0]) != len(set(allowed)) - 1:
        raise UsageError(
            f"{values[name].as_written}: leaves out a version in between, which is not supported; name adjacent versions"
        )
    return {"tls_min": allowed[0], "tls_max": allowed[-1]}


def _places(hosts: str, values: Mapping[str, Value], notes: list[str], engine: str) -> tuple[Place, ...]:
    """The servers, in order. Appends a note if the clients would use a socket. Raises UsageError."""
    protocol = _text(values, "protocol").upper()
    if protocol not in ("", "TCP", "SOCKET"):
        raise UsageError(f"{values['protocol'].as_written}: {nearest(protocol, ('TCP', 'SOCKET'))}")
    if named := _text(values, "host" if not hosts else ""):
        hosts = f"[{named}]" if ":" in named else named
    port = _text(values, "port")
    number = port_number(port, values["port"].as_written) if port else PORT
    socket = values.get("socket")
    hosts_and_ports = [host_and_port(one) for one in hosts.split(",")]
    if any(port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536) for _, port in hosts_and_ports):
        raise not_a_url()
    local = len(hosts_and_ports) == 1 and hosts_and_ports[0][0] in ("", "localhost")
    if socket and not socket.file:
        _check_socket(socket, len(hosts_and_ports))
    if local and protocol != "TCP" and socket and (not socket.file or protocol == "SOCKET"):
        host, port = hosts_and_ports[0]
        return (Place(host or "127.0.0.1", int(port) if port else number, socket=socket.text),)
    if protocol == "SOCKET":
        raise UsageError(f"{values['protocol'].as_written}: that goes with localhost and socket=FILE only")
    title = "MySQL" if engine == "mysql" else "MariaDB"
    if socket and not socket.file:
        notes.append(
            f"{socket.as_written}: {title}'s own clients use it for localhost only, and connect to {hosts_and_ports[0][0] or '127.0.0.1'} by TCP; here it "
            "carries what is unencrypted"
        )
        return (
            Place(
                hosts_and_ports[0][0] or "127.0.0.1", int(hosts_and_ports[0][1]) if hosts_and_ports[0][1] else number
            ),
        )
    if local and protocol != "TCP":
        where = f" ({socket.text})" if socket else ""
        notes.append(
            f"localhost: {title}'s own clients then use a Unix-domain socket{where}, an unencrypted local connection that no network "
            "sees; this is TCP to 127.0.0.1, as most drivers connect"
        )
    return tuple(Place(host or "127.0.0.1", int(port) if port else number) for host, port in hosts_and_ports)


def _check_socket(socket: Value, hosts: int) -> None:
    """Raises UsageError for a socket of the URL that is no path, or that could be of any of several servers. Pure."""
    if hosts > 1:
        raise UsageError(f"{socket.as_written}: it is of one server, and --url names {hosts}; name one host")
    if not socket.text.startswith(("/", "@")):
        raise UsageError(
            f"{socket.as_written}: write the whole path of the server's Unix socket, e.g. /run/mysqld/mysqld.sock"
        )


def _alone(engine: str, user: str | None, place: Place, path: str, query: str) -> str:
    """A URL of one server with all parameters of the string. Pure."""
    host = f"[{place.host}]" if ":" in place.host else quote(place.host, safe="")
    # A socket's address that was written without a host must stay so: another host than localhost would mean TCP.
    where = f"{'' if place.socket and host != 'localhost' else host}:{place.port}"
    return f"{engine}://{f'{user}@' if user else ''}{where}/{path}" + (f"?{query}" if query else "")


def password_found(engine: str = "mysql") -> Secret | None:
    """Return the password from MYSQL_PWD, else from the option files; None if there is none. Raises UsageError."""
    if "MYSQL_PWD" in os.environ:
        password = os.environ["MYSQL_PWD"]
    else:
        password = option_files.read(engine).get("password", ("", ""))[0]
    return Secret(password) if password else None


def _text(values: Mapping[str, Value], name: str) -> str:
    return values[name].text if name in values else ""
