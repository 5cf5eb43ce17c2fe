"""The agent with thousands of TLS connections to one nginx: time to open, memory for each connection, one slice over all of them.

    python benchmarks/many_connections.py [CONNECTIONS] [THREADS]

Both arms have CONNECTIONS (default 5,000) connections at the same time. Memory is the agent's RSS, divided by its connections:
after they opened, after a small answer on each, after 100 KB on each. CIPHERCOST_AGENT names another agent to compare with.
"""

from __future__ import annotations

import os
import re
import sys
import time
from functools import partial
from pathlib import Path

from ciphercost.estimate.histogram import quantiles
from ciphercost.load.agent import Agent
from ciphercost.model.connection import Connection
from ciphercost.model.histogram import decode
from pairs import asking, documents, served

SIZES = {"small": 100, "large": 100_000}
ARMS = ("one", "other")


def memory(pid: int) -> int:
    """RSS in bytes."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) * 1024


def ask(agent: Agent, size: str) -> None:
    agent.program(asking("http", f"GET /{SIZES[size]}", "http"))


def main() -> None:
    connections = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    threads = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    cpus = sorted(os.sched_getaffinity(0))
    with served("nginx", cpus[:1], partial(documents, SIZES.values()), connections) as fields:
        measure(fields["encrypted"], connections, threads)


def measure(fields: Connection, connections: int, threads: int) -> None:
    with Agent() as agent:
        empty = memory(agent.pid)
        opened = 0
        for arm in ARMS:
            begun = time.monotonic()
            connected = agent.connect(arm, fields | {"connections": connections, "threads": threads})
            assert connected.encrypted
            took = time.monotonic() - begun
            print(f"arm {arm}: {connections} TLS connections, {threads} threads: open in {took:.2f} s", flush=True)
            opened += connections
            report_memory(agent, empty, opened, "just opened" if arm == ARMS[0] else "with the other arm's just opened")
            # nginx closes a connection without a request after 60 s.
            ask(agent, "small")
            load(agent, arm, "small", connections)
        report_memory(agent, empty, opened, "after small answers")
        ask(agent, "large")
        for arm in ARMS:
            load(agent, arm, "large", connections)
        report_memory(agent, empty, opened, "after large answers")


def load(agent: Agent, arm: str, size: str, connections: int) -> None:
    done = agent.slice(arm, 600, discard=0, operations=3 * connections)
    middle, high = quantiles(decode(done.histogram), [0.5, 0.99])
    print(
        f"{size} answers, arm {arm}: {done.operations} operations, {done.errors} errors {done.first_error}, "
        f"{done.connects} reconnected, {done.operations / done.seconds:.0f}/s, median {middle / 1e6:.1f} ms, "
        f"p99 {high / 1e6:.1f} ms, {done.bytes_received} bytes received",
        flush=True,
    )


def report_memory(agent: Agent, empty: int, connections: int, when: str) -> None:
    used = (memory(agent.pid) - empty) / connections / 1024
    print(f"memory: {used:.1f} KB for each of {connections} connections, {when}", flush=True)


if __name__ == "__main__":
    main()
