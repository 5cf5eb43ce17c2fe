"""deadlines: how many seconds a server may take for what it is asked, however much it sends meanwhile.

A timeout that every received byte starts anew is none: a server that drips could hold us for ever. So each of these limits
the whole: a login, a query, a slice. All are multiples of one number, which CIPHERCOST_TIMEOUT changes.
"""

from __future__ import annotations

import os
import socket
import time

from ciphercost.model.errors import UsageError

VARIABLE = "CIPHERCOST_TIMEOUT"
USUAL, LEAST, MOST = 30.0, 0.1, 600.0
TIMEOUT = "timeout"
"""Code of the agent's error for what took too long."""


def login() -> float:
    """Until one connection can be used: TCP, TLS, login, `setup`. Raises UsageError."""
    said = os.environ.get(VARIABLE, "")
    if not said:
        return USUAL
    try:
        seconds = float(said)
    except ValueError:
        seconds = -1.0
    if not LEAST <= seconds <= MOST:
        raise UsageError(
            f"{VARIABLE}={said}: not a number of seconds from {LEAST:g} to {MOST:g}; write {USUAL:g}, for example"
        )
    return seconds


def connections(count: int = 1) -> float:
    """Until all of an arm's connections can be used. They open one after the other, so a slow link needs more time for more of them."""
    return (4 + count / 8) * login()


def query() -> float:
    """A witness's query."""
    return 2 * login()


def overtime() -> float:
    """By which a slice may outlast its length; its preparation has as long."""
    return 4 * login()


def check() -> float:
    """A query over all of a workload's rows, and dropping them."""
    return 20 * login()


def load() -> float:
    """A statement that makes or loads a workload's tables."""
    return 120 * login()


def receive(connection: socket.socket, count: int, seconds: float) -> bytes:
    """Exactly so many bytes, within so many seconds in all. Raises OSError (TimeoutError, or that the peer has hung up)."""
    until = time.monotonic() + seconds
    data = b""
    while len(data) < count:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"{len(data)} of {count} bytes came within {seconds:g} s")
        connection.settimeout(left)
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionError("the peer has hung up")
        data += part
    return data
