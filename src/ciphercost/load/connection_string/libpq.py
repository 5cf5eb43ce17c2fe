"""PostgreSQL's connection strings as libpq reads them: the URL first, then the service file, the environment, and its defaults.

Sources: the PostgreSQL documentation, "Database Connection Control Functions" (parameters, service file, environment variables)
and "SSL Support" (default files, `sslmode=require` with a root certificate).
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import cast
from urllib.parse import quote, unquote

import msgspec

from ciphercost.host.client_identity import PASSPHRASE, Named
from ciphercost.load.connection_string import (
    SYSTEM,
    ConnectionString,
    Level,
    Place,
    holds_password,
    host_and_port,
    not_a_url,
    parameters,
    pg_service,
    port_number,
    split,
    unknown,
)
from ciphercost.model.connection import Changes, TlsVersion
from ciphercost.model.constrained_types import DIRECT
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.secret import Secret

SCHEMES = ("postgresql", "postgres")
INSTEAD = "set PGPASSWORD, or put it into ~/.pgpass"
LEVELS = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
VERSIONS: dict[str, TlsVersion] = {"tlsv1": "1.0", "tlsv1.1": "1.1", "tlsv1.2": "1.2", "tlsv1.3": "1.3"}
LEAST_VERSION = "1.2"
PORT = 5432

HONOURED = (
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "passfile",
    "sslmode",
    "sslrootcert",
    "sslcrl",
    "sslcert",
    "sslkey",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
    "service",
    "servicefile",
)
SECRETS = ("password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret")
"""Parameters that hold a secret, which must not be on a command line."""
_WAITS = "how long a client waits; ciphercost has its own deadlines (CIPHERCOST_TIMEOUT)"
_SESSION = "about the session, not about encryption"
_WHICH = "which of several servers a client chooses; ciphercost examines each"
_KERBEROS = "about Kerberos, which is not examined"
HARMLESS: Mapping[str, str] = MappingProxyType(
    {
        "connect_timeout": _WAITS,
        "tcp_user_timeout": _WAITS,
        **dict.fromkeys(("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"), _WAITS),
        "application_name": _SESSION,
        "fallback_application_name": _SESSION,
        "client_encoding": _SESSION,
        "options": _SESSION,
        "target_session_attrs": _WHICH,
        "load_balance_hosts": _WHICH,
        "krbsrvname": _KERBEROS,
        "gsslib": _KERBEROS,
        "gssdelegation": _KERBEROS,
        "requirepeer": "only for Unix-domain sockets",
        "require_auth": "about the login, not about encryption; not checked",
        "sslcompression": "no server compresses TLS any more",
        "min_protocol_version": "PostgreSQL's own protocol, not TLS",
        "max_protocol_version": "PostgreSQL's own protocol, not TLS",
    }
)
"""Named in one line and not used: parameter, and why."""
_ASKED = "ciphercost's client does not see whether the server asks; the proof says whether it requires the certificate: write allow"
_GSS = "Kerberos encryption is not supported; ciphercost examines TLS"
_NAMELESS = "ciphercost's client always sends the server's name; remove it"
CHOICES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "channel_binding": {"disable": "", "prefer": "", "require": ""},
        "sslnegotiation": {"postgres": "", DIRECT: ""},
        "gssencmode": {"disable": "", "prefer": "", "require": _GSS},
        "sslcertmode": {"disable": "", "allow": "", "require": _ASKED},
        "sslsni": {"1": "", "0": _NAMELESS},
        "replication": {**dict.fromkeys(("false", "off", "no", "0"), "")},
    }
)
"""Parameters of which some values change nothing here (""), and others are refused for a reason."""
AS_FACTORS = ("channel_binding", "sslnegotiation")
"""Those that become factors of `tls`."""
_OAUTH = "a login by OAuth is not supported"
REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "sslcrldir": "name the revocation lists as files, with sslcrl",
        "sslkeylogfile": "ciphercost writes no TLS keys to a file; remove it",
        "replication": "replication connections are not supported; remove it",
        **dict.fromkeys(("oauth_issuer", "oauth_client_id", "oauth_scope"), _OAUTH),
    }
)
KNOWN = (*HONOURED, *HARMLESS, *CHOICES, *REFUSED, "ssl")

ENVIRONMENT: Mapping[str, str] = MappingProxyType(
    {
        "PGHOST": "host",
        "PGHOSTADDR": "hostaddr",
        "PGPORT": "port",
        "PGDATABASE": "dbname",
        "PGUSER": "user",
        "PGPASSFILE": "passfile",
        "PGSSLMODE": "sslmode",
        "PGSSLROOTCERT": "sslrootcert",
        "PGSSLCRL": "sslcrl",
        "PGSSLCRLDIR": "sslcrldir",
        "PGSSLMINPROTOCOLVERSION": "ssl_min_protocol_version",
        "PGSSLMAXPROTOCOLVERSION": "ssl_max_protocol_version",
        "PGSSLCERT": "sslcert",
        "PGSSLKEY": "sslkey",
        "PGSSLCERTMODE": "sslcertmode",
        "PGSSLNEGOTIATION": "sslnegotiation",
        "PGSSLSNI": "sslsni",
        "PGCHANNELBINDING": "channel_binding",
        "PGGSSENCMODE": "gssencmode",
    }
)
"""Variables that may change what is examined. The others, such as PGAPPNAME and PGOPTIONS, change nothing here."""


class Value(msgspec.Struct, frozen=True):
    """The value of a parameter, and how the user wrote it."""

    text: str
    as_written: str
    """`sslmode=disable`, `PGSSLMODE=disable`, `sslmode=disable of service shop`."""
    elsewhere: bool = False
    """Whether it is not in the URL."""


def read(url: str) -> ConnectionString:
    """What libpq makes of this URL here. Reads the environment, the service file, and whether default files exist.

    Raises UsageError, which never repeats a password.
    """
    given = _of_url(url)
    notes = _check(given)
    values, password, of_key = _with_defaults(given)
    _check({name: value for name, value in values.items() if value.elsewhere})
    places = _places(values)
    user = _text(values, "user") or getpass.getuser()
    rest = "&".join(
        f"{name}={quote(value.text, safe='/:,~')}"
        for name, value in given.items()
        if name not in ("host", "hostaddr", "port", "user", "dbname")
    )
    level = _text(values, "sslmode")
    decisive = [
        value.as_written
        for name, value in values.items()
        if value.elsewhere and name in HONOURED and name != "passfile"
    ]
    if "sslrootcert" not in values and _default("root.crt") and level in ("require", "verify-ca", "verify-full"):
        decisive.append(f"the authority in {_default('root.crt')}")
    if decisive:
        notes.insert(0, f"Not in the string, but used, as libpq does: {', '.join(decisive)}")
    if "host" not in values and "hostaddr" not in values:
        notes.append(
            f"The string names no host: libpq would use a Unix-domain socket, an unencrypted local connection; this is {places[0]}"
        )
    identity, by_default = _identity(values, level)
    if by_default:
        notes.append(f"Not in the string, but used, as libpq does: the client certificate in {by_default}")
    return ConnectionString(
        places=places,
        urls=tuple(_alone(given, place, rest) for place in places),
        user=user,
        database=_text(values, "dbname") or user,
        password=password,
        passfile=_text(values, "passfile"),
        identity=identity._replace(passphrase=of_key) if identity else None,
        notes=tuple(notes),
        stronger="write sslmode=verify-full and sslrootcert=FILE",
        instead_of_socket="PostgreSQL has no TLS there, so a run would have no encrypted arm; name a host: "
        f"postgresql://{quote(user, safe='')}@127.0.0.1:{places[0].port}/{quote(_text(values, 'dbname') or user, safe='')}",
        **_encryption(values, level),  # type: ignore[arg-type]
    )


def _encryption(values: Mapping[str, Value], level: str) -> dict[str, object]:
    """The fields of ConnectionString about encryption. Raises UsageError for what libpq refuses."""
    if level not in ("", *LEVELS):
        raise UsageError(f"{values['sslmode'].as_written}: {nearest(level, LEVELS)}")
    ca = _text(values, "sslrootcert")
    as_written = values["sslmode"].as_written if level else ""
    if ca == SYSTEM:
        if level not in ("", "verify-full"):
            raise UsageError(
                f"{as_written} with sslrootcert=system: libpq refuses this, since it verifies too little; write sslmode=verify-full"
            )
        level, as_written = "verify-full", as_written or "sslrootcert=system, which implies sslmode=verify-full"
    elif not level and ca and not values["sslrootcert"].elsewhere:
        level, as_written = (
            "prefer",
            f"sslrootcert={ca} without sslmode, which is sslmode=prefer to libpq and checks no certificate",
        )
    elif not ca and level in ("require", "verify-ca", "verify-full"):
        ca = _default("root.crt")
    if ca and ca != SYSTEM and not Path(ca).exists():
        if level == "require":
            ca = ""  # as libpq: a missing file is no error with require
        elif level in ("verify-ca", "verify-full"):
            raise UsageError(f"sslrootcert={ca}: no such file")
    if _text(values, "channel_binding") == "require" and level in ("", "allow", "prefer"):
        # A login that is bound to the TLS connection has one, so this enforces more than the level says.
        level, as_written = "require", values["channel_binding"].as_written
    if ca and level == "require":
        level, as_written = (
            "verify-ca",
            f"{as_written} with a root certificate ({ca}), which libpq treats like sslmode=verify-ca",
        )
    if level == "verify-full" and "hostaddr" in values and "host" not in values:
        raise UsageError(f"{as_written}: libpq needs the server's name for that; write host=NAME beside hostaddr")
    listed = _text(values, "sslcrl") or (_default("root.crl") if level.startswith("verify") else "")
    tls: Changes = {}
    for name in ("ssl_min_protocol_version", "ssl_max_protocol_version"):
        if value := _text(values, name):
            if value.lower() not in VERSIONS:
                raise UsageError(
                    f"{values[name].as_written}: {nearest(value, ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3'])}"
                )
            tls["tls_min" if "min" in name else "tls_max"] = VERSIONS[value.lower()]
    if (tls.get("tls_min") or LEAST_VERSION) > (tls.get("tls_max") or "9"):
        raise UsageError(
            "ssl_min_protocol_version (TLSv1.2 unless it is given) is above ssl_max_protocol_version, which leaves no version of TLS"
        )
    return {
        "level": cast("Level", level),
        "said": as_written,
        "unsaid": ""
        if level
        else "The string says nothing about encryption, so this is ciphercost's own strict client. libpq's default is "
        "sslmode=prefer, which whoever is in the path can turn off: write sslmode=verify-full",
        "ca": ca,
        "missing_ca": f"there is no {_home('root.crt')}, and libpq then refuses to connect: write sslrootcert=FILE, or "
        "sslrootcert=system for the authorities that this system trusts",
        "require_verifies": True,
        "crl": (listed,) if listed else (),
        "tls": tls,
        "factors": _factors(values, level),
    }


def _factors(values: Mapping[str, Value], level: str) -> dict[str, str]:
    """What the string asks of TLS's beginning and of the login's binding to it. Raises UsageError for what libpq refuses."""
    factors = {}
    if negotiation := _text(values, "sslnegotiation"):
        if negotiation == DIRECT and level not in ("require", "verify-ca", "verify-full"):
            raise UsageError(
                f"{values['sslnegotiation'].as_written}: libpq refuses it with a weaker sslmode than require; write sslmode=verify-full too"
            )
        factors["negotiation"] = negotiation
    if binding := _text(values, "channel_binding"):
        if binding == "require" and level == "disable":
            raise UsageError(
                f"{values['channel_binding'].as_written}: there is no TLS connection to bind the login to, because of {values['sslmode'].as_written}; "
                "remove one of them"
            )
        factors["channel-binding"] = binding
    return factors


# ── where values come from ────────────────────────────────────────────────────────────────────────────────────────────


def _of_url(url: str) -> dict[str, Value]:
    """Parameters that the URL gives, each under its own name; the later one wins. Raises UsageError. Pure."""
    parts = split(url, SCHEMES, INSTEAD)
    texts: dict[str, str] = {}
    if parts.user:
        texts["user"] = unquote(parts.user)
    hosts_and_ports = [host_and_port(one) for one in parts.hosts.split(",")]
    if any(host for host, _ in hosts_and_ports):
        texts["host"] = ",".join(host for host, _ in hosts_and_ports)
    if any(port for _, port in hosts_and_ports):
        if not all(port.isascii() and port.isdigit() for _, port in hosts_and_ports if port):
            raise not_a_url()
        texts["port"] = ",".join(port for _, port in hosts_and_ports)
    if parts.path:
        texts["dbname"] = unquote(parts.path)
    for name, value in parameters(parts.query):
        if name in SECRETS:
            raise holds_password(f"set {PASSPHRASE}" if name == "sslpassword" else INSTEAD)
        if name == "ssl":  # as pgjdbc has it; libpq accepts it in URLs only
            if value != "true":
                raise UsageError(
                    f"ssl={value}: libpq knows only ssl=true, which means sslmode=require; write sslmode=…"
                )
            name, value = "sslmode", "require"
        if name not in KNOWN:
            raise unknown(name, KNOWN)
        texts[name] = value
    # Like libpq, which counts an empty value as not given.
    return {name: Value(value, f"{name}={value}") for name, value in texts.items() if value}


def _check(given: Mapping[str, Value]) -> list[str]:
    """A line for each harmless parameter. Raises UsageError for one that can't be honoured. Pure."""
    lines = []
    for name, value in given.items():
        if name in CHOICES and value.text in CHOICES[name]:
            if reason := CHOICES[name][value.text]:
                raise UsageError(f"{value.as_written}: {reason}")
            if name not in AS_FACTORS:
                lines.append(f"{value.as_written}: changes nothing here")
        elif name in REFUSED:
            raise UsageError(f"{value.as_written}: {REFUSED[name]}")
        elif name in CHOICES:
            raise UsageError(f"{value.as_written}: {nearest(value.text, CHOICES[name])}")
        elif name in HARMLESS:
            lines.append(f"{value.as_written}: ignored; {HARMLESS[name]}")
    return lines


def _with_defaults(given: Mapping[str, Value]) -> tuple[dict[str, Value], Secret | None, Secret | None]:
    """The parameters, completed by the service and then by the environment; the service's password, and that of its key.

    Raises UsageError.
    """
    values, password, of_key = dict(given), None, None
    service = _text(given, "service") or os.environ.get("PGSERVICE", "")
    if service:
        settings, where = pg_service.find(service, _text(given, "servicefile"))
        for name, value in settings.items():
            if name == "password":
                password = Secret(value)
                continue
            if name == "sslpassword":
                of_key = Secret(value)
                continue
            if name in SECRETS or name not in KNOWN or name in ("service", "servicefile", "ssl"):
                raise unknown(name, KNOWN, where)
            values.setdefault(name, Value(value, f"{name}={value} of service {service}", elsewhere=True))
    for variable, name in ENVIRONMENT.items():
        if value := os.environ.get(variable, ""):
            values.setdefault(name, Value(value, f"{variable}={value}", elsewhere=True))
    return values, password, of_key


def _identity(values: Mapping[str, Value], level: str) -> tuple[Named | None, str]:
    """(the client's certificate and key, the default file if that is the certificate). Raises UsageError."""
    if level == "disable" or _text(values, "sslcertmode") == "disable":
        return None, ""
    by_default = "" if "sslcert" in values else _default("postgresql.crt")
    if not (cert := _text(values, "sslcert") or by_default):
        if "sslkey" in values:
            raise UsageError(f"{values['sslkey'].as_written}: a key without its certificate; write sslcert=FILE too")
        return None, ""
    # As in libpq, where a file without a key in it needs one beside it.
    key = _text(values, "sslkey") or _default("postgresql.key")
    return Named(cert, key, "sslcert", "sslkey"), by_default


def _places(values: Mapping[str, Value]) -> tuple[Place, ...]:
    """The servers, in order. Raises UsageError if hosts, addresses and ports don't belong together."""
    hosts, addresses, ports = (_text(values, name).split(",") for name in ("host", "hostaddr", "port"))
    count = max(len(hosts), len(addresses))
    if "host" in values and "hostaddr" in values and len(hosts) != len(addresses):
        raise UsageError(f"host names {len(hosts)} servers and hostaddr {len(addresses)}; name as many")
    if len(ports) not in (1, count):
        raise UsageError(f"port has {len(ports)} values for {count} servers; write one, or one for each")
    places = []
    for number in range(count):
        host = hosts[number] if number < len(hosts) else ""
        address = addresses[number] if number < len(addresses) else ""
        written = ports[number if len(ports) > 1 else 0]
        port = port_number(written, values["port"].as_written) if written else PORT
        if host.startswith(("/", "@")) and not address:
            places.append(Place("", port, socket=host))
        else:
            places.append(Place(host or address or "127.0.0.1", port, address if host else ""))
    return tuple(places)


def _alone(given: Mapping[str, Value], place: Place, rest: str) -> str:
    """A URL of one server, with the parameters `rest`. Pure."""
    user = f"{quote(given['user'].text, safe='')}@" if "user" in given else ""
    database = quote(_text(given, "dbname"), safe="")
    place_parameters = [f"host={quote(place.socket, safe='/')}"] if place.socket else []
    place_parameters += [f"hostaddr={place.address}"] if place.address else []
    host = f"[{place.host}]" if ":" in place.host else quote(place.host, safe="")
    query = "&".join([*place_parameters, *([rest] if rest else [])])
    where = "" if place.socket else f"{host}:{place.port}"
    return f"postgresql://{user}{where}/{database}" + (f"?{query}" if query else "")


def _text(values: Mapping[str, Value], name: str) -> str:
    return values[name].text if name in values else ""


def _home(name: str) -> Path:
    return Path.home() / ".postgresql" / name


def _default(name: str) -> str:
    """Path of one of libpq's default files; empty if there is none."""
    path = _home(name)
    return str(path) if path.exists() else ""
