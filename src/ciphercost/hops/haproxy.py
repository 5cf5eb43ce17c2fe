"""HAProxy, which forwards TCP connections and may end their TLS."""

from __future__ import annotations

from pathlib import Path

from ciphercost.hops import Wanted
from ciphercost.hops._program import Program
from ciphercost.host.marks import own_file

CONFIGURATION = """\
global
    maxconn {maxconn}
    nbthread 1
    ssl-default-bind-options ssl-min-ver TLSv1.2

defaults
    mode tcp
    timeout connect 10s
    timeout client 1h
    timeout server 1h

frontend client
    bind {address}:{port}{tls}
    default_backend server

backend server
    server server {host}:{target}
"""
"""One thread: the hop shares the server's cores."""


class HAProxy(Program):
    name = "haproxy"
    title = "HAProxy"
    program = "haproxy"
    package = "haproxy"
    version_option = "-v"
    version_words = r"HAProxy version (\d+\.\d+[\w.]*)"

    def command(self, program: Path, wanted: Wanted, port: int) -> list[str | Path]:
        tls = ""
        if wanted.stage.accepts:
            # It wants certificate and key in one file.
            both = wanted.pki.certificate.read_text() + wanted.pki.key.read_text()
            tls = f" ssl crt {own_file(wanted.directory / 'server.both.pem', both)}"
        host, target = wanted.target
        text = CONFIGURATION.format(
            maxconn=2 * wanted.clients + 100, address=wanted.address, port=port, tls=tls, host=host, target=target
        )
        return [program, "-db", "-f", own_file(wanted.directory / "haproxy.cfg", text)]


HOP = HAProxy()
