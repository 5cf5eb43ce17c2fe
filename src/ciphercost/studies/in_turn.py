"""Put one arm under load and then the other, each for several runs: what most published comparisons did. I/O, and its reading.

A run opens the arm's connections, makes load without a warm-up or a discarded edge, and closes them, as a program does that is started
anew each time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

import msgspec

from ciphercost.load.program import Program
from ciphercost.model.connection import Changes
from ciphercost.model.errors import AgentError, Unproven, UsageError
from ciphercost.model.study import StudyRecord, StudyRun
from ciphercost.studies import Stage

RATE, OPERATIONS = "operations/s", "operations"
"""The series of a run of the record, one value for each run of the arm."""
SECONDS, RUNS, FETCHES = "duration_s", "runs", "fetches"
"""Settings of a record."""
MOST_SECONDS = 600.0
"""Timeout of a run that ends after a number of operations."""


def only(program: Program, transaction: str) -> Program:
    """The program with one of its transactions. Pure."""
    return msgspec.structs.replace(program, transactions=tuple(e for e in program.transactions if e[0] == transaction))


def run(
    stage: Stage, operations: Sequence[str], *, transactions: bool = False, per_request: Sequence[str] = ()
) -> None:
    """Run every operation on the first arm, then on the second, in the record's order. Raises AgentError, RunError, Unproven.

    `transactions`: an operation is one transaction of the stage's workload; otherwise each is the whole workload. `per_request`: those
    that open a connection each time.
    """
    began = time.monotonic()
    name, settings = stage.bench.cell.variant, stage.record.settings
    for arm in stage.record.arms:
        for operation in operations:
            program = only(stage.bench.program, operation) if transactions else stage.bench.program
            stage.say(f"as published: {' '.join(filter(None, (operation, name)))}, {arm}")
            started = time.monotonic() - began
            changes: Changes = {"per_request": True} if operation in per_request else {}
            results = [once(stage, arm, program, changes) for _ in range(int(settings[RUNS]))]
            stage.keep(
                StudyRun(
                    operation,
                    arm,
                    round(started, 3),
                    {"clients": float(stage.pair.connect[arm].connections)},  # type: ignore[index]
                    {RATE: [result[0] for result in results], OPERATIONS: [result[1] for result in results]},
                    mechanism=stage.bench.mechanism.name,
                    server=name,
                )
            )


def once(stage: Stage, arm: str, program: Program, changes: Changes) -> tuple[float, float]:
    """(operations per second, operations) of one run of one arm. `changes`: what differs in its connections. Raises AgentError, RunError, Unproven."""
    settings = stage.record.settings
    stage.agent.program(program)
    answer = stage.agent.connect(arm, stage.pair.connect[arm] | changes)  # type: ignore[index]
    if answer.encrypted != (stage.pair.side(arm) == "encrypted"):  # type: ignore[arg-type]
        raise Unproven(
            f"client witness, {arm} arm: the load's connection is not encrypted as it was when it was proven"
        )
    if fetches := int(settings.get(FETCHES, 0)):
        done = stage.agent.slice(arm, MOST_SECONDS, discard=0.0, operations=fetches)
    else:
        done = stage.agent.slice(arm, settings[SECONDS], discard=0.0)
    stage.agent.disconnect(arm)
    if done.errors or not done.operations:
        raise AgentError(f"{arm} arm: {done.first_error or 'no operation ended in time'}", "statement")
    return done.operations / done.seconds, float(done.operations)


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def rates(record: StudyRecord, operation: str, arm: str, server: str = "") -> list[float]:
    """Operations per second of each run of one arm; empty if it didn't run. Pure."""
    for study_run in record.runs:
        if (study_run.operation, study_run.arm, study_run.server) == (operation, arm, server):
            return study_run.series[RATE]
    return []


def rate(record: StudyRecord, operation: str, arm: str, server: str = "") -> float | None:
    """Their mean; None if the arm didn't run. Pure."""
    values = rates(record, operation, arm, server)
    return fmean(values) if values else None


def widest(record: StudyRecord, where: Callable[[StudyRun], bool] = lambda _: True) -> float | None:
    """Fastest ÷ slowest run of the same arm, the largest of all arms; None unless an arm ran at least twice. Pure."""
    quotients = [max(e.series[RATE]) / min(e.series[RATE]) for e in record.runs if len(e.series[RATE]) > 1 and where(e)]
    return max(quotients, default=None)


def ratio(above: float | None, below: float | None) -> float | None:
    """A quotient, if both are known. Pure."""
    return above / below if above is not None and below else None


# ── options ───────────────────────────────────────────────────────────────────────────────────────────────────────────

LEAST_DURATION, MOST_DURATION, MOST_RUNS = 0.2, 3600.0, 100


def duration_of(given: Mapping[str, Any], default: float) -> float:
    """Value of `--duration`, seconds. Raises UsageError."""
    seconds = float(given.get("duration", default))
    if not LEAST_DURATION <= seconds <= MOST_DURATION:
        raise UsageError(
            f"--duration {seconds:g}s: a published run must last {LEAST_DURATION:g} s to {MOST_DURATION:g} s"
        )
    return seconds


def runs_of(given: Mapping[str, Any], default: int) -> int:
    """Value of `--runs`. Raises UsageError."""
    runs = int(given.get("runs", default))
    if not 1 <= runs <= MOST_RUNS:
        raise UsageError(f"--runs {runs}: must be from 1 to {MOST_RUNS} runs of each arm")
    return runs


def often(runs: float) -> str:
    """`once`, `3 times`. Pure."""
    return "once" if runs == 1 else f"{runs:.0f} times"
