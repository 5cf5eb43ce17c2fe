"""capacity: a cell -> what people plan with: CPU seconds for a million operations, servers for the same load. Pure.

Utilisation law (Denning and Buzen, "The Operational Analysis of Queueing Network Models", 1978): busy CPUs = operations a second × CPU
seconds an operation. Where the CPU is what limits the servers, the same load therefore takes as many more of them as an operation takes
more CPU; µs an operation are seconds a million operations.
"""

from __future__ import annotations

from typing import NamedTuple

from ciphercost.estimate import levels
from ciphercost.model.result import Cell, Part
from ciphercost.model.spec import ARMS
from ciphercost.report import words

SERVERS = 10
"""Of the fleet that the words speak of."""


class Capacity(NamedTuple):
    """What encryption does to a fleet that the CPU limits."""

    key: str
    """The metric it rests on: a key of `Cell.overhead`."""
    plain_s: float
    """CPU seconds for a million operations in clear."""
    encrypted_s: Part
    """The same encrypted, with the 95 % interval of its ratio to the plain arm's level."""
    servers: Part
    """So many do what SERVERS did."""


def of(cell: Cell) -> Capacity | None:
    """None for a control, for figures that were not proven, and where there is no figure of the CPU time of who serves.

    Who serves is the server's processes, at rest with the kernel's threads, which may do the encrypting; of an embedded database the
    process that it lives in.
    """
    if words.is_control(cell) or cell.status == "unproven":
        return None
    wanted = ["machine_cpu_per_op"] if cell.layer == "rest" else []
    wanted.append("client_cpu_per_op" if cell.embedded else "server_cpu_per_op")
    for key in wanted:
        plain = levels.LEVELS[key][0](cell.arms.get(ARMS[0], {}))
        if key in cell.overhead and plain:
            ratio = cell.overhead[key]
            seconds, servers = (
                Part(times * ratio.ratio, times * ratio.low, times * ratio.high) for times in (plain, SERVERS)
            )
            return Capacity(key, plain, seconds, servers)
    return None


def line(cell: Cell) -> str:
    """`a million operations: 12.7 → 17.7 CPU s (17.4–17.8); 10 servers that CPU limits become 13.9 (13.7–14.0)`; empty without."""
    found = of(cell)
    if found is None:
        return ""
    seconds, servers = found.encrypted_s, found.servers
    return (
        f"a million operations: {words.number(found.plain_s)} → {words.number(seconds.value)} CPU s "
        f"({words.number(seconds.low)}–{words.number(seconds.high)}); "
        f"{SERVERS} servers that CPU limits become {servers.value:,.1f} ({servers.low:,.1f}–{servers.high:,.1f})"
    )
