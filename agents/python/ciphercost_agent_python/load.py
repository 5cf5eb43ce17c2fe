"""Runs and times the operations of a slice: each connection of a driver that blocks in its own thread, or all in one event loop."""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, TypeVar

from ciphercost_agent_python import clock, histogram, rng
from ciphercost_agent_python.clock import Cpu
from ciphercost_agent_python.failure import Failure
from ciphercost_agent_python.link import Link
from ciphercost_agent_python.script import Operation, Script

T = TypeVar("T")
LATE_NS = 1_000_000
"""A request that begins more than this after it was due is late."""
GATHER_NS, GATHER_EACH_NS = 2_000_000, 100_000
"""Connections start together, this long after their threads were made, plus this much for each."""
NOTHING = Cpu(0, 0)


def driven(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never suspends, because its driver blocks."""
    try:
        work.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    work.close()
    raise RuntimeError("a coroutine of a driver that blocks has suspended")


class Plan(NamedTuple):
    """One requested slice."""

    length_ns: int
    discard_ns: int
    seed: int
    interval_ns: float
    """Between due requests; 0: closed loop."""
    random: bool
    operations: int
    """0: no limit."""
    silence_ns: int
    """An operation that takes longer has lost its connection."""


class Tally:
    """The counts of one connection, or of all."""

    def __init__(self) -> None:
        self.operations = self.errors = self.rows = self.checksum = self.late = self.connects = self.retries = 0
        self.work = 0.0
        self.kinds: Counter[str] = Counter()
        self.latencies: Counter[int] = Counter()
        self.first_error = ""
        self.cpu = NOTHING
        self.last_end = 0

    def add(self, other: Tally) -> None:
        for name in ("operations", "errors", "rows", "checksum", "late", "connects", "retries", "work"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.kinds += other.kinds
        self.latencies += other.latencies
        self.first_error = self.first_error or other.first_error
        self.cpu = Cpu(self.cpu.user_ns + other.cpu.user_ns, self.cpu.system_ns + other.cpu.system_ns)
        self.last_end = max(self.last_end, other.last_end)


class Total(NamedTuple):
    seconds: float
    threads: int
    tally: Tally
    process_ns: int


class Load:
    """One slice on an arm's connections."""

    def __init__(self, links: Sequence[Link], script: Script, plan: Plan) -> None:
        self.links, self.script, self.plan = links, script, plan
        self.start = clock.now() + GATHER_NS + GATHER_EACH_NS * len(links)
        self.count_from = self.start + plan.discard_ns
        self.end = self.start + plan.length_ns
        self.limit = plan.operations or sys.maxsize
        self.next = itertools.count()
        """Open loop: the next request that no connection has claimed."""
        self.stop = False
        """A connection was lost, so the slice is void."""
        self.workers = [_Worker(self, link, number) for number, link in enumerate(links)]
        self._working = threading.Semaphore(0)
        self._ends = 0
        """Threads that end: one for each connection, or the event loop's part."""

    def run(self, counting: Callable[[], None], loop: asyncio.AbstractEventLoop | None) -> Total:
        """Run the slice. `counting` is called when the counted part begins; `loop`: of connections that wait. Raises Failure."""
        self._ends = 1 if loop is not None else len(self.workers)
        if loop is not None:
            asyncio.run_coroutine_threadsafe(self._together(), loop)
        else:
            for worker in self.workers:
                threading.Thread(target=self._alone, args=(worker,), daemon=True, name="load").start()
        ended = 0
        ended += self._wait_until(self.count_from, ended)
        before = clock.process_ns()
        if not self.stop:
            counting()
        after = 0
        if not self.plan.operations:
            ended += self._wait_until(self.end, ended)
            after = clock.process_ns()
        while ended < self._ends:
            if self._working.acquire(timeout=1.0):
                ended += 1
                continue
            if waiting := sum(worker.is_silent() for worker in self.workers):
                self.stop = True
                for link in self.links:
                    link.abort()
                seconds = f"{self.plan.silence_ns / 1e9:g}"
                raise Failure(
                    "connect",
                    f"the server has not finished an answer for {seconds} s, with {waiting} operations in flight",
                    lost=True,
                )
        after = after or clock.process_ns()
        tally = Tally()
        for worker in self.workers:
            if worker.failure is not None:
                raise worker.failure
            tally.add(worker.tally)
        counted = self.plan.length_ns - self.plan.discard_ns
        if self.plan.operations:
            counted = max(1, tally.last_end - self.start)
        return Total(counted / 1e9, self._ends, tally, after - before)

    def _wait_until(self, due: int, ended: int) -> int:
        """Wait until this time, or until all threads have ended. Returns how many have."""
        found = 0
        while (left := due - clock.now()) > 0 and not self.stop and ended + found < self._ends:
            found += self._working.acquire(timeout=min(left / 1e9, 0.05))
        return found

    def _alone(self, worker: _Worker) -> None:
        """A connection's thread."""
        try:
            clock.wake_on_time()
            driven(worker.work())
        finally:
            self._working.release()

    async def _together(self) -> None:
        """All connections in the thread of the event loop, whose CPU time counts as that of the first."""
        try:
            clock.wake_on_time()
            await asyncio.gather(*(worker.work() for worker in self.workers))
        finally:
            self._working.release()


class _Worker:
    """One connection's part of a slice."""

    def __init__(self, load: Load, link: Link, number: int) -> None:
        plan = load.plan
        self._load, self._link, self._plan = load, link, plan
        self._operation = Operation(load.script, len(load.links))
        self.tally = Tally()
        self.failure: Failure | None = None
        self._first = number == 0
        self._number = number
        """Closed loop, and random arrivals: the next operation. Connection i of n runs i, i + n, …"""
        self._arrivals = rng.of_operation(plan.seed, -1 - number) if plan.random else None
        """Each connection has its own process, so that none waits for another."""
        self._arrival = 0.0
        self._busy_since = 0
        """When the operation in flight began; 0: none. Read by the main thread."""
        self._boundary = load.count_from
        """When the next part begins: first the counted part, then the rest."""
        self._counting = False
        self._cpu = NOTHING
        self._connects = 0

    def is_silent(self) -> bool:
        # Whoever is asleep, by its own script, waits for no server; but a slice must end.
        since, awake = self._busy_since, min(self._link.awake_ns, self._load.end)
        return bool(since) and clock.now() - max(since, awake) > self._plan.silence_ns

    async def work(self) -> None:
        load = self._load
        try:
            await self._link.pause(load.start)
            self._look(max(clock.now(), load.start))
            await (self._open() if self._plan.interval_ns else self._closed())
            self._busy_since = 0
            if not self._plan.operations and not load.stop:
                await self._link.pause(load.end)
                self._look(max(clock.now(), load.end))
            if self._counting:
                self._close()
        except Failure as failure:
            self.failure, load.stop = failure, True
        except BaseException as error:
            traceback.print_exc()
            self.failure, load.stop = (
                Failure("internal", f"a load thread crashed: {type(error).__name__}", lost=True),
                True,
            )
        finally:
            self._busy_since = 0

    async def _closed(self) -> None:
        load, seed, several = self._load, self._plan.seed, len(self._load.links)
        now = clock.now()
        while now < load.end and self._number < load.limit and not load.stop:
            self._operation.draw(seed, self._number)
            self._number += several
            now = await self._go(now, now, late=False)

    async def _open(self) -> None:
        """Begin each request when it is due."""
        load = self._load
        while not load.stop and clock.now() < load.end:
            request, due = self._claimed()
            if due >= load.end or request >= load.limit:
                return
            await self._link.pause(due)
            now = clock.now()
            self._operation.draw(self._plan.seed, request)
            await self._go(now, due, late=now > due + LATE_NS)

    def _claimed(self) -> tuple[int, int]:
        """The next request, and when it is due."""
        load, interval = self._load, self._plan.interval_ns
        if self._arrivals is None:
            request = next(load.next)
            return request, load.start + int(request * interval)
        request = self._number
        self._number += len(load.links)
        self._arrival += interval * len(load.links) * self._arrivals.exponential()
        return request, load.start + int(self._arrival)

    async def _go(self, now: int, begun: int, *, late: bool) -> int:
        """Run the operation and count it. `begun`: when its time began. Returns the time."""
        self._busy_since = now
        await self._link.run(self._operation)
        self._busy_since = 0
        now = clock.now()
        if now >= self._boundary:
            self._look(now)
        load, tally, outcome = self._load, self.tally, self._link.outcome
        if outcome.error is None:
            inside = min(now, load.end) - max(begun, load.count_from)
            if inside > 0:
                tally.work += 1.0 if inside == now - begun else inside / (now - begun)
            if self._counting:
                tally.operations += 1
                tally.rows += outcome.rows
                tally.checksum += outcome.checksum
                latency = now - begun - outcome.thought_ns
                tally.latencies[histogram.index(max(1, min(latency, histogram.HOUR_NS)))] += 1
        elif self._counting or self._boundary != load.count_from:
            # An operation in flight at the end does not count; but if it failed, this slice counts the error.
            tally.errors += 1
            tally.kinds[outcome.error.kind] += 1
            tally.first_error = tally.first_error or outcome.error.spelled
        if self._counting:
            tally.late += late
            tally.retries += outcome.retries
            tally.last_end = now
        return now

    def _look(self, now: int) -> None:
        """Move to the next part of the slice when it is time."""
        load = self._load
        if not self._counting and self._boundary == load.count_from and now >= load.count_from:
            self._counting = True
            self._boundary = sys.maxsize if self._plan.operations else load.end
            self._cpu, self._connects = clock.thread_cpu(), self._link.connects
        if self._counting and now >= self._boundary:
            self._close()

    def _close(self) -> None:
        """The counted part has ended."""
        self._counting = False
        self._boundary = sys.maxsize
        self.tally.connects = self._link.connects - self._connects
        if self._first or not self._link.waits:  # connections of one event loop share its thread
            self.tally.cpu = clock.thread_cpu().since(self._cpu)
