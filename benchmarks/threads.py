"""Two threads of one agent against one, on the `null` driver: operations per second, and beside them what the machine allows.

The machine's own limit is two agents with one thread each: they share nothing but its cores. Needs two CPUs that nothing else uses.
"""

from __future__ import annotations

import math
import os
import statistics as st
import threading

from ciphercost.load.agent import Agent
from ciphercost.model.connection import Connection
from pairs import asking, row
from run import Row

SECONDS, BLOCKS, AIM = 2.0, 8, 1.9
ORDER = ("one", "two", "apart", "apart", "two", "one")
"""Of a block: one thread, two threads, two agents, and back, so that a drift of the machine's speed cancels."""


def rows() -> list[Row]:
    """How much more two threads do than one (aim 1.9), and two agents (what the machine allows)."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        raise SystemExit("threads: needs two CPUs")
    with Agent(cpus=cpus) as both, Agent(cpus=cpus[:1]) as first, Agent(cpus=cpus[1:]) as second:
        for agent in (both, first, second):
            agent.program(asking("null", "nothing"))
        both.connect("one", Connection(driver="null", connections=1, threads=1))
        both.connect("two", Connection(driver="null", connections=2, threads=2))
        for agent in (first, second):
            agent.connect("one", Connection(driver="null", connections=1, threads=1))
        rates = {
            "one": lambda: rate(both, "one"),
            "two": lambda: rate(both, "two"),
            "apart": lambda: apart(first, second),
        }
        gains: dict[str, list[float]] = {"two": [], "apart": []}
        for _ in range(BLOCKS):
            logs: dict[str, list[float]] = {"one": [], "two": [], "apart": []}
            for who in ORDER:
                logs[who].append(math.log(rates[who]()))
            for who, gain in gains.items():
                gain.append(st.mean(logs[who]) - st.mean(logs["one"]))
            print(
                f"  two threads {math.exp(gains['two'][-1]):.3f}, two agents {math.exp(gains['apart'][-1]):.3f}",
                flush=True,
            )
    return [
        row("threads", "null, two threads ÷ one: per second", gains["two"], AIM),
        row("threads", "null, two agents ÷ one, the machine's own limit: per second", gains["apart"], AIM),
    ]


def rate(agent: Agent, arm: str) -> float:
    """Operations per second of one slice."""
    answer = agent.slice(arm, SECONDS)
    return answer.operations / answer.seconds


def apart(*agents: Agent) -> float:
    """The sum of the operations per second of agents that run at once."""
    found = [0.0] * len(agents)

    def run(at: int, agent: Agent) -> None:
        found[at] = rate(agent, "one")

    threads = [threading.Thread(target=run, args=each) for each in enumerate(agents)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(found)
