"""HAProxy, which forwards TCP connections and may end their TLS."""

from __future__ import annotations

from pathlib import Path

from ciphercost.hops import Wanted
from ciphercost.hops._program import Program
from ciphercost.host import haproxy

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
    program = haproxy.PROGRAM
    package = haproxy.PACKAGE
    version_option = haproxy.VERSION_OPTION
    version_words = haproxy.VERSION_WORDS

    def command(self, program: Path, wanted: Wanted, port: int) -> list[str | Path]:
        tls = ""
        if wanted.stage.accepts:
            tls = f" ssl crt {haproxy.both(wanted.directory, wanted.pki.certificate, wanted.pki.key)}"
        host, target = wanted.target
        text = CONFIGURATION.format(
            maxconn=2 * wanted.clients + 100, address=wanted.address, port=port, tls=tls, host=host, target=target
        )
        return [program, *haproxy.arguments(wanted.directory, text)]


HOP = HAProxy()
