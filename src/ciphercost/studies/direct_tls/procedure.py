"""Run the study as published: start psql many times in one way, then in the other, and time each start. I/O."""

from __future__ import annotations

import time
from pathlib import Path

from ciphercost.engines.postgresql import DIRECT_SINCE
from ciphercost.host.installation import Installation
from ciphercost.model.study import StudyRun
from ciphercost.studies import Stage, psql_starts

OPERATION = "psql's start"
REAL, CPU = psql_starts.REAL, psql_starts.CPU
SECONDS_A_START = 0.06
MOST_SECONDS = 2.0
"""Timeout of a start."""


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
    environment = {
        "PGSSLMODE": "verify-ca",
        "PGSSLROOTCERT": stage.pair.connect[arm].tls_ca or "",  # type: ignore[index]
        "PGSSLNEGOTIATION": WAYS[arm].partition("=")[2],
    }
    count = int(stage.record.settings["starts"])
    argv: list[str | Path] = [program, "-X", "-c", "\\q"]
    return psql_starts.timed(stage, arm, argv, environment, count=count, most_seconds=MOST_SECONDS, what=WAYS[arm])


def find(installation: Installation) -> tuple[Path, str]:
    """(psql, its version), the first that knows sslnegotiation. Raises MissingServer."""
    return psql_starts.find(installation, DIRECT_SINCE)
