"""Run the study as most would: pgbench and each statement a few times, on one server and then on the other. I/O.

The post prints neither lengths nor numbers of its runs.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from ciphercost.measure.pause import Pause
from ciphercost.model.study import StudyRun
from ciphercost.studies import Stage, in_turn, pgbench, pgbench_runs
from ciphercost.studies.pg_tde_small_cost import published

SECONDS = "seconds"
"""Series of a run: the time of one operation in each repetition."""
LIMIT_S = 600.0
"""Timeout of a statement."""


def run(stage: Stage) -> None:
    """Load both servers' tables and run everything on the first, then on the second. Raises RunError, MissingServer."""
    program, stage.record.tools["pgbench"] = pgbench_runs.find(stage.bench.installation)
    stage.record.versions[pgbench_runs.pair_of(stage)] = stage.bench.installation.version
    began = time.monotonic()
    with contextlib.closing(Pause(stage.pair.by_arm)) as pause:
        for arm in stage.record.arms:
            pause.only(arm)  # type: ignore[arg-type]
            pgbench_runs.load(stage, program, arm, stage.record.settings["scale"])
            transactions(stage, program, arm, began)
            for operation in published.STATEMENTS:
                statements(stage, arm, operation, began)


def transactions(stage: Stage, program: Path, arm: str, began: float) -> None:
    """pgbench's TPC-B-like transactions: the average time that each client has for one."""
    settings, clients = stage.record.settings, f"{stage.record.settings['clients']:.0f}"
    under = ["-c", clients, "-j", clients, "-P", "1", "-T", f"{settings[in_turn.SECONDS]:.0f}"]
    started, times = time.monotonic(), []
    for number in range(1, int(settings[in_turn.RUNS]) + 1):
        stage.say(f"as published: {pgbench_runs.pair_of(stage)}, {arm}, run {number}: pgbench {' '.join(under)}")
        limit = settings[in_turn.SECONDS] + pgbench_runs.END_SECONDS
        text = pgbench_runs.run(stage, program, arm, f"{published.OLTP}-{number}", under, limit)
        times.append(settings["clients"] / pgbench.parse(text).tps)
    _keep(stage, arm, published.OLTP, started - began, times)


def statements(stage: Stage, arm: str, operation: str, began: float) -> None:
    """The time of one operation, several times in a row after one that is not counted."""
    stage.say(f"as published: {pgbench_runs.pair_of(stage)}, {arm}: {published.WORDS[operation]}")
    stage.agent.connect("asker", stage.pair.connect[arm].single)  # type: ignore[index]
    started, times = time.monotonic(), []
    for number in range(int(stage.record.settings[in_turn.RUNS]) + 1):
        at = time.monotonic()
        for statement in published.STATEMENTS[operation]:
            stage.agent.query("asker", statement, timeout=LIMIT_S)
        if number:
            times.append(time.monotonic() - at)
    stage.agent.disconnect("asker")
    _keep(stage, arm, operation, started - began, times)


def _keep(stage: Stage, arm: str, operation: str, started: float, times: list[float]) -> None:
    cell, settings = stage.bench.cell, dict(stage.record.settings)
    stage.keep(
        StudyRun(
            operation,
            arm,
            round(started, 3),
            settings,
            {SECONDS: times},
            mechanism=cell.mechanism,
            server=cell.variant,
        )
    )
