"""The agent's load loop: the real agent's null driver thinks, gets requests at random times, and counts failures by
cause.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from asking import ask
from ciphercost.estimate.histogram import quantiles
from ciphercost.load import workloads
from ciphercost.load.agent import Agent
from ciphercost.load.due_times import due_us
from ciphercost.model.connection import Connection
from ciphercost.model.errors import AgentError
from ciphercost.model.histogram import decode
from ciphercost.model.traffic import Arrived

THOUGHT_US = 300_000


@pytest.fixture
def agent() -> Iterator[Agent]:
    with Agent() as started:
        yield started


def load(agent: Agent, text: str, connections: int = 1, threads: int = 1, more: str = "") -> None:
    """Set `text` as the program, and connect arm `plain`. `more`: keys of the workload."""
    agent.program(
        workloads.prepare(
            workloads.read(
                f"title = 't'\nmeasures = 'm'\n{more}\n[[transaction]]\nname = 't'\nscript = '''{text}'''", "t"
            ),
            "null",
            {},
        )
    )
    agent.connect("plain", Connection(driver="null", connections=connections, threads=threads))


@pytest.mark.parametrize(("connections", "threads"), [(1, 1), (40, 1), (40, 2)])
def test_a_thought_is_no_latency_and_no_connection_waits_for_anothers(
    agent: Agent, connections: int, threads: int
) -> None:
    load(agent, f"\\set time {THOUGHT_US}\nTHINK :time;", connections, threads)
    rate = 0.7 * connections / (THOUGHT_US / 1e6)
    answer = agent.slice("plain", 1.5, discard=0, seed=1, rate=rate)
    assert not answer.errors
    # Sequential think times would give 5. If latency included think time, every value would show it; a delayed machine
    # affects only some.
    assert answer.operations >= (10 if connections > 1 else 1)
    assert quantiles(decode(answer.histogram), [0.1])[0] < THOUGHT_US * 1000 / 2


def test_nobody_thinks_in_a_closed_loop(agent: Agent) -> None:
    load(agent, "THINK 3600000000", 8)
    assert agent.slice("plain", 60, discard=0, operations=500).operations == 500


def test_what_a_thought_takes_is_drawn_for_each_operation(agent: Agent) -> None:
    load(agent, "\\set time random(0, 2000)\nTHINK :time; THINK :time;", 20)
    answer = agent.slice("plain", 60, discard=0, operations=200, rate=2000, arrivals="random")
    assert (answer.operations, answer.errors, answer.error_kinds) == (200, 0, "")


def test_failures_are_told_by_what_they_failed_by(agent: Agent) -> None:
    # Sent directly to the agent, because `prepare` would refuse it.
    ask(agent, {"type": "program", "name": "p"})
    ask(agent, {"type": "variable", "name": "time", "kind": "uniform", "low": -9, "high": -1})
    ask(agent, {"type": "transaction", "name": "t", "weight": 1})
    ask(agent, {"type": "statement", "transaction": "t", "sql": "THINK $1", "parameters": "time"})
    agent.connect("plain", Connection(driver="null", connections=3))
    answer = agent.slice("plain", 60, discard=0, operations=30)
    assert (answer.operations, answer.errors, answer.error_kinds) == (0, 30, "statement=30")
    assert answer.first_error.startswith("statement: THINK -")


@pytest.mark.parametrize("threads", [1, 2])
def test_random_arrivals_have_the_rate(agent: Agent, threads: int) -> None:
    load(agent, "SELECT 1", 4, threads)
    answers = [agent.slice("plain", 0.5, discard=0, seed=seed, rate=8000, arrivals="random") for seed in range(5)]
    # 4000 are expected, with a standard deviation of 63; on a machine that is delayed at the end, fewer finish.
    assert all(answer.operations <= 4400 for answer in answers)
    assert max(answer.operations for answer in answers) >= 3700


@pytest.mark.parametrize("threads", [1, 2])
def test_operations_come_as_they_came_in_a_log(agent: Agent, threads: int) -> None:
    """In each tenth of a second but the last of ten 1, and then 91: a slice runs what is due in it, and nothing else."""
    counts = [*[1] * 9, 91]
    load(agent, "SELECT 1", 4, threads, f'arrivals = "logged"\narrived = {{ interval_ms = 100, counts = {counts} }}')
    for seed in range(3):
        due = due_us(Arrived(100, tuple(counts)), 100.0, 0.7, seed)
        # What is due in the last moments of a slice may end after it; of a slice on a busy machine, more.
        least = len(due) - sum(us > 0.6e6 for us in due)
        for _ in range(10):
            ended = agent.slice("plain", 0.7, discard=0, seed=seed, rate=100.0, arrivals="logged").operations
            assert ended <= len(due)
            if ended >= least:
                break
        assert ended >= least


def test_random_arrivals_are_of_an_open_loop_alone(agent: Agent) -> None:
    load(agent, "SELECT 1")
    with pytest.raises(AgentError, match="arrivals") as refused:
        agent.slice("plain", 0.1, arrivals="random")
    assert refused.value.code == "bad-message"
