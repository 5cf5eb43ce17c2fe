"""Run the study as published: start psql many times in one way, then in the other, and time each start. I/O."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from ciphercost.engines.postgresql import DIRECT_SINCE, major
from ciphercost.host.installation import Installation
from ciphercost.host.programs import output_of
from ciphercost.model.errors import MissingServer, RunError
from ciphercost.model.secret import reveal
from ciphercost.model.study import StudyRun
from ciphercost.studies import Stage, pgbench, pgbench_runs

OPERATION = "psql's start"
REAL, CPU = "real_ms", "cpu_ms"
"""Series of a run, one value for each start."""
SECONDS_A_START = 0.06
MOST_SECONDS = 2.0
"""Timeout of a start."""
TIMED = """\
import os, sys, time
count, argv = int(sys.argv[1]), sys.argv[2:]
for _ in range(count):
    began = time.perf_counter_ns()
    child = os.posix_spawn(argv[0], argv, os.environ)
    _, status, used = os.wait4(child, 0)
    ended = time.perf_counter_ns()
    if status:
        sys.exit(1)
    print((ended - began) / 1e6, (used.ru_utime + used.ru_stime) * 1e3)
"""
"""A small process starts psql, as multitime does: a fork of ours would take longer than psql."""


def run(stage: Stage) -> None:
    """Start psql as often as asked in each way. Raises RunError, MissingServer."""
    program, stage.record.tools["psql"] = find(stage.bench.installation)
    began = time.monotonic()
    for arm in stage.record.arms:
        stage.say(f"as published: {stage.record.settings['starts']:.0f} starts of psql, {WAYS[arm]}")
        started = time.monotonic() - began
        rows = starts(stage, program, arm)
        series = {REAL: [row[0] for row in rows], CPU: [row[1] for row in rows]}
        stage.keep(StudyRun(OPERATION, arm, round(started, 3), dict(stage.record.settings), series, mechanism="tls"))


WAYS = {"plain": "sslnegotiation=postgres", "encrypted": "sslnegotiation=direct"}
"""What each arm gives psql."""


def starts(stage: Stage, program: Path, arm: str) -> list[tuple[float, float]]:
    """(ms, ms of CPU) of each start on one arm. Raises RunError."""
    connection, count = stage.pair.connect[arm], int(stage.record.settings["starts"])  # type: ignore[index]
    log = stage.bench.logs / f"psql-{arm}.log"
    environment = {
        "PGHOST": connection.host,
        "PGPORT": str(connection.port),
        "PGUSER": connection.user or "",
        "PGDATABASE": connection.database or "",
        "PGPASSWORD": reveal(connection.password),
        "PGSSLMODE": "verify-ca",
        "PGSSLROOTCERT": connection.tls_ca or "",
        "PGSSLNEGOTIATION": WAYS[arm].partition("=")[2],
        "PGGSSENCMODE": "disable",
    }
    argv: list[str | Path] = [sys.executable, "-I", "-S", "-c", TIMED, str(count), program, "-X", "-c", "\\q"]
    process = stage.bench.supervisor.spawn(argv, env=environment, log=log)
    try:
        status = process.wait(count * MOST_SECONDS)
    finally:
        process.stop(timeout=1.0)
    lines = log.read_text(errors="replace").split("\n")
    if status:
        last = "\n".join(lines[-pgbench.LAST_LINES :])
        raise RunError(f"{WAYS[arm]}: psql did not start or did not reach the server (log: {log}):\n{last}")
    return [(float(real), float(cpu)) for real, cpu in (line.split(" ") for line in lines if line)]


def find(installation: Installation) -> tuple[Path, str]:
    """(psql, its version), the first that knows sslnegotiation, in the order of `pgbench_runs.places`. Raises MissingServer."""
    for program in pgbench_runs.places(installation, "psql"):
        version = output_of([program, "-V"], 10).partition(") ")[2].partition(" ")[0].strip()
        if version and major(version) >= DIRECT_SINCE:
            return program, version
    raise MissingServer(
        f"no psql of version {DIRECT_SINCE} or later beside {installation.location} or on PATH, but the published procedure starts it. "
        f"`ciphercost install postgresql@{DIRECT_SINCE} --source debian` brings one."
    )
