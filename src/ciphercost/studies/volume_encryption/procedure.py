"""Run the study as published: pgbench's load, reads and transactions, on one server and then on the other. I/O."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from ciphercost.measure.pause import Pause
from ciphercost.model.study import StudyRun
from ciphercost.studies import Stage, in_turn, pgbench, pgbench_runs
from ciphercost.studies.volume_encryption import published

TPS, SECONDS = "tps", "seconds"
"""Series of a run: transactions a second of each run of pgbench, or the time of the load."""
MODES = {published.READ: ["-S"], published.OLTP: []}
"""What pgbench is given for each workload."""


def run(stage: Stage) -> None:
    """Load both servers' tables and run pgbench on the first, then on the second. Raises RunError, MissingServer."""
    program, stage.record.tools["pgbench"] = pgbench_runs.find(stage.bench.installation)
    began = time.monotonic()
    with contextlib.closing(Pause(stage.pair.by_arm)) as pause:
        for arm in stage.record.arms:
            pause.only(arm)  # type: ignore[arg-type]
            for one in runs(stage, program, arm, began):
                stage.keep(one)


def runs(stage: Stage, program: Path, arm: str, began: float) -> list[StudyRun]:
    """The load and all runs of pgbench on one arm."""
    settings, cell = stage.record.settings, stage.bench.cell
    name = pgbench_runs.pair_of(stage)

    def kept(workload: str, started: float, series: dict[str, list[float]]) -> StudyRun:
        return StudyRun(
            workload,
            arm,
            round(started - began, 3),
            dict(settings),
            series,
            mechanism=cell.mechanism,
            server=cell.variant,
        )

    started = pgbench_runs.load(stage, program, arm, settings["scale"])
    done = [kept(published.LOAD, started, {SECONDS: [time.monotonic() - started]})]
    clients = f"{settings['clients']:.0f}"
    for workload, mode in MODES.items():
        under = [*mode, "-c", clients, "-j", clients, "-P", "1", "-T", f"{settings[in_turn.SECONDS]:.0f}"]
        started = time.monotonic()
        rates = []
        for number in range(1, int(settings[in_turn.RUNS]) + 1):
            stage.say(f"as published: {name}, {arm}, {workload}, run {number}: pgbench {' '.join(under)}")
            limit = settings[in_turn.SECONDS] + pgbench_runs.END_SECONDS
            text = pgbench_runs.run(stage, program, arm, f"{workload}-{number}", under, limit)
            rates.append(pgbench.parse(text).tps)
        done.append(kept(workload, started, {TPS: rates}))
    return done
