"""The agent's memory does not grow with the number of its slices."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from asking import ask
from ciphercost.load.agent import Agent
from ciphercost.model.connection import Connection
from ciphercost.model.errors import AgentError

SLICES = 60
MOST_KB = 32
"""What slices may add: the blocks of a thread that stay for the next one. What one frees is at least 80 kB."""
EXACT = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
"""No thread keeps freed blocks for itself, so that what is resident is what is in use."""


def heap_kb(agent: Agent) -> int:
    """Resident memory of the main thread's heap, once the agent waits for a request."""
    # The agent tidies up after it has answered a slice, and before it answers anything else.
    with pytest.raises(AgentError, match='arm "unknown" is not connected'):
        agent.disconnect("unknown")
    heap = Path(f"/proc/{agent.pid}/smaps").read_text().partition("[heap]")[2]
    return int(re.findall(r"Rss: +(\d+) kB", heap)[0])


def test_what_a_slice_frees_goes_back_to_the_kernel() -> None:
    for _ in range(3):  # what one thread has before another ends depends on when they run
        before, sizes = sizes_after_slices()
        if max(sizes) - before <= MOST_KB:
            break
    assert max(sizes) - before <= MOST_KB, (before, sizes)


def sizes_after_slices() -> tuple[int, list[int]]:
    """The heap (kB) before the first slice, and after each."""
    with Agent(env=EXACT) as agent:
        ask(agent, {"type": "program", "name": "test"})
        ask(agent, {"type": "transaction", "name": "t", "weight": 1})
        ask(agent, {"type": "statement", "transaction": "t", "sql": "nothing", "parameters": ""})
        agent.connect("plain", Connection(driver="null", connections=50, threads=2))
        before, sizes = heap_kb(agent), []
        for number in range(SLICES):
            agent.slice("plain", 0.002, seed=number)
            sizes.append(heap_kb(agent))
    return before, sizes
