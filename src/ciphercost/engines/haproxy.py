"""HAProxy as a web server: it answers requests itself, from memory. `_web` has what web servers share.

`http-request return` keeps a file in memory and sends it from one buffer. That buffer has HAProxy's default size, as
wherever it is used as a proxy, so only small documents fit. It states what a witness's connection negotiated in the
answer to the witness's request. Its log would not do: a thread drops its line where another one is writing. What the
load negotiates is counted by HAProxy itself, which answers on a socket in its directory.
"""

from __future__ import annotations

import csv
import os
import re
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from ciphercost.engines._web.answer import Answer
from ciphercost.engines._web.family import CANARY_PATH, Config, Web, WebServer, versions_and_suites
from ciphercost.engines._web.log import NOTE, VERIFIED, Line, Log, line
from ciphercost.engines._web.settings import NO_PROXY, OF_HTTP, with_settings
from ciphercost.engines.capabilities.settings import Decided
from ciphercost.host import deadlines, haproxy, tls_names, versions
from ciphercost.host.installation import Installation
from ciphercost.host.launch import Launch
from ciphercost.model.errors import RunError, UsageError

SOCKET = "stats.sock"
"""In the server's directory, where it runs: HAProxy takes no path of more than 97 bytes."""
BUFFER = 16384
"""HAProxy's default size of a buffer, from which it answers."""
RESERVED = 1384
"""Bytes of the buffer for headers: 1024 that HAProxy sets aside, and those of the answer."""
SPARE = 1000
"""Spare connections: with one connection per operation, the server closes each a little after the next one opens."""
LEVEL_SINCE = "3.0"
"""Oldest version with a setting of OpenSSL's security level, which certificates with weak keys need."""
TYPES = MappingProxyType(
    {".html": "text/html", ".txt": "text/plain", ".jpg": "image/jpeg", ".json": "application/json"}
)
CONFIGURATION = """\
global
    maxconn {connections}
    nbthread {cores}
    tune.bufsize {buffer}
    tune.maxrewrite 1024
    tune.ssl.cachesize {cached}
    ssl-default-bind-options ssl-min-ver {oldest} ssl-max-ver TLSv1.3{level}
    stats socket unix@{socket} mode 600 level user

defaults
    mode http
    timeout connect 10s
    timeout client 24d
    timeout server 24d
    timeout http-keep-alive 24d

frontend documents
    bind {address}:{clear} backlog 4096{tls}
    http-request return status 200 content-type text/plain lf-string "{line}" if {{ path {canary} }} {{ url_param({note}) -m found }}
{documents}    http-request return status 404
"""
TLS = (
    "\n    bind {address}:{port} backlog 4096 ssl crt {both} alpn h2,http/1.1 ciphers {suites} ciphersuites {suites13}"
    "{curves}{tickets}{client}"
)
LINE = "\t".join(
    (
        f"%[url_param({NOTE})]",
        "%[ssl_fc_protocol]",
        "%[ssl_fc_cipher]",
        "%[ssl_fc_is_resumed,iif(r,.)]",
        f"%[ssl_c_used,iif({VERIFIED},-)]",
        "%HV",
    )
)
"""Its answer to a witness: note, protocol, cipher, whether resumed, whether the client showed a certificate, which must be valid
then, and the HTTP version."""
CLIENT = " ca-file {ca} verify required"
FULL, RESUMED = "ssl_sess", "ssl_reused_sess"
"""HAProxy's own counters: full TLS handshakes of a frontend, and those that resumed a session."""


GLOBAL = re.compile(r"tune\..*|nb.*|max.*|busy-polling|thread.*|cpu-.*|numa-.*|no.*|ssl-.*|profiling.*|limited-quic")
"""Keywords of the section `global`; all others go into `defaults`."""


class HAProxyServer(WebServer):
    """A server that ciphercost started."""

    _counted = (0, 0)

    def handshakes(self) -> tuple[int, int]:
        """Read HAProxy's counters, which also have the handshakes of the witnesses."""
        now = counters(self.directory)
        before, self._counted = self._counted, now
        return now[0] - before[0], now[1] - before[1]


class HAProxy(Web):
    name = "haproxy"
    title = "HAProxy"
    programs = (haproxy.PROGRAM,)
    suites = MappingProxyType({"2.6": "bookworm", "3.0": "trixie"})
    packages = (haproxy.PACKAGE,)
    version_option = haproxy.VERSION_OPTION
    version_words = haproxy.VERSION_WORDS
    setting_example = "tune.ssl.maxrecord=4096"
    decided_settings = (
        Decided("ssl_default_bind_options|tune.ssl.default_dh_param", "version"),
        Decided("ssl_default_bind_cipher.*", "cipher"),
        Decided("ssl_default_bind_curves", "group"),
        Decided("crt_base|ssl_load_extra_files|ssl_default_bind_sigalgs", "certificate"),
        Decided("ca_base|ssl_default_bind_client_sigalgs", "client-cert", value="on"),
        Decided("http3|h2_workaround.*|h1_.*", why=OF_HTTP),
        Decided("balance|server|default_server|default_backend|retries|ssl_(default_)?server.*", why=NO_PROXY),
    )
    kept_settings = (
        "bind|daemon|chroot|user|group|[ug]id|stats|log.*|pidfile|mode|master_worker|program|setenv|presetenv|unsetenv|resetenv"
        "|lua.*|module.*|insecure.*|external.*|unix_bind|nbproc|maxconn|frontend|backend|listen|http_(request|response|after).*"
        "|default_path|description|node|localpeer|server_state.*|set_dumpable|ssl_engine.*|errorfile.*"
    )
    usual_workload = "page"
    sendfile = False
    stating = "HAProxy answered only"
    http2_since = "1.9"
    no_http3 = "ciphercost starts HAProxy without QUIC, which its packages lack or have in part"
    largest_document = BUFFER - RESERVED
    why_largest = "it answers from one buffer in memory, which has its default size of 16 KB here"

    def check_factors(self, mechanism: str, factors: Mapping[str, str], version: str) -> None:
        old = bool(version) and versions.version_key(version) < versions.version_key(LEVEL_SINCE)
        if mechanism == "tls" and old and factors["certificate"] in tls_names.WEAK:
            raise UsageError(
                f"certificate={factors['certificate']}: HAProxy {version} has no setting for OpenSSL's security level, which refuses it; "
                f"use HAProxy {LEVEL_SINCE} or later, or write certificate=rsa2048 or larger"
            )

    def write(self, config: Config, version: str) -> list[str | Path]:
        return haproxy.arguments(
            config.directory, with_settings(configuration(config, version), config.settings, _section)
        )

    def malformed(self, name: str, value: str) -> str:  # noqa: ARG002
        """Refuse what would begin a comment or quote the end of the line."""
        return "a value of HAProxy has no # and does not end with a backslash" if re.search(r"#|\\$", value) else ""

    def running(self, installation: Installation, started: Launch, config: Config) -> WebServer:  # noqa: ARG002
        return HAProxyServer(started, config, Log(config.log))

    def stated(self, server: WebServer, note: str, answers: Sequence[Answer]) -> list[Line]:  # noqa: ARG002
        return [stated for answer in answers if (stated := line(answer.body)) and stated.note == note]


def _section(name: str) -> str:
    """Return the line below which a keyword belongs."""
    return "global\n" if GLOBAL.fullmatch(name) else "defaults\n"


def configuration(config: Config, version: str) -> str:
    """Return the configuration. Writes the file of certificate and key."""
    given, tls, oldest, level = config.tls, "", "TLSv1.2", ""
    if given:
        if given["security_level"] and versions.version_key(version) >= versions.version_key(LEVEL_SINCE):
            level = f"\n    ssl-security-level {given['security_level']}"
        protocols, suites = versions_and_suites(given)
        oldest = "TLSv1.0" if protocols[0] == "TLSv1" else protocols[0]
        tls = TLS.format(
            address=config.address,
            port=config.ports.tls,
            both=haproxy.both(config.directory, Path(given["certificate"]), Path(given["key"])),
            suites=suites,
            suites13=":".join(tls_names.offered("1.3")),
            curves=f" curves {given['group']}" if given["group"] else "",
            tickets="" if given["resumption"] == "tickets" else " no-tls-tickets",
            client=CLIENT.format(ca=given["client_ca"]) if given["client_ca"] else "",
        )
    return CONFIGURATION.format(
        connections=config.connections + SPARE,
        cores=config.cores,
        buffer=BUFFER,
        cached=200_000 if given and given["resumption"] == "cache" else 0,
        oldest=oldest,
        level=level,
        socket=SOCKET,
        address=config.address,
        clear=config.ports.clear,
        tls=tls,
        line=LINE,
        canary=CANARY_PATH,
        note=NOTE,
        documents="".join(_rules(config.documents)),
    )


def _rules(documents: Path) -> list[str]:
    """Return a rule for each document that fits into a buffer."""
    rules = []
    for file in sorted(documents.rglob("*")):
        if file.is_file():
            path = f"/{file.relative_to(documents)}"
            paths = f"{path} {path.removesuffix('index.html')}" if file.name == "index.html" else path
            kind = TYPES.get(file.suffix, "application/octet-stream")
            rules.append(f"    http-request return status 200 content-type {kind} file {file} if {{ path {paths} }}\n")
    return rules


def counters(directory: Path) -> tuple[int, int]:
    """Ask HAProxy for its counters: (full TLS handshakes, resumed ones). Raises RunError if it does not answer."""
    place = os.open(directory, os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(deadlines.query())
            connection.connect(f"/proc/self/fd/{place}/{SOCKET}")  # a short path
            connection.sendall(b"show stat\n")
            return counted(b"".join(iter(lambda: connection.recv(65536), b"")).decode())
    except OSError as error:
        raise RunError(f"HAProxy does not report its TLS handshakes: {error.strerror or error}") from None
    finally:
        os.close(place)


def counted(table: str) -> tuple[int, int]:
    """Read the counters from HAProxy's table of statistics, as CSV. Pure."""
    rows: list[Mapping[str, str]] = list(csv.DictReader(table.removeprefix("# ").splitlines()))
    front = [row for row in rows if row.get("svname") == "FRONTEND"]
    return sum(int(row[FULL] or 0) for row in front), sum(int(row[RESUMED] or 0) for row in front)


ENGINE = HAProxy()
