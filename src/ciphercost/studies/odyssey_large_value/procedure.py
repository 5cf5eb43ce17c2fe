"""Run the study as published: start psql with one large value over TLS, through one pooler and then the other. I/O."""

from __future__ import annotations

import time

from ciphercost import hops
from ciphercost.model.study import StudyRun
from ciphercost.studies import Stage, in_turn, psql_starts
from ciphercost.studies.odyssey_large_value import ways

SIZE = "bytes"
"""Setting of a record."""
REAL = psql_starts.REAL
ARM = "encrypted"
"""The only one that was published."""
ENVIRONMENT = {"PGSSLMODE": "require"}
"""As published: no certificate is checked."""
SECONDS_A_BYTE = 2e-8
"""Estimated, with the start of psql."""
MOST_SECONDS = 120.0
"""Timeout of a start: the published one took 21 s."""


def run(stage: Stage) -> None:
    """Start psql as often as asked through the stage's pooler. Raises RunError, MissingServer."""
    began = time.monotonic()
    name, size = stage.bench.cell.variant, int(stage.record.settings[SIZE])
    program, version = psql_starts.find(stage.bench.installation)
    pooler = hops.get(stage.bench.factors["hop"])
    stage.record.tools |= {"psql": version, pooler.name: pooler.find(fetch=False).version}
    runs = int(stage.record.settings[in_turn.RUNS])
    stage.say(f"as published: {runs} starts of psql with a value of {ways.label(size)} over TLS, {name}")
    rows = psql_starts.timed(
        stage,
        ARM,
        [program, "-X", "-Atc", f"select repeat('1', {size})"],
        ENVIRONMENT,
        count=runs,
        most_seconds=MOST_SECONDS,
        what=f"{pooler.title}, {ways.label(size)}",
    )
    series = {REAL: [row[0] for row in rows], psql_starts.CPU: [row[1] for row in rows]}
    stage.keep(
        StudyRun(
            ways.WORKLOAD,
            ARM,
            round(time.monotonic() - began, 3),
            {"clients": 1.0, SIZE: float(size)},
            series,
            mechanism=stage.bench.mechanism.name,
            server=name,
        )
    )
