"""Run the study as published: pgbench --skip-some-updates for a minute, a few times, on one server and then on the other. I/O."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from ciphercost.measure.pause import Pause
from ciphercost.model.study import StudyRun
from ciphercost.studies import Stage, pgbench, pgbench_runs

OPERATION = "simple-update"
TPS, HITS, CHECKPOINTS = "tps", "buffer hits", "checkpoints"
"""Series of an arm's run, one value for each run of pgbench."""
BLOCKS = "SELECT sum(blks_hit), sum(blks_read) FROM pg_stat_database"


def run(stage: Stage) -> None:
    """Load both servers' tables and run pgbench on the first, then on the second. Raises RunError, MissingServer."""
    program, stage.record.tools["pgbench"] = pgbench_runs.find(stage.bench.installation)
    stage.record.versions[pgbench_runs.pair_of(stage)] = stage.bench.installation.version
    began = time.monotonic()
    with contextlib.closing(Pause(stage.pair.by_arm)) as pause:
        for arm in stage.record.arms:
            pause.only(arm)  # type: ignore[arg-type]
            stage.keep(one(stage, program, arm, began))


def one(stage: Stage, program: Path, arm: str, began: float) -> StudyRun:
    """All runs of pgbench on one arm, on tables that pgbench made."""
    settings, name = stage.record.settings, pgbench_runs.pair_of(stage)
    pgbench_runs.load(stage, program, arm, settings["scale"])
    length, clients = settings["duration_s"], f"{settings['clients']:.0f}"
    under = ["-N", "-c", clients, "-j", clients, "-P", "1", "-T", f"{length:.0f}"]
    started = time.monotonic() - began
    series: dict[str, list[float]] = {TPS: [], HITS: [], CHECKPOINTS: []}
    for number in range(int(settings["runs"])):
        stage.say(f"as published: {name}, {arm}, run {number + 1}: pgbench {' '.join(under)}")
        hits, checkpoints = blocks(stage, arm), pgbench_runs.checkpoints(stage, arm)
        text = pgbench_runs.run(stage, program, arm, f"run-{number + 1}", under, length + pgbench_runs.END_SECONDS)
        after = blocks(stage, arm)
        read = [later - earlier for later, earlier in zip(after, hits, strict=True)]
        series[TPS].append(pgbench.parse(text).tps)
        series[HITS].append(100 * read[0] / max(1.0, sum(read)))
        series[CHECKPOINTS].append(pgbench_runs.checkpoints(stage, arm) - checkpoints)
    cell, asked = stage.bench.cell, pgbench_runs.ask(stage, arm)
    return StudyRun(
        OPERATION, arm, round(started, 3), settings | asked, series, mechanism=cell.mechanism, server=cell.variant
    )


def blocks(stage: Stage, arm: str) -> tuple[float, float]:
    """Pages that the server found in its buffers, and pages that it read, since its start."""
    ((hit, read),) = pgbench_runs.query(stage, arm, BLOCKS)
    return float(hit or 0), float(read or 0)
