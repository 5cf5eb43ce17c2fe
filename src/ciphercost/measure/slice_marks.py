"""slice_marks: derives from a slice's counters what disturbed it, by share of the slice or of the CPU. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ciphercost.load.load_client import ClientMachine
from ciphercost.model.slices import AgentSlice, Counters
from ciphercost.provision.server_pair import ServerPair

CLIENT_BOUND = 0.85
FOREIGN = 0.05
STEAL = 0.05
THROTTLED = 0.05
"""Share of a slice for which a CPU quota withheld a CPU."""
JAVA = 0.1
"""Share of a slice that Java may spend compiling, or collecting garbage."""
CORES = os.cpu_count() or 1
TICK = 1 / os.sysconf("SC_CLK_TCK")


def slice_marks(
    answer: AgentSlice, counters: Counters, pair: ServerPair, machines: Sequence[ClientMachine] | None = None
) -> list[str]:
    """What disturbed a slice: `jit`, `gc`, `steal`, `foreign-cpu`, `throttled`, `client-bound`.

    `machines`: those that made the load, if it was not this one alone; what disturbed one of them disturbed the slice.
    """
    marks = [
        name
        for name, spent in (("jit", answer.jit_ms), ("gc", answer.gc_ms))
        if answer.seconds and spent / 1e3 / answer.seconds > JAVA
    ]
    steal = counters.host_steal
    # At rest the kernel's own threads do part of the work; they have no user time.
    foreign = counters.foreign_user_cpu if pair.rest is not None else counters.foreign_cpu
    # Steal is counted in clock ticks: one tick in a short slice proves nothing, two do.
    if steal > STEAL and steal * answer.seconds * CORES >= 2 * TICK:
        marks.append("steal")
    if foreign / CORES > FOREIGN:
        marks.append("foreign-cpu")
    if (counters.throttled_ns or 0) > THROTTLED * counters.window_ns:
        marks.append("throttled")
    window = answer.seconds * 1e9 * min(max(1, answer.threads), max(1, len(pair.agent_cpus)))
    shared = pair.embedded or bool(pair.server_cpus & pair.agent_cpus)
    if machines is not None:
        return marks + [mark for mark in of_machines(machines, answer, shared=shared) if mark not in marks]
    if (
        not shared
        and not answer.connects
        and window
        and (answer.cpu_user_ns + answer.cpu_system_ns) / window > CLIENT_BOUND
    ):
        marks.append("client-bound")
    return marks


def of_machines(machines: Sequence[ClientMachine], answer: AgentSlice, *, shared: bool) -> list[str]:
    """What disturbed the machines of a fleet. `shared`: the controller's machine uses one core for client and server."""
    marks = []
    for machine in machines:
        if machine.counters is not None:
            cores = machine.cores or 1
            if machine.counters.host_steal > STEAL and machine.counters.host_steal * answer.seconds * cores >= 2 * TICK:
                marks.append("steal")
            if machine.counters.foreign_cpu / cores > FOREIGN:
                marks.append("foreign-cpu")
        if not answer.connects and machine.busy > CLIENT_BOUND and not (shared and machine.counters is None):
            marks.append("client-bound")
    return list(dict.fromkeys(marks))
