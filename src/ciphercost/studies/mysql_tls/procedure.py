"""Run the study as published: for each operation one arm and then the other, five iterations of a statement file, with sar. I/O.

As mysqlslap does it (`--iterations=5 --number-of-queries=10000 --no-drop --query=FILE`): an iteration opens a connection, runs the
file again and again from its beginning until it reaches the number of queries, and closes the connection; all of that is timed. An
iteration finds the data as the one before left it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence

import msgspec

from ciphercost.load.tables import people
from ciphercost.measure import sar
from ciphercost.model.errors import AgentError, Unproven
from ciphercost.model.study import StudyRun
from ciphercost.provision import loading
from ciphercost.studies import Stage

TABLE = "personal_records"
TRIAL_SECONDS = 0.5
"""Load of each operation to estimate how many queries fit into the available time."""
TRIAL_STEP = 10


def statements(operation: str, rows: int, seed: int) -> Iterator[str]:
    """The lines of an operation's file: one statement per person. Pure."""
    names = ", ".join(people.COLUMNS)
    for person in people.people(rows, seed):
        if operation == "insert":
            yield f"INSERT INTO {TABLE} ({names}) VALUES {people.values(person)}"
        elif operation == "update":
            yield f"UPDATE {TABLE} SET email = 'new.{person.email}' WHERE id = {person.id}"
        elif operation == "delete":
            yield f"DELETE FROM {TABLE} WHERE id = {person.id}"
        else:
            yield f"SELECT * FROM {TABLE}"


def run(stage: Stage, operations: Sequence[str]) -> None:
    """Run every operation on every arm, in the record's order. Raises RunError, Unproven."""
    settings = stage.record.settings
    iterations = int(settings["iterations"])
    share = stage.seconds / (len(operations) * len(stage.record.arms) * iterations)
    counts = {name: count(stage, name, share) for name in operations}
    began = time.monotonic()
    for name, arm in in_order(operations, stage.record.arms, by_operation=bool(settings["by_operation"])):
        stage.say(
            f"as published: {name}, {arm}: {iterations} iteration{'s' * (iterations != 1)} of {counts[name]:,} queries"
        )
        refill(stage)
        started = time.monotonic() - began
        pid = stage.pair.server.pid if stage.pair.server else 0
        with sar.Sar(pid, settings["interval_s"]) as host:
            seconds = [iteration(stage, arm, name, counts[name]) for _ in range(iterations)]
        load = {"queries": float(counts[name])}
        stage.keep(StudyRun(name, arm, round(started, 3), load, {"seconds": seconds}, host.rows))


def in_order(operations: Sequence[str], arms: Sequence[str], *, by_operation: bool) -> list[tuple[str, str]]:
    """(operation, arm) pairs: both arms of an operation before the next operation, or all operations of an arm before the other arm. Pure."""
    if by_operation:
        return [(name, arm) for name in operations for arm in arms]
    return [(name, arm) for arm in arms for name in operations]


def iteration(stage: Stage, arm: str, operation: str, queries: int) -> float:
    """Run one iteration; return seconds from before its connection opens until it is closed."""
    parameters = stage.bench.program.parameters
    lines = list(statements(operation, int(parameters["rows"]), int(parameters["data_seed"])))
    declare(stage, operation)
    began = time.monotonic()
    connect(stage, arm)
    perform(stage, arm, operation, itertools.islice(itertools.cycle(lines), queries), queries)
    stage.agent.disconnect(arm)
    return time.monotonic() - began


def declare(stage: Stage, operation: str) -> None:
    """SELECT's rows stay in the agent, as in a client; other statements are sent as they are and need no program."""
    program = stage.bench.program
    stage.agent.program(program if operation == "select" else msgspec.structs.replace(program, transactions=()))


def connect(stage: Stage, arm: str) -> None:
    answer = stage.agent.connect(arm, stage.pair.connect[arm].single)  # type: ignore[index]
    if answer.encrypted != (arm == "encrypted"):
        raise Unproven(
            f"client witness, {arm} arm: the load's connection is not encrypted as it was when it was proven"
        )


def perform(stage: Stage, arm: str, operation: str, lines: Iterator[str], queries: int) -> None:
    if operation != "select":
        stage.agent.queries(arm, lines)
        return
    answer = stage.agent.slice(arm, 3600, discard=0.0, operations=queries)
    if answer.errors:
        raise AgentError(f"{arm} arm: {answer.first_error}", "statement")


def count(stage: Stage, operation: str, seconds: float) -> int:
    """Queries per iteration: the published number, or as many as fit into `seconds`, estimated on the plain arm."""
    settings, parameters = stage.record.settings, stage.bench.program.parameters
    arm = "plain"
    refill(stage)
    declare(stage, operation)
    connect(stage, arm)
    lines = itertools.cycle(statements(operation, int(parameters["rows"]), int(parameters["data_seed"])))
    perform(
        stage, arm, operation, itertools.islice(lines, TRIAL_STEP), TRIAL_STEP
    )  # warm up: the first ones find everything cold
    done, began = 0, time.monotonic()
    while time.monotonic() - began < TRIAL_SECONDS:
        perform(stage, arm, operation, itertools.islice(lines, TRIAL_STEP), TRIAL_STEP)
        done += TRIAL_STEP
    rate = done / (time.monotonic() - began)
    stage.agent.disconnect(arm)
    return min(int(settings["queries"]), max(int(settings["least_queries"]), rounded(rate * seconds)))


def rounded(value: float) -> int:
    """Round down to two digits: 1234 to 1200. Pure."""
    step: int = 10 ** max(0, len(str(int(value))) - 2)
    return int(value) // step * step


def refill(stage: Stage) -> None:
    """Reload the table over a separate connection."""
    stage.agent.connect("loader", stage.pair.connect["plain"].single)
    stage.agent.query("loader", f"DROP TABLE {TABLE}")
    loading.fill(stage.bench, stage.agent)
    stage.agent.disconnect("loader")
