"""Odyssey, a connection pooler that speaks PostgreSQL's protocol, so it ends every encryption and may begin its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ciphercost.hops import Ends, Stage, Wanted
from ciphercost.hops._program import Program
from ciphercost.host.run_ownership import own_file
from ciphercost.model.secret import reveal

if TYPE_CHECKING:
    from ciphercost.engines import Engine

CONFIGURATION = """\
daemonize no
log_to_stdout yes
log_format "%p %t %l [%i %s] (%c) %m\\n"
log_config no
log_session no
log_stats no
log_query no
locks_dir "{directory}"
workers 1
client_max {most}
client_max_routing {most}
graceful_shutdown_timeout_ms 1000

listen {{
    host "{address}"
    port {port}
{listen}}}

storage "server" {{
    type "remote"
    host "{host}"
    port {target}
    server_max_routing {most}
{storage}}}

database default {{
    user "{user}" {{
        authentication "scram-sha-256"
        password "{password}"
        storage "server"
        pool "session"
        pool_size {most}
        pool_ttl 3600
    }}
}}
"""
"""One worker: the hop shares the server's cores."""
ACCEPTS = """\
    tls "require"
    tls_cert_file "{certificate}"
    tls_key_file "{key}"
"""
CONNECTS = """\
    tls "verify_ca"
    tls_ca_file "{ca}"
"""
WITHOUT = """\
    tls "disable"
"""


class Odyssey(Program):
    name = "odyssey"
    title = "Odyssey"
    speaks = True
    program = "odyssey"
    package = "odyssey"
    suite = "sid"
    place = "usr/bin"
    version_option = "--version"
    version_words = r"odyssey (\d+\.\d+[\w.]*)"

    def stages(self, ends: Ends) -> tuple[Stage, ...]:
        return (Stage(accepts=bool(ends), connects=ends == "server"),)

    def refuses(self, engine: Engine, ends: Ends) -> str:  # noqa: ARG002
        return "" if engine.name == "postgresql" else "Odyssey speaks PostgreSQL's protocol only"

    def command(self, program: Path, wanted: Wanted, port: int) -> list[str | Path]:
        host, target = wanted.target
        pki = wanted.pki
        text = CONFIGURATION.format(
            directory=wanted.directory,
            most=2 * wanted.clients + 20,
            address=wanted.address,
            port=port,
            listen=ACCEPTS.format(certificate=pki.certificate, key=pki.key) if wanted.stage.accepts else WITHOUT,
            host=host,
            target=target,
            storage=CONNECTS.format(ca=pki.ca) if wanted.stage.connects else WITHOUT,
            user=wanted.user,
            password=reveal(wanted.password),
        )
        return [program, own_file(wanted.directory / "odyssey.conf", text)]


HOP = Odyssey()
