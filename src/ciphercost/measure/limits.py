"""limits: how much load a server gets, and when its answers stop the load."""

from __future__ import annotations

from collections.abc import Callable

from ciphercost.model.constrained_types import MOST_ERRORS
from ciphercost.model.errors import LoadStopped
from ciphercost.model.slices import AgentSlice
from ciphercost.model.spec import Arm, CellSpec

LEAST_OPERATIONS = 20
"""A slice with fewer operations shows no share of errors and no percentile."""
PACED_OPERATIONS = 10
"""Operations that a slice of pilot or warm-up has time for under `max_rate`."""
KEEPS_UP = 0.9
"""Share of `max_rate` that both arms must reach in the pilot if the open loop is to use all of it."""


def rate(cell: CellSpec, wanted: float) -> float:
    """The rate of a slice's open loop, per second: the wanted one, but never above the cell's limit. 0: a closed loop."""
    if not cell.max_rate:
        return wanted
    return min(wanted or cell.max_rate, cell.max_rate)


def length(cell: CellSpec, wanted: float) -> float:
    """Seconds of a slice of pilot or warm-up: longer than wanted if few operations per second are allowed."""
    return max(wanted, PACED_OPERATIONS / cell.max_rate) if cell.max_rate else wanted


def open_loop_rate(cell: CellSpec, wanted: float, pilot: float) -> float:
    """The rate of the open loop, per second: under `max_rate` all of it if both arms kept up with it in the pilot, else the wanted one.

    `pilot`: operations per second of the slower arm in the pilot, which had the same limit.
    """
    return cell.max_rate if cell.max_rate and pilot >= KEEPS_UP * cell.max_rate else rate(cell, wanted)


def check(cell: CellSpec, arm: Arm, answer: AgentSlice, p99: Callable[[], float]) -> None:
    """Raises LoadStopped if a slice passed a limit. `p99`: its 99th percentile in seconds."""
    tried = answer.operations + answer.errors
    if tried < LEAST_OPERATIONS:
        return
    where = f"the load on this server was stopped: {arm} arm"
    errors, allowed = answer.errors / tried, cell.max_errors or (MOST_ERRORS if cell.url else 0.0)
    if allowed and errors > allowed:
        first = f" (first error: {answer.first_error})" if answer.first_error else ""
        raise LoadStopped(
            f"{where}: {answer.errors} of {tried} operations of a slice failed{first}, more than --max-errors {100 * allowed:g}%; "
            "use fewer --clients or --max-rate, or allow more errors"
        )
    if cell.max_latency and (slow := p99()) > cell.max_latency:
        raise LoadStopped(
            f"{where}: 1 % of the operations of a slice took longer than {1e3 * slow:.3g} ms, and --max-latency is "
            f"{1e3 * cell.max_latency:g} ms; use fewer --clients or --max-rate"
        )
