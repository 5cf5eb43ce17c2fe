"""PgBouncer, a connection pooler that speaks PostgreSQL's protocol, so it ends every encryption and may begin its own."""

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
[databases]
* = host={host} port={target}

[pgbouncer]
listen_addr = {address}
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
pool_mode = session
max_client_conn = {most}
default_pool_size = {most}
server_idle_timeout = 3600
log_connections = 0
log_disconnections = 0
ignore_startup_parameters = extra_float_digits
"""
ACCEPTS = """\
client_tls_sslmode = require
client_tls_cert_file = {certificate}
client_tls_key_file = {key}
client_tls_protocols = secure
"""
CONNECTS = """\
server_tls_sslmode = verify-ca
server_tls_ca_file = {ca}
server_tls_protocols = secure
"""
WITHOUT = "{side}_tls_sslmode = disable\n"
"""By default it uses TLS wherever the server offers it."""


class PgBouncer(Program):
    name = "pgbouncer"
    title = "PgBouncer"
    speaks = True
    program = "pgbouncer"
    package = "pgbouncer"
    version_option = "--version"
    version_words = r"PgBouncer (\d+\.\d+[\w.]*)"

    def stages(self, ends: Ends) -> tuple[Stage, ...]:
        return (Stage(accepts=bool(ends), connects=ends == "server"),)

    def refuses(self, engine: Engine, ends: Ends) -> str:  # noqa: ARG002
        return "" if engine.name == "postgresql" else "PgBouncer speaks PostgreSQL's protocol only"

    def command(self, program: Path, wanted: Wanted, port: int) -> list[str | Path]:
        host, target = wanted.target
        users = own_file(wanted.directory / "users.txt", f'"{wanted.user}" "{reveal(wanted.password)}"\n')
        text = CONFIGURATION.format(
            host=host, target=target, address=wanted.address, port=port, users=users, most=2 * wanted.clients + 20
        )
        pki = wanted.pki
        accepts, connects = wanted.stage.accepts, wanted.stage.connects
        text += ACCEPTS.format(certificate=pki.certificate, key=pki.key) if accepts else WITHOUT.format(side="client")
        text += CONNECTS.format(ca=pki.ca) if connects else WITHOUT.format(side="server")
        return [program, own_file(wanted.directory / "pgbouncer.ini", text)]


HOP = PgBouncer()
