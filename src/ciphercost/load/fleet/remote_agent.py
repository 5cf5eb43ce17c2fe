"""What runs on a node of the fleet: it starts an agent there, passes requests on, and starts slices on time.

It knows nothing of Ray: any process may hold one. It writes no file: certificates and the agent's log are in memory, and end
with the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from ciphercost.host import deadlines, procfs
from ciphercost.load import agent_messages
from ciphercost.load.agent import Agent, find
from ciphercost.load.fleet.clock import now
from ciphercost.load.fleet.messages import FILES, Call, Failure, NodeDescription, SliceOrder, SliceReport, Start
from ciphercost.load.load_client import LATE
from ciphercost.model.errors import AgentError, CiphercostError
from ciphercost.model.spec import ARMS
from ciphercost.model.version import VERSION

GATHER = 0.0005
"""Seconds between a slice's message to an agent and its first operation: the agent's threads gather."""
PUNCTUAL = -10
"""Niceness of a thread that starts slices or samples them, where it may have it. Agents have the usual one."""
SAMPLING, STARTING = 1, 2
"""Real-time priorities of a thread that samples the server, which takes a millisecond or two, and of those that start slices."""
SWITCH = 0.0005
"""Seconds for which another Python thread may keep a punctual one waiting."""
LOG_SHOWN = 4000
"""Bytes of the agent's log that a member returns, its last ones."""
_PR_SET_TIMERSLACK = 29


class StartedAgent:
    """An agent that runs on this node, with its files and its log in memory."""

    def __init__(self, start: Start) -> None:
        """Raises CiphercostError; then nothing is left."""
        with contextlib.ExitStack() as undo:

            def in_memory(name: str) -> int:
                descriptor = os.memfd_create(name)
                undo.callback(os.close, descriptor)
                return descriptor

            self._log = in_memory("agent.log")
            self._files: dict[tuple[str, str], int] = {(arm, name): in_memory(name) for arm in ARMS for name in FILES}
            self.agent = undo.enter_context(
                Agent(
                    [installed_agent()],
                    cpus=start.cpus,
                    log=Path(f"/proc/self/fd/{self._log}"),
                    env=start.environment,
                    descriptors=self._files.values(),
                )
            )
            self.sampler = undo.enter_context(contextlib.closing(procfs.Sampler()))
            self._undo = undo.pop_all()

    def close(self) -> str:
        """End the agent. Returns the end of its log."""
        self.agent.close()
        size = os.fstat(self._log).st_size
        log_end = os.pread(self._log, LOG_SHOWN, max(0, size - LOG_SHOWN)).decode(errors="replace")
        self._undo.close()
        return log_end

    def keep(self, arm: str, name: str, content: bytes) -> str:
        """Keep a file in memory. Returns the path by which the agent reads it."""
        descriptor = self._files[arm, name]
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, content, 0)
        return f"/proc/self/fd/{descriptor}"


NO_AGENT = Failure("this member has no agent", "agent", gone=True)


class RemoteAgent:
    """One agent on a node. Every method returns data, or a `Failure`; none raises what the controller must handle."""

    def __init__(self) -> None:
        self._started: StartedAgent | None = None
        """None between sessions."""

    def describe(self) -> NodeDescription | Failure:
        """This node: its machine and the versions that it has."""
        machine = procfs.machine()
        facts: dict[str, Any] = {name: machine[name] for name in ("cpu", "cores", "aes", "vaes", "kernel", "virtual")}
        facts |= {"ciphercost": VERSION, "python": ".".join(map(str, sys.version_info[:3]))}
        try:
            with Agent([installed_agent()]) as agent:
                hello = agent.hello
        except CiphercostError as error:
            return Failure(str(error), "agent", gone=True)
        facts |= {"agent": hello.version, "tls_library": hello.tls_library}
        facts["agent_aes"] = hello.aes
        usual_priority()
        facts["niceness"] = os.getpriority(os.PRIO_PROCESS, 0)
        return NodeDescription(socket.gethostname(), boot_id(), network(), facts)

    def begin(self, start: Start) -> Failure | None:
        """Start a fresh agent for a session; an earlier one ends."""
        self.end()
        os.environ.pop(deadlines.VARIABLE, None)
        if start.timeout:
            os.environ[deadlines.VARIABLE] = start.timeout
        usual_priority()
        # The kernel may delay a wake-up by this much: a nanosecond instead of 50 µs.
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(1), 0, 0, 0)
        try:
            self._started = StartedAgent(start)
        except CiphercostError as error:
            return Failure(str(error), "agent", gone=True)
        # They start slices, and note when they are counted; the agent's other threads make the load.
        be_punctual(STARTING)
        real_time(self._started.agent.pid, STARTING)
        return None

    def end(self) -> str:
        """End the agent. Returns the end of its log."""
        started, self._started = self._started, None
        return started.close() if started else ""

    def clock(self) -> float:
        """What this node's clock shows."""
        return now()

    def ping(self) -> float:
        """As `clock`, while another method may run: whether this process still answers at all."""
        return now()

    def request(self, call: Call) -> bytes | Failure:
        """Pass a message on to the agent, with the paths of files in place of their content, and return its answer."""
        if (started := self._started) is None:
            return NO_AGENT
        line = call.message.reveal()
        if call.files:
            connection = agent_messages.connection_of(line)
            paths = {name: started.keep(connection.arm, name, content.reveal()) for name, content in call.files.items()}
            line = agent_messages.line(msgspec.structs.replace(connection, **paths))
        try:
            return started.agent.exchange(line, call.timeout)
        except AgentError as error:
            return Failure(str(error), error.code)
        except CiphercostError as error:
            return Failure(str(error), "agent", gone=True)

    def requests(self, calls: list[Call]) -> Failure | None:
        """Pass on several messages whose answers say nothing."""
        for call in calls:
            if isinstance(answer := self.request(call), Failure):
                return answer
        return None

    def slice_at(self, order: SliceOrder) -> SliceReport | Failure:
        """Run a slice that begins at an agreed moment. What is late is taken off the part that does not count, so that the
        counted window is the agreed one.
        """
        early = order.at - now()
        if self._started is None:
            return NO_AGENT
        agent, sampler, counted_at = self._started.agent, self._started.sampler, [0.0]
        counted_from, ends = order.at + order.discard * order.seconds, order.at + order.seconds
        wait_until(order.at + order.phase - GATHER)
        seconds, discard = order.seconds, 0.0
        if not order.operations:
            begins = now() + GATHER
            seconds = ends - begins
            if seconds <= 0 or (order.discard and begins > counted_from):
                return Failure(f"the order came {-early * 1e3:.1f} ms after the slice was to begin", LATE)
            discard = max(0.0, counted_from - begins) / seconds if order.discard else 0.0
            counted_from = max(counted_from, begins)

        def counting() -> None:
            counted_at[0] = now()
            if order.sampled:
                sampler.begin()

        try:
            answer = agent.slice(
                order.arm,
                seconds,
                discard=discard,
                seed=order.seed,
                rate=order.rate,
                operations=order.operations,
                arrivals=order.arrivals,
                on_counting=counting,
                on_counted=sampler.stop if order.sampled else None,
            )
        except AgentError as error:
            return Failure(str(error), error.code)
        except CiphercostError as error:
            return Failure(str(error), "agent", gone=True)
        counters = sampler.end(*agent.own_cpu(answer)) if order.sampled else None
        return SliceReport(answer, early, counted_at[0], counted_from, counters)


def usual_priority() -> bool:
    """Give this thread, and the agent that it starts, the usual priority: Ray starts its workers with niceness 15. Whether it could."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    return os.getpriority(os.PRIO_PROCESS, 0) <= 0


def be_punctual(priority: int) -> None:
    """Load on this machine must not delay what this thread does: it runs as soon as it may. Priorities as root only."""
    sys.setswitchinterval(SWITCH)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, PUNCTUAL)
    real_time(0, priority)  # where that is not granted, the niceness is


def real_time(thread: int, priority: int) -> None:
    """Give a thread, 0 for this one, real-time priority, but not the threads and processes that it starts. Where it may have it."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(thread, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(priority))


def wait_until(moment: float) -> None:
    """Sleep until a moment of this machine's clock."""
    if (left := moment - now()) > 0:
        time.sleep(left)


def boot_id() -> str:
    """The same in all processes of one machine, until it boots again. Empty if it can't be read."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def network() -> str:
    """The network namespace: processes with the same one, on the same machine, share 127.0.0.1."""
    with contextlib.suppress(OSError):
        return Path("/proc/self/ns/net").readlink().name
    return ""


def installed_agent() -> str:
    """The agent's binary; of a wheel that Ray unpacked, it lies in `bin` beside the modules. Raises MissingServer."""
    for place in sys.path:
        candidate = Path(place) / "bin" / "ciphercost-agent"
        if os.access(candidate, os.X_OK) and candidate.is_file():
            return str(candidate)
    return find()
