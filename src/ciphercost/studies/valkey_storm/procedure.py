"""Run the study as published: a quiet run, then one with new connections beside it. On the plain arm too, which the publication lacks. I/O."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from ciphercost.load.agent import Agent
from ciphercost.model.errors import AgentError, Unproven
from ciphercost.model.slices import AgentSlice
from ciphercost.model.study import StudyRun
from ciphercost.plan import connection_loads
from ciphercost.studies import Stage, in_turn

OPERATION = "set"
QUIET, STORM, OPENED = "operations/s before", "operations/s during", "new connections"
"""Series of an arm's run, one value for each run."""
LIMIT_S = 60.0
"""Seconds that new connections may take in all beyond their run."""


def run(stage: Stage) -> None:
    """Both runs on the plain arm, then on the encrypted one. Raises AgentError, RunError, Unproven."""
    began = time.monotonic()
    for arm in stage.record.arms:
        stage.say(
            f"as published: {OPERATION}, {arm}: quiet, then with {stage.bench.cell.storm.partition('=')[2]} new connections/s"
        )
        started = time.monotonic() - began
        with ThreadPoolExecutor(1) as pool, closing(stage.client()) as others:
            series: dict[str, list[float]] = {QUIET: [], STORM: [], OPENED: []}
            stage.agent.program(stage.bench.program)
            _connect(stage, arm)
            others.program(stage.bench.program)
            slots = connection_loads.new_connections(stage.bench.planned)
            others.connect(arm, stage.pair.connect[arm] | {"per_request": True, "connections": slots})  # type: ignore[index]
            for _ in range(int(stage.record.settings[in_turn.RUNS])):
                once(stage, arm, others, pool, series)
            stage.agent.disconnect(arm)
        load = {"clients": float(stage.pair.connect[arm].connections)}  # type: ignore[index]
        stage.keep(StudyRun(OPERATION, arm, round(started, 3), load, series, mechanism=stage.bench.mechanism.name))


def _connect(stage: Stage, arm: str) -> None:
    """Open the established connections. Raises AgentError, RunError, Unproven."""
    answer = stage.agent.connect(arm, stage.pair.connect[arm])  # type: ignore[index]
    if answer.encrypted != (stage.pair.side(arm) == "encrypted"):  # type: ignore[arg-type]
        raise Unproven(
            f"client witness, {arm} arm: the load's connection is not encrypted as it was when it was proven"
        )


def once(stage: Stage, arm: str, others: Agent, pool: ThreadPoolExecutor, series: dict[str, list[float]]) -> None:
    """One quiet run and one with new connections. Raises AgentError, RunError."""
    seconds, storm = stage.record.settings[in_turn.SECONDS], stage.bench.planned.storm
    assert storm is not None
    quiet = stage.agent.slice(arm, seconds, discard=0.0)
    opened = max(1, round(storm.rate * seconds))
    beside = pool.submit(others.slice, arm, seconds + LIMIT_S, discard=0.0, rate=storm.rate, operations=opened)
    try:
        during = stage.agent.slice(arm, seconds, discard=0.0)
    finally:
        beside.exception()
    for answer in (quiet, during, beside.result()):
        _check(answer, arm)
    series[QUIET].append(quiet.operations / quiet.seconds)
    series[STORM].append(during.operations / during.seconds)
    series[OPENED].append(float(beside.result().operations))


def _check(answer: AgentSlice, arm: str) -> None:
    """Raises AgentError if something failed, or nothing was done."""
    if answer.errors or not answer.operations:
        raise AgentError(f"{arm} arm: {answer.first_error or 'no operation ended in time'}", "statement")
