"""Run pgbench on one arm of a study's pair, and ask the server what decides its figures. I/O.

The program is that of the server's own version if there is one, since it is part of what was measured.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ciphercost import engines
from ciphercost.engines.postgresql import major
from ciphercost.host.installation import Installation
from ciphercost.host.programs import output_of
from ciphercost.host.run_ownership import server_user
from ciphercost.model.errors import MissingServer, RunError, UsageError
from ciphercost.model.secret import reveal
from ciphercost.studies import Stage, in_turn, pgbench, tde_pairs

LOAD_SECONDS = 600.0
"""Timeout of `pgbench -i`, plus the same for every ten units of scale."""
END_SECONDS = 300.0
"""Time for the last transactions after a run's time is up."""
ASKED = ("fsync", "synchronous_commit", "full_page_writes", "checkpoint_timeout", "max_wal_size", "shared_buffers")
"""Settings that decide how much of a transaction reaches the disk, and when."""
CHECKPOINTS = {
    True: "SELECT num_timed + num_requested FROM pg_stat_checkpointer",
    False: "SELECT checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter",
}
"""Checkpoints since the server's start; by whether its version is 17 or later."""


def pair_of(stage: Stage) -> str:
    """Name of the stage's pair of arms in the record."""
    return tde_pairs.name_of(stage.bench.cell.variant, stage.bench.mechanism.name)


def series(report: pgbench.Report) -> dict[str, list[float]]:
    """The figures of a run, as the record keeps them. Pure."""
    whole = {
        "tps": report.tps,
        "latency_average_ms": report.latency_average_ms,
        "latency_stddev_ms": report.latency_stddev_ms,
        "initial_connection_ms": report.initial_connection_ms,
        "transactions": float(report.transactions),
        "failed": float(report.failed),
    }
    return {
        **{name: [value] for name, value in whole.items()},
        "progress_at_s": [second.at_s for second in report.progress],
        "progress_tps": [second.tps for second in report.progress],
        "progress_latency_ms": [second.latency_ms for second in report.progress],
        "progress_stddev_ms": [second.stddev_ms for second in report.progress],
        "progress_failed": [float(second.failed) for second in report.progress],
    }


# ── pgbench ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def places(installation: Installation, name: str) -> list[Path]:
    """Where this program of PostgreSQL may be: beside the server, else with the server's version, else on PATH, else any."""
    server_major = major(installation.version)
    others = engines.get("postgresql").available()
    same = [Path(other.location) / name for other in others if major(other.version) == server_major]
    rest = [Path(other.location) / name for other in others if major(other.version) != server_major]
    on_path = [Path(path)] if (path := shutil.which(name)) else []
    return [Path(installation.location) / name, *same, *on_path, *rest]


def scale_of(given: Mapping[str, Any], default: int, most: int) -> int:
    """Value of `--scale`. Raises UsageError."""
    scale = int(given.get("scale", default))
    if not 1 <= scale <= most:
        raise UsageError(f"--scale {scale}: must be from 1 to {most}")
    return scale


def duration_of(given: Mapping[str, Any], default: float) -> float:
    """Value of `--duration`, seconds. Raises UsageError."""
    duration = in_turn.duration_of(given, default)
    if duration < 1:
        raise UsageError(f"--duration {duration:g}s: pgbench runs for at least 1 second")
    return duration


def load_limit(scale: float) -> float:
    """Timeout of what goes through all tables of this scale, seconds."""
    return LOAD_SECONDS * (1 + scale / 10)


def load(stage: Stage, program: Path, arm: str, scale: float, name: str = "load") -> float:
    """Let pgbench create its tables anew. Returns when it began, on the monotonic clock. Raises RunError.

    `name`: of its log.
    """
    making = ["-i", "-s", f"{scale:.0f}"]
    stage.say(f"as published: {pair_of(stage)}, {arm}: pgbench {' '.join(making)}")
    began = time.monotonic()
    run(stage, program, arm, name, making, load_limit(scale))
    return began


def find(installation: Installation) -> tuple[Path, str]:
    """(pgbench, its version), the first of `places` that runs. Raises MissingServer."""
    for program in places(installation, "pgbench"):
        if program_version := version_of(program):
            return program, program_version
    raise MissingServer(
        f"no pgbench beside {installation.location} or on PATH, but the published procedure runs it. Install it "
        "(Debian: postgresql-contrib), or `ciphercost install postgresql@17 --source debian`, which brings one."
    )


def version_of(program: Path) -> str:
    """The version that it prints; empty if there is none, or if it does not run here."""
    return pgbench.version(output_of([program, "-V"], 10))


def run(stage: Stage, program: Path, arm: str, what: str, argv: list[str], seconds: float) -> str:
    """The complete output of one run, which is also kept in the logs. Raises RunError."""
    connection = stage.pair.connect[arm]  # type: ignore[index]
    log = stage.bench.logs / f"pgbench-{pair_of(stage).replace(' ', '-')}-{arm}-{what}.log"
    reach = ["-h", connection.host, "-p", str(connection.port), "-U", connection.user or ""]
    process = stage.bench.supervisor.spawn(
        [program, *reach, *argv, connection.database or ""],
        # Every user could read an argument.
        env={"PGPASSWORD": reveal(connection.password), "PGSSLMODE": "disable", "PGGSSENCMODE": "disable"},
        user=server_user(),
        log=log,
    )
    try:
        status = process.wait(seconds)
    finally:
        process.stop(timeout=1.0)
    text = log.read_text(errors="replace")
    if status:
        last = "\n".join(text.strip().splitlines()[-pgbench.LAST_LINES :])
        raise RunError(f"{arm} arm: pgbench ended with status {status} (log: {log}):\n{last}")
    return text


# ── what the server says of itself ────────────────────────────────────────────────────────────────────────────────────


def query(stage: Stage, arm: str, sql: str, seconds: float | None = None) -> list[list[str | None]]:
    """Rows of a query on a connection of its own, closed afterwards: only pgbench's are open under load."""
    stage.agent.connect("asker", stage.pair.connect[arm].single)  # type: ignore[index]
    rows = stage.agent.query("asker", sql, timeout=seconds)
    stage.agent.disconnect("asker")
    return rows


def ask(stage: Stage, arm: str) -> dict[str, float]:
    """The settings in ASKED: switches as 1 and 0, sizes in bytes, times in seconds."""
    names = ", ".join(f"'{name}'" for name in ASKED)
    rows = query(stage, arm, f"SELECT name, setting, coalesce(unit, '') FROM pg_settings WHERE name IN ({names})")
    return {str(name): value_of(str(value), str(unit)) for name, value, unit in rows}


def value_of(text: str, unit: str) -> float:
    """`on` is 1, 16384 of 8kB is 134217728. Pure."""
    if not text.lstrip("-").isdigit():
        return 0.0 if text == "off" else 1.0
    return float(text) * {"": 1, "s": 1, "kB": 1024, "8kB": 8192, "MB": 1024**2}[unit]


def checkpoints(stage: Stage, arm: str) -> float:
    """Checkpoints since the server's start."""
    rows = query(stage, arm, CHECKPOINTS[major(stage.bench.installation.version) >= 17])
    return float(rows[0][0] or 0)
