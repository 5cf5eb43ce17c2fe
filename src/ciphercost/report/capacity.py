"""Capacity planning: CPU seconds per million operations, and the servers needed for the same load. Pure.

Utilisation law (Denning and Buzen, "The Operational Analysis of Queueing Network Models", 1978): busy CPUs = operations per second × CPU
seconds per operation. So if CPU limits the servers, the number of servers grows by the same factor as CPU per operation.
µs per operation equal seconds per million operations.
"""

from __future__ import annotations

from typing import NamedTuple

from ciphercost.estimate import levels, notation, plausible
from ciphercost.model.result import Cell, Part
from ciphercost.model.spec import ARMS
from ciphercost.report.words import cell_text, figure_text

SERVERS = 10
"""Servers in the example that reports print."""


class Capacity(NamedTuple):
    """What encryption costs a group of CPU-bound servers."""

    key: str
    """The metric this is computed from: a key of `Cell.overhead`."""
    plain_s: float
    """CPU seconds per million operations in the plain arm."""
    encrypted_s: Part
    """The same in the encrypted arm, with the 95 % interval of its ratio to the plain arm."""
    servers: Part
    """Encrypting servers that handle the load of SERVERS plain ones."""


def of(cell: Cell) -> Capacity | None:
    """Capacity of a cell. None for a control, for a cell that was not proven, without the server's CPU time, and where a
    warning says that the ratio is not what encryption costs.

    It is computed from the CPU time of the headline: see `figure_text.cpu_metric`.
    """
    if cell_text.is_control(cell) or cell.status == "unproven" or plausible.is_no_cost(cell):
        return None
    for key in (figure_text.cpu_metric(cell), "client_cpu_per_op" if cell.embedded else "server_cpu_per_op"):
        if not key:
            continue
        plain = levels.LEVELS[key][0](cell.arms.get(ARMS[0], {}))
        if key in cell.overhead and plain:
            ratio = cell.overhead[key]
            seconds, servers = (
                Part(times * ratio.ratio, times * ratio.low, times * ratio.high) for times in (plain, SERVERS)
            )
            return Capacity(key, plain, seconds, servers)
    return None


def line(cell: Cell) -> str:
    """`CPU time per million operations: 12.7 → 17.7 s (17.4–17.8); 10 CPU-bound servers become 13.9 (13.7–14.0)`, or empty."""
    capacity = of(cell)
    if capacity is None:
        return ""
    seconds, servers = capacity.encrypted_s, capacity.servers
    return (
        f"CPU time per million operations: {notation.number(capacity.plain_s)} → {notation.number(seconds.value)} s "
        f"({notation.number(seconds.low)}–{notation.number(seconds.high)}); "
        f"{SERVERS} CPU-bound servers become {servers.value:,.1f} ({servers.low:,.1f}–{servers.high:,.1f})"
    )
