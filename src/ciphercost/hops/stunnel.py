"""stunnel, which adds TLS to a server. It has no mode without, so the plain arm goes straight to the server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.hops import Ends, Wanted
from ciphercost.hops._program import Program
from ciphercost.host.run_ownership import own_file

if TYPE_CHECKING:
    from ciphercost.engines import Engine

CONFIGURATION = """\
foreground = yes
pid =
syslog = no
debug = warning

[server]
accept = {address}:{port}
connect = {host}:{target}
cert = {certificate}
key = {key}
sslVersionMin = TLSv1.2
{protocol}
"""
PROTOCOLS = {"postgresql": "pgsql"}
"""By engine: how it answers a client that asks for TLS in the server's own protocol."""


class Stunnel(Program):
    name = "stunnel"
    title = "stunnel"
    ends = ("hop",)
    forwards_plain = False
    speaks = True
    program = "stunnel4"
    package = "stunnel4"
    place = "usr/bin"
    version_option = "-version"
    version_words = r"stunnel (\d+\.\d+)"

    def refuses(self, engine: Engine, ends: Ends) -> str:
        if ends == "server":
            return "stunnel ends the client's TLS, and here it begins none towards the server"
        if reason := super().refuses(engine, ends):
            return reason
        if HasTls.of(engine).tls_begins == "on request":
            return f"stunnel does not speak the protocol of {engine.name}"
        return ""

    def command(self, program: Path, wanted: Wanted, port: int) -> list[str | Path]:
        host, target = wanted.target
        protocol = PROTOCOLS.get(wanted.engine, "")
        text = CONFIGURATION.format(
            address=wanted.address,
            port=port,
            host=host,
            target=target,
            certificate=wanted.pki.certificate,
            key=wanted.pki.key,
            protocol=f"protocol = {protocol}" if protocol else "",
        )
        return [program, own_file(wanted.directory / "stunnel.conf", text)]


HOP = Stunnel()
