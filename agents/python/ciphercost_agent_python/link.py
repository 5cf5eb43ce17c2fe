"""One connection: what the load loop asks of it. Its methods are coroutines; those of a driver that blocks never suspend."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from ciphercost_agent_python import clock, rng, scalar
from ciphercost_agent_python.failure import Failure, statement
from ciphercost_agent_python.script import Operation, Script

LONGEST_US = 3_600_000_000


class Rows(NamedTuple):
    rows: int
    columns: str
    text: str


class Seen(NamedTuple):
    """How a session is encrypted."""

    encrypted: bool
    protocol: str = ""
    cipher: str = ""


def seen_by(session: Any) -> Seen:
    """How a session of Python's own TLS is encrypted; it is not, if it is none."""
    if not hasattr(session, "cipher"):
        return Seen(False)
    return Seen(True, session.version() or "", (session.cipher() or ("",))[0])


class Outcome:
    """Totals of the operation that ended last."""

    __slots__ = ("checksum", "error", "retries", "rows", "thought_ns")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.rows = self.checksum = self.thought_ns = self.retries = 0
        self.error: Failure | None = None

    def restart(self) -> None:
        """The operation begins again. What it has slept stays outside its latency."""
        self.rows = self.checksum = 0
        self.retries += 1


class Link(ABC):
    """`waits`: whether its coroutines suspend, so that they need an event loop."""

    waits = False

    def __init__(self) -> None:
        self.outcome = Outcome()
        self.connects = 0
        """Connections opened for operations so far."""
        self.awake_ns = 0
        """When it last awoke from a sleep of a script, or will; 0: it has not slept."""

    @abstractmethod
    async def prepare(self, script: Script, *, open_loop: bool) -> None:
        """Prepare for a slice. Raises Failure."""

    @abstractmethod
    async def run(self, operation: Operation) -> None:
        """Run an operation; `outcome` has its totals. Raises Failure if the connection is lost."""

    @abstractmethod
    async def query(self, sql: str) -> Rows:
        """Raises Failure."""

    @abstractmethod
    async def close(self) -> None:
        """End the connection, without waiting for the server."""

    @abstractmethod
    def abort(self) -> None:
        """End a connection on which another thread may be blocked."""

    async def pause(self, due: int) -> None:
        """Wait until the monotonic clock shows `due`, in nanoseconds."""
        if self.waits:
            while (left := due - clock.now()) > 0:
                await asyncio.sleep(left / 1e9)
        else:
            clock.sleep_until(due)


class NullLink(Link):
    """An operation that does nothing, waits busily, or thinks."""

    def __init__(self, busy_ns: int, jitter: float, number: int, *, per_request: bool) -> None:
        super().__init__()
        self._busy_ns, self._jitter, self._per_request = busy_ns, jitter, per_request
        self._random = rng.of_operation(0, number)
        self._thinks: dict[int, Any] = {}
        """By statement: microseconds, or (variable,)."""

    async def prepare(self, script: Script, *, open_loop: bool) -> None:
        if script.decides:
            raise statement("the null driver runs no scripts with steps")
        self._open = open_loop
        found = ((at, _think(each.sql, each.parameters)) for at, each in enumerate(script.statements))
        self._thinks = {at: time for at, time in found if time is not None}

    async def run(self, operation: Operation) -> None:
        self.connects += self._per_request
        outcome = self.outcome
        outcome.clear()
        if self._busy_ns:
            share = 1 + self._jitter * (2 * self._random.share() - 1) if self._jitter else 1.0
            until = clock.now() + int(self._busy_ns * share)
            while clock.now() < until:
                pass
        for at in range(operation.first, operation.last) if self._thinks else ():
            if (time := self._thinks.get(at)) is None:
                continue
            try:
                us = _microseconds(operation.parameter(time[0])) if isinstance(time, tuple) else time
            except Failure as failure:
                outcome.error = failure
                return
            if self._open and us:
                # The requested time, not the actual one: waking up late is the agent's own delay and counts.
                outcome.thought_ns += us * 1000
                await self.pause(clock.now() + us * 1000)

    async def query(self, sql: str) -> Rows:  # noqa: ARG002
        raise statement("the null driver runs no SQL")

    async def close(self) -> None:
        """There is nothing to end."""

    def abort(self) -> None:
        """Nobody waits for a server."""


def _think(sql: str, parameters: tuple[int, ...]) -> Any:
    """The time of a THINK statement, (variable,) for a variable's, None for another statement. Raises Failure."""
    words = sql.split()
    if words[:1] != ["THINK"]:
        return None
    if len(words) != 2:
        raise statement(f'"{sql}": write THINK $1, the value in microseconds')
    if not words[1].startswith("$"):
        return _microseconds(words[1])
    digits = words[1][1:]
    if not (digits.isascii() and digits.isdecimal() and 0 < int(digits) <= len(parameters)):
        raise statement(f'"{sql}": write THINK $1, the value in microseconds')
    return (parameters[int(digits) - 1],)


def _microseconds(said: Any) -> int:
    time = scalar.integer_of(str(said))
    if time is None or not 0 <= time <= LONGEST_US:
        raise statement(f"THINK {said}: must be microseconds, from 0 to {LONGEST_US}")
    return time
