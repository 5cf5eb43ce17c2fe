"""deadlines: how many seconds a server may take for a request, however much it sends meanwhile.

A timeout that restarts with every received byte has no limit: a server that sends slowly could block a run forever. So
each limit covers the whole of a login, a query or a slice. All are multiples of one number, which CIPHERCOST_TIMEOUT
changes.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from ciphercost.model.errors import UsageError

if TYPE_CHECKING:
    import socket

VARIABLE = "CIPHERCOST_TIMEOUT"
USUAL, LEAST, MOST = 30.0, 0.1, 600.0
TIMEOUT = "timeout"
"""Code of the agent's error for a request that took too long."""


def login() -> float:
    """Seconds until one connection is usable: TCP, TLS, login, `setup`. Raises UsageError."""
    value = os.environ.get(VARIABLE, "")
    if not value:
        return USUAL
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not LEAST <= seconds <= MOST:
        raise UsageError(
            f"{VARIABLE}={value}: not a number of seconds from {LEAST:g} to {MOST:g}; write {USUAL:g}, for example"
        )
    return seconds


def connections(count: int = 1) -> float:
    """Seconds until all of an arm's connections are usable. They open one after the other, so a slow link needs more
    time for more of them.
    """
    return (4 + count / 8) * login()


def query() -> float:
    """Seconds for a witness's query."""
    return 2 * login()


def overtime() -> float:
    """Seconds by which a slice may exceed its length; its preparation may take as long."""
    return 4 * login()


def check() -> float:
    """Seconds for a query over all of a workload's rows, and for dropping them."""
    return 20 * login()


def load() -> float:
    """Seconds for a statement that creates or loads a workload's tables."""
    return 120 * login()


def receive(connection: socket.socket, count: int, seconds: float) -> bytes:
    """Receive exactly `count` bytes within `seconds` in all. Raises OSError (TimeoutError, or the peer closed the
    connection).
    """
    until = time.monotonic() + seconds
    data = b""
    while len(data) < count:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"received {len(data)} of {count} bytes within {seconds:g} s")
        connection.settimeout(left)
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionError("the peer closed the connection")
        data += part
    return data
