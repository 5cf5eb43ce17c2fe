"""The agent against pgbench, sysbench and mysqlslap: one row by its key, 1 and 8 connections, TLS off and TLS 1.3, ABBA.

The server runs on CPU 0, the client on CPU 1, with the same tables, statement, user and authentication, and explicit TLS settings on both
sides.
"""

from __future__ import annotations

import os
import statistics as st
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ciphercost import engines, mechanisms
from ciphercost.engines import StartRequest
from ciphercost.host import supervisor
from ciphercost.host.installation import Installation
from ciphercost.host.pki import Pki
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from ciphercost.model.connection import Connection
from pairs import SECONDS, asking, compared
from peers import ROWS, Mysqlslap, Peer, Pgbench, Slice, Sysbench
from run import Row


class Match(NamedTuple):
    """A server, the load generators to compare on it, and the table that they read."""

    engine: str
    version: str
    tables: tuple[str, ...]


PGBENCH_TABLE = (
    "CREATE TABLE pgbench_accounts (aid integer PRIMARY KEY, bid integer, abalance integer, filler char(84)) WITH (fillfactor = 100)",
    f"INSERT INTO pgbench_accounts SELECT n, 1, 0, '' FROM generate_series(1, {ROWS}) AS n",
    "VACUUM ANALYZE pgbench_accounts",
)
DIGITS = f"({' UNION ALL '.join(f'SELECT {digit} AS d' for digit in range(10))})"
SYSBENCH_TABLE = (
    ("CREATE TABLE sbtest1 (id integer NOT NULL AUTO_INCREMENT PRIMARY KEY, k integer NOT NULL DEFAULT 0, "
     "c char(120) NOT NULL DEFAULT '', pad char(60) NOT NULL DEFAULT '', KEY k_1 (k))"),
    ("INSERT INTO sbtest1 (id, k, c, pad) SELECT 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d, a.d, "
     "repeat('0123456789-', 10), repeat('0123456789-', 5) "
     f"FROM {DIGITS} a, {DIGITS} b, {DIGITS} c, {DIGITS} e, {DIGITS} f"),
    "ANALYZE TABLE sbtest1",
)  # fmt: skip
MATCHES = (
    Match("postgresql", "", PGBENCH_TABLE),
    Match("mysql", "", SYSBENCH_TABLE),
    Match("mariadb", "", SYSBENCH_TABLE),
)


def peers(engine: str, installation: Installation, scratch: Path) -> list[Peer]:
    """The peers on this server; mysqlslap only if the installation has it."""
    if engine == "postgresql":
        return [Pgbench(scratch)]
    slap = Mysqlslap(scratch, Path(installation.location))
    found: list[Peer] = [Sysbench(scratch)]
    return [*found, slap] if slap.program else found


@contextmanager
def server(match: Match, cpus: list[int]) -> Iterator[tuple[Installation, dict[str, Connection], Path]]:
    """A loaded server with TLS, and the connection fields of both arms."""
    engine, tls = engines.get(match.engine), mechanisms.get("tls")
    run_id = run_directory.new_id()
    with tempfile.TemporaryDirectory() as logs, supervisor.Supervisor(run_id) as run_supervisor:
        scratch = supervisor.scratch(run_id, run_supervisor)
        factors, secrets = tls.check({}), scratch / "secrets"
        installation = engine.find(match.version)
        directory = scratch / "server"
        engine.initialise(installation, directory, run_supervisor)
        # sysbench can't use TLS without a client certificate, so it gets the server's.
        secrets.mkdir(mode=0o700, exist_ok=True)
        Pki(secrets / "tls-rsa2048", "rsa2048", both_ends=True)
        settings = tls.server_settings(engine, factors, secrets)
        running = engine.start(
            StartRequest(installation, directory, run_supervisor, cpus=cpus, settings=settings, logs=Path(logs))
        )
        try:
            print(f"{engine.title} {installation.version} ({installation.source})", flush=True)
            fields = {
                arm: running.connection() | tls.connection(engine, arm, factors, secrets)
                for arm in ("plain", "encrypted")
            }
            with Agent() as agent:
                agent.connect("loader", fields["plain"])
                for statement in match.tables:
                    agent.query("loader", statement)
            yield installation, fields, scratch
        finally:
            running.stop()


def rows() -> list[Row]:
    """Two rows per setting and peer: operations per second, and operations per second of client CPU."""
    cpus = sorted(os.sched_getaffinity(0))
    found: list[Row] = []
    for match in MATCHES:
        with server(match, [cpus[0]]) as (installation, fields, scratch):
            for peer in peers(match.engine, installation, scratch):
                for arm in ("plain", "encrypted"):
                    for clients in (1, 8):
                        found += compare(match.engine, peer, arm, clients, fields[arm], cpus[-1])
    return found


def compare(engine: str, peer: Peer, arm: str, clients: int, fields: Connection, cpu: int) -> list[Row]:
    """The rows of one peer and setting."""
    connecting = st.median(peer.slice(fields, clients, cpu, 0).cpu for _ in range(5))
    with Agent(cpus=[cpu]) as agent:
        agent.program(asking(engines.get(engine).dialect, peer.sql))
        connected = agent.connect(arm, fields | {"connections": clients, "threads": 1})
        assert connected.encrypted == (arm == "encrypted")
        agent.slice(arm, 1.0)
        peer.slice(fields, clients, cpu, 1)

        def ours(seed: int) -> Slice:
            answer = agent.slice(arm, SECONDS, discard=0.0, seed=seed)
            used = (answer.cpu_user_ns + answer.cpu_system_ns) / 1e9
            return Slice(answer.operations / answer.seconds, answer.operations, used)

        def theirs() -> Slice:
            found = peer.slice(fields, clients, cpu, SECONDS)
            return found._replace(cpu=found.cpu - connecting)

        setting = f"{'TLS 1.3' if arm == 'encrypted' else 'TLS off'}, {clients} connection{'s' * (clients > 1)}"
        name = f"{engine}, {peer.name}, {setting}"
        return compared("load_generator", name, f"{peer.name} {arm} {clients}", ours, theirs)
