"""Start psql many times and time each start, for studies that timed psql. I/O."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ciphercost.engines.postgresql import major
from ciphercost.host.installation import Installation
from ciphercost.host.programs import output_of
from ciphercost.model.errors import MissingServer, RunError
from ciphercost.model.secret import reveal
from ciphercost.studies import Stage, pgbench, pgbench_runs

REAL, CPU = "real_ms", "cpu_ms"
"""Series of a run, one value for each start."""
TIMED = """\
import os, sys, time
count, argv = int(sys.argv[1]), sys.argv[2:]
quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
for _ in range(count):
    began = time.perf_counter_ns()
    child = os.posix_spawn(argv[0], argv, os.environ, file_actions=quiet)
    _, status, used = os.wait4(child, 0)
    ended = time.perf_counter_ns()
    if status:
        sys.exit(1)
    print((ended - began) / 1e6, (used.ru_utime + used.ru_stime) * 1e3)
"""
"""A small process starts psql, as multitime does: a fork of ours would take longer than psql."""


def timed(
    stage: Stage,
    arm: str,
    argv: Sequence[str | Path],
    environment: Mapping[str, str],
    *,
    count: int,
    most_seconds: float,
    what: str,
) -> list[tuple[float, float]]:
    """(ms, ms of CPU) of each of `count` starts on one arm. `environment`: beside where the arm's server is and how to log in;
    `most_seconds`: timeout of a start; `what`: words for an error. Raises RunError.
    """
    connection = stage.pair.connect[arm]  # type: ignore[index]
    log = stage.bench.logs / f"psql-{arm}.log"
    begin = log.stat().st_size if log.exists() else 0
    reached = {
        "PGHOST": connection.host,
        "PGPORT": str(connection.port),
        "PGUSER": connection.user or "",
        "PGDATABASE": connection.database or "",
        "PGPASSWORD": reveal(connection.password),
        "PGGSSENCMODE": "disable",
    }
    words = [sys.executable, "-I", "-S", "-c", TIMED, str(count), *argv]
    process = stage.bench.supervisor.spawn(words, env={**reached, **environment}, log=log)
    try:
        status = process.wait(count * most_seconds)
    finally:
        process.stop(timeout=1.0)
    lines = log.read_bytes()[begin:].decode(errors="replace").split("\n")
    if status:
        last = "\n".join(lines[-pgbench.LAST_LINES :])
        raise RunError(f"{what}: psql did not start or did not reach the server (log: {log}):\n{last}")
    return [(float(real), float(cpu)) for real, cpu in (line.split(" ") for line in lines if line)]


def find(installation: Installation, since: int = 0) -> tuple[Path, str]:
    """(psql, its version), the first of at least the major version `since`, in the order of `pgbench_runs.places`. Raises MissingServer."""
    for program in pgbench_runs.places(installation, "psql"):
        version = output_of([program, "-V"], 10).partition(") ")[2].partition(" ")[0].strip()
        if version and major(version) >= since:
            return program, version
    which = f"no psql of version {since} or later" if since else "no psql"
    raise MissingServer(
        f"{which} beside {installation.location} or on PATH, but the published procedure starts it. "
        f"`ciphercost install postgresql@{since or 17} --source debian` brings one."
    )
