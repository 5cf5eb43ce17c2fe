"""load_generator: the agent against pgbench: select-only, prepared, 1 and 8 connections, TLS off and TLS 1.3, ABBA.

One server process on CPU 0, the client on CPU 1; same tables, same statement, same user, same authentication; TLS stated on both sides. A slice of
pgbench is a run of `-T`; the CPU of connecting, measured apart with `-t 1`, is taken off, since the agent's connections stay open.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import statistics as st
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ciphercost import engines, guard, mechanisms, record, workloads
from ciphercost.agent import Agent
from ciphercost.engines import Server
from ciphercost.statistics import session_interval
from run import Row

SECONDS = 3
BLOCKS = 6
SCALE = 1
AIM = 1.0
SQL = "\\set aid random(1, 100000 * :scale)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;"


def pgbench() -> str:
    """The newest pgbench on this machine, or of an installed server."""
    engine = engines.get("postgresql")
    for each in engine.available():
        if (Path(each.location) / "pgbench").exists():
            return str(Path(each.location) / "pgbench")
    if found := shutil.which("pgbench"):
        return found
    raise SystemExit(
        "no pgbench: install postgresql-contrib, or run `ciphercost install postgresql@18 --source debian`"
    )


@contextmanager
def server(cpus: list[int]) -> Iterator[tuple[Server, dict[str, dict[str, object]], Path]]:
    """A server with TLS, and the connection fields of both arms."""
    engine, tls = engines.get("postgresql"), mechanisms.get("tls")
    run_id = record.new_id()
    with tempfile.TemporaryDirectory() as logs, guard.Guard(run_id) as run_guard:
        scratch = guard.scratch(run_id, run_guard)
        factors, secrets = tls.check({}), scratch / "secrets"
        installation = engine.find()
        directory = scratch / "server"
        engine.initialise(installation, directory, run_guard)
        settings = tls.server_settings(engine, factors, secrets)
        running = engine.start(installation, directory, run_guard, cpus=cpus, settings=settings, logs=Path(logs))
        try:
            print(f"PostgreSQL {installation.version} ({installation.source}), {pgbench()}", flush=True)
            fields = {
                arm: running.connection() | tls.connection(engine, arm, factors, secrets)
                for arm in ("plain", "encrypted")
            }
            yield running, fields, scratch
        finally:
            running.stop()


def load(fields: dict[str, object]) -> None:
    program = workloads.prepare(workloads.get("tpcb"), "postgresql", {"scale": str(SCALE)})
    with Agent() as agent:
        agent.connect("loader", **fields)
        for step in program.load:
            agent.query("loader", step.sql)
        agent.query("loader", "VACUUM pgbench_accounts")


def pgbench_slice(
    fields: dict[str, object], clients: int, cpu: int, script: Path, *, transactions: int = 0
) -> tuple[float, float]:
    """(operations a second, CPU seconds) of one run of pgbench."""
    encrypted = str(fields.get("tls", "off")) != "off"
    environment = {
        **os.environ,
        "PGPASSWORD": str(fields["password"]),
        "PGSSLMODE": "verify-full" if encrypted else "disable",
        "PGSSLROOTCERT": str(fields.get("tls_ca", "")),
        "PGSSLMINPROTOCOLVERSION": "TLSv1.3",
        "PGHOST": "localhost",
        "PGHOSTADDR": str(fields["host"]),
        "PGGSSENCMODE": "disable",
        "PGCHANNELBINDING": "disable",
    }
    length = ["-t", str(transactions)] if transactions else ["-T", str(SECONDS)]
    argv = ["taskset", "-c", str(cpu), pgbench(), "-n", "-M", "prepared", "-c", str(clients), "-j", "1", *length]
    argv += [
        "-f",
        str(script),
        "-D",
        f"scale={SCALE}",
        "-p",
        str(fields["port"]),
        "-U",
        str(fields["user"]),
        str(fields["database"]),
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"pgbench failed: {done.stderr}")
    match = re.search(r"tps = ([\d.]+) \(without initial", done.stdout)
    assert match is not None, done.stdout
    return float(match[1]), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rows() -> list[Row]:
    """Two rows a setting: operations a second, and operations a second of client CPU."""
    cpus = sorted(os.sched_getaffinity(0))
    server_cpu, client_cpu = cpus[0], cpus[-1]
    found: list[Row] = []
    with server([server_cpu]) as (_, fields, scratch):
        load(fields["plain"])
        script = scratch / "select.sql"
        script.write_text(SQL)
        for arm in ("plain", "encrypted"):
            for clients in (1, 8):
                found += compare(arm, clients, fields[arm], client_cpu, script)
    return found


def compare(arm: str, clients: int, fields: dict[str, object], cpu: int, script: Path) -> list[Row]:
    """Blocks of ours, pgbench, pgbench, ours (or mirrored); one log ratio a block."""
    own = workloads.Workload(
        title="",
        measures="",
        transaction=[workloads.Transaction("select", SQL)],
        parameters={"scale": SCALE},
        name="select",
    )
    connecting = st.median(pgbench_slice(fields, clients, cpu, script, transactions=1)[1] for _ in range(5))
    per_second, per_cpu = [], []
    with Agent(cpus=[cpu]) as agent:
        agent.program(workloads.prepare(own, "postgresql", {}))
        connected = agent.connect(arm, **fields, connections=clients, threads=1)
        assert connected["encrypted"] == (arm == "encrypted")
        agent.slice(arm, 1.0)
        pgbench_slice(fields, clients, cpu, script, transactions=2000)
        for block in range(BLOCKS):
            values: dict[str, list[tuple[float, float]]] = {"ours": [], "pgbench": []}
            for who in ("ours", "pgbench", "pgbench", "ours") if block % 2 else ("pgbench", "ours", "ours", "pgbench"):
                if who == "ours":
                    answer = agent.slice(arm, SECONDS, discard=0.0, seed=block)
                    used = (answer.cpu_user_ns + answer.cpu_system_ns) / 1e9
                    values[who].append((answer.operations / answer.seconds, answer.operations / used))
                else:
                    rate, used = pgbench_slice(fields, clients, cpu, script)
                    values[who].append((rate, rate * SECONDS / (used - connecting)))
            ours, theirs = (np.log(np.array(values[who])).mean(axis=0) for who in ("ours", "pgbench"))
            per_second.append(ours[0] - theirs[0])
            per_cpu.append(ours[1] - theirs[1])
            print(
                f"  {arm} {clients}: {np.exp(per_second[-1]):.3f} per second, {np.exp(per_cpu[-1]):.3f} per CPU second",
                flush=True,
            )
    name = f"{'TLS 1.3' if arm == 'encrypted' else 'TLS off'}, {clients} connection{'s' * (clients > 1)}"
    return [
        row(f"{name}: operations per second", per_second),
        row(f"{name}: operations per client-CPU-second", per_cpu),
    ]


def row(name: str, values: list[float]) -> Row:
    interval = session_interval(np.array(values))
    low, high = interval.bounds()
    return {
        "bench": "load_generator",
        "row": name,
        "ratio": float(np.exp(interval.centre)),
        "low": float(np.exp(low)),
        "high": float(np.exp(high)),
        "aim": AIM,
    }
