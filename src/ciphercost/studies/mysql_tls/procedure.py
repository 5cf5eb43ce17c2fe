"""procedure: the study as it was run: operation by operation, first one arm and then the other, five iterations of a file of statements, sar beside it. I/O.

As mysqlslap does it (`--iterations=5 --number-of-queries=10000 --no-drop --query=FILE`): an iteration opens a connection, runs the
file from its beginning, again and again, until the number of queries is reached, and closes it; all of that is timed. What an
iteration has changed, the next one finds.
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
from ciphercost.prove.probe import single
from ciphercost.provision import loading
from ciphercost.studies import Stage

TABLE = "personal_records"
TRIAL_SECONDS = 0.5
"""Of each operation, to see how many queries fit into the time there is."""
TRIAL_STEP = 10


def statements(operation: str, rows: int, seed: int) -> Iterator[str]:
    """The lines of an operation's file: one statement for each person. Pure."""
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
    """Every operation on every arm, in the record's order. Raises RunError, Unproven."""
    settings = stage.record.settings
    iterations = int(settings["iterations"])
    share = stage.seconds / (len(operations) * len(stage.record.arms) * iterations)
    counts = {name: count(stage, name, share) for name in operations}
    began = time.monotonic()
    for name, arm in in_order(operations, stage.record.arms, by_operation=bool(settings["by_operation"])):
        stage.say(f"as published: {name}, {arm}: {iterations} iterations of {counts[name]:,} queries")
        refill(stage)
        started = time.monotonic() - began
        pid = stage.pair.server.pid if stage.pair.server else 0
        with sar.Sar(pid, settings["interval_s"]) as host:
            seconds = [iteration(stage, arm, name, counts[name]) for _ in range(iterations)]
        load = {"queries": float(counts[name])}
        stage.keep(StudyRun(name, arm, round(started, 3), load, {"seconds": seconds}, host.rows))


def in_order(operations: Sequence[str], arms: Sequence[str], *, by_operation: bool) -> list[tuple[str, str]]:
    """(operation, arm): both arms of an operation and then the next one's, or every operation of an arm and then of the other. Pure."""
    if by_operation:
        return [(name, arm) for name in operations for arm in arms]
    return [(name, arm) for arm in arms for name in operations]


def iteration(stage: Stage, arm: str, operation: str, queries: int) -> float:
    """Seconds from before its connection is opened until it is closed."""
    parameters = stage.bench.program.parameters
    lines = list(statements(operation, int(parameters["rows"]), int(parameters["data_seed"])))
    declare(stage, operation)
    began = time.monotonic()
    connect(stage, arm)
    perform(stage, arm, operation, itertools.islice(itertools.cycle(lines), queries), queries)
    stage.agent.disconnect(arm)
    return time.monotonic() - began


def declare(stage: Stage, operation: str) -> None:
    """SELECT's rows stay in the agent, as a client's would; the other statements are sent as they are, and need no program."""
    program = stage.bench.program
    stage.agent.program(program if operation == "select" else msgspec.structs.replace(program, transactions=()))


def connect(stage: Stage, arm: str) -> None:
    answer = stage.agent.connect(arm, **single(stage.pair.connect[arm]))  # type: ignore[index]
    if bool(answer["encrypted"]) != (arm == "encrypted"):
        raise Unproven(f"client witness, {arm} arm: the load's connection is not what was proven")


def perform(stage: Stage, arm: str, operation: str, lines: Iterator[str], queries: int) -> None:
    if operation != "select":
        stage.agent.queries(arm, lines)
        return
    answer = stage.agent.slice(arm, 3600, discard=0.0, operations=queries)
    if answer.errors:
        raise AgentError(f"{arm} arm: {answer.first_error}", "statement")


def count(stage: Stage, operation: str, seconds: float) -> int:
    """Queries of one iteration: the published number, or as many as fit into `seconds`. They are tried in clear."""
    settings, parameters = stage.record.settings, stage.bench.program.parameters
    arm = "plain"
    refill(stage)
    declare(stage, operation)
    connect(stage, arm)
    lines = itertools.cycle(statements(operation, int(parameters["rows"]), int(parameters["data_seed"])))
    perform(
        stage, arm, operation, itertools.islice(lines, TRIAL_STEP), TRIAL_STEP
    )  # the first ones find everything cold
    done, began = 0, time.monotonic()
    while time.monotonic() - began < TRIAL_SECONDS:
        perform(stage, arm, operation, itertools.islice(lines, TRIAL_STEP), TRIAL_STEP)
        done += TRIAL_STEP
    rate = done / (time.monotonic() - began)
    stage.agent.disconnect(arm)
    return min(int(settings["queries"]), max(int(settings["least_queries"]), rounded(rate * seconds)))


def rounded(value: float) -> int:
    """Down to two digits: 1234 to 1200. Pure."""
    step: int = 10 ** max(0, len(str(int(value))) - 2)
    return int(value) // step * step


def refill(stage: Stage) -> None:
    """The table as it was loaded, by a connection of its own."""
    fields = single(stage.pair.connect["plain"])
    stage.agent.connect("loader", **fields)
    stage.agent.query("loader", f"DROP TABLE {TABLE}")
    loading.fill(stage.bench, stage.agent)
    stage.agent.disconnect("loader")
