"""Measure the bytes of one insert and of its OK as they pass through a relay. I/O; the interpretation of sizes is pure.

Compares two slices that differ by a known number of inserts. What happens once per slice (reading the session's TLS facts, the
commit) is in both and cancels.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from ciphercost.host import deadlines
from ciphercost.host.relay import Relay, tls_record_sizes
from ciphercost.load.jdbc.jdbc_agent import JdbcAgent
from ciphercost.model.errors import AgentError

FEW, MORE = 4, 8
"""Inserts of the shorter slice, and how many more the longer one has."""
HEADER = 4
"""Bytes before each MySQL packet: length and sequence number."""


class Sizes(NamedTuple):
    """Message sizes per insert in bytes: MySQL packets with headers if unencrypted, TLS records without headers otherwise."""

    sent: list[float]
    received: list[float]


def packet_sizes(data: bytes) -> list[int]:
    """Bytes of each MySQL packet in one direction, unencrypted and uncompressed. Pure."""
    sizes, at = [], 0
    while at + HEADER <= len(data):
        size = HEADER + int.from_bytes(data[at : at + 3], "little")
        sizes.append(size)
        at += size
    return sizes


def of_an_insert(agent: JdbcAgent, arm: str, relay: Relay, *, encrypted: bool) -> Sizes:
    """Sizes on the arm's one connection, which passes through this relay. Raises AgentError."""
    read = tls_record_sizes if encrypted else packet_sizes
    seen: list[tuple[Counter[int], Counter[int]]] = [_counted(relay, read)]
    for operations in (FEW, FEW + MORE):
        answer = agent.slice(arm, 60, discard=0.0, operations=operations)
        if answer.errors:
            raise AgentError(f"the loop through a relay: {answer.first_error}", "statement")
        seen.append(_counted(relay, read))
    sent, received = (_more([counters[way] for counters in seen]) for way in (0, 1))
    return Sizes(sent, received)


def _counted(relay: Relay, read: Callable[[bytes], list[int]]) -> tuple[Counter[int], Counter[int]]:
    _settle(relay)
    return Counter(read(bytes(relay.to_server))), Counter(read(bytes(relay.to_client)))


def _settle(relay: Relay) -> None:
    """Wait until nothing more arrives: a slice's commit follows its last insert."""
    until, before = time.monotonic() + deadlines.login(), (-1, -1)
    while (now := (relay.sent, relay.received)) != before and time.monotonic() < until:
        before = now
        time.sleep(0.05)


def _more(seen: list[Counter[int]]) -> list[float]:
    """Sizes that occur more often in the longer slice, once for each occurrence per insert, ascending. Pure."""
    begun, few, many = seen
    more = {size: many[size] - 2 * few[size] + begun[size] for size in many}
    return [float(size) for size, count in sorted(more.items()) for _ in range(round(count / MORE))]
