"""Limits the total time of a task, however much the server sends meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from ciphercost_agent_python.failure import Failure, bad_message
from ciphercost_agent_python.fields import Fields

CONNECT, QUERY, SLICE = 30.0, 60.0, 120.0
"""Seconds, where a request names none; SLICE: by which a slice may exceed its length."""
LONGEST = 86_400.0
T = TypeVar("T")


def of_all(connections: int) -> float:
    """Time for all connections of an arm, as a multiple of the time for one."""
    return 4 + connections / 8


def seconds(fields: Fields, otherwise: float) -> float:
    """A request's `timeout`, or the default."""
    found = fields.number("timeout", otherwise)
    if not 0 < found <= LONGEST:
        raise bad_message("timeout: must be above 0 and at most 86400")
    return found


def within(limit: float, what: str, work: Callable[[], T], abort: Callable[[], None]) -> T:
    """The result of `work`, which gets a thread of its own; that thread is left behind if it does not finish in time.

    `what`: the end of "the server did not …". `abort` is called when the time is over. Raises Failure.
    """
    done = threading.Event()
    result: list[Any] = []

    def run() -> None:
        try:
            result.append((work(), None))
        except BaseException as error:
            result.append((None, error))
        done.set()

    threading.Thread(target=run, daemon=True, name="request").start()
    if not done.wait(limit):
        abort()
        raise Failure(
            "timeout",
            f"the server did not {what} within {limit:g} s; if it is only slow, raise CIPHERCOST_TIMEOUT",
            lost=True,
        )
    value, error = result[0]
    if isinstance(error, MemoryError):
        raise Failure("statement", "the server's answer does not fit into the agent's memory", lost=True)
    if error is not None:
        raise error
    found: T = value
    return found
