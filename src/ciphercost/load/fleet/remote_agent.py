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
from ciphercost.load.agent import Agent, find
from ciphercost.load.fleet.clock import now
from ciphercost.load.fleet.messages import FILES, Call, Failure, NodeDescription, SliceOrder, SliceReport, Start
from ciphercost.load.load_client import LATE
from ciphercost.model.errors import AgentError, CiphercostError
from ciphercost.model.secret import Secret
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


class RemoteAgent:
    """One agent on a node. Every method returns data, or a `Failure`; none raises what the controller must handle."""

    def __init__(self) -> None:
        self._agent: Agent | None = None
        self._sampler: procfs.Sampler | None = None
        self._files: dict[tuple[str, str], int] = {}
        self._log = -1

    def describe(self) -> NodeDescription | Failure:
        """This node: its machine and the versions that it has."""
        machine = procfs.machine()
        found: dict[str, Any] = {name: machine[name] for name in ("cpu", "cores", "aes", "vaes", "kernel", "virtual")}
        found |= {"ciphercost": VERSION, "python": ".".join(map(str, sys.version_info[:3]))}
        try:
            with Agent([installed_agent()]) as agent:
                hello = agent.hello
        except CiphercostError as error:
            return Failure(str(error), "agent", gone=True)
        found |= {"agent": hello.get("version", ""), "tls_library": hello.get("tls_library", "")}
        found["agent_aes"] = bool(hello.get("aes"))
        usual_priority()
        found["niceness"] = os.getpriority(os.PRIO_PROCESS, 0)
        return NodeDescription(socket.gethostname(), boot_id(), network(), found)

    def begin(self, start: Start) -> Failure | None:
        """Start a fresh agent for a session; an earlier one ends."""
        self.end()
        os.environ.pop(deadlines.VARIABLE, None)
        if start.timeout:
            os.environ[deadlines.VARIABLE] = start.timeout
        usual_priority()
        # The kernel may delay a wake-up by this much: a nanosecond instead of 50 µs.
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(1), 0, 0, 0)
        self._log = os.memfd_create("agent.log")
        self._files = {(arm, name): os.memfd_create(name) for arm in ARMS for name in FILES}
        try:
            self._agent = Agent(
                [installed_agent()],
                cpus=start.cpus,
                log=Path(f"/proc/self/fd/{self._log}"),
                env=start.environment,
                descriptors=self._files.values(),
            )
        except CiphercostError as error:
            return Failure(str(error), "agent", gone=True)
        self._sampler = procfs.Sampler()
        # They start slices, and note when they are counted; the agent's other threads make the load.
        be_punctual(STARTING)
        real_time(self._agent.pid, STARTING)
        return None

    def end(self) -> str:
        """End the agent. Returns the end of its log."""
        if self._agent is not None:
            self._agent.close()
        if self._sampler is not None:
            self._sampler.close()
        said = ""
        if self._log >= 0:
            size = os.fstat(self._log).st_size
            said = os.pread(self._log, LOG_SHOWN, max(0, size - LOG_SHOWN)).decode(errors="replace")
        for each in (*self._files.values(), *([self._log] if self._log >= 0 else [])):
            os.close(each)
        self._agent, self._sampler, self._files, self._log = None, None, {}, -1
        return said

    def clock(self) -> float:
        """What this node's clock shows."""
        return now()

    def ping(self) -> float:
        """As `clock`, while another method may run: whether this process still answers at all."""
        return now()

    def request(self, call: Call) -> dict[str, Any] | Failure:
        """Pass a message on to the agent, with the paths of files in place of their content, and return its answer."""
        if self._agent is None:
            return Failure("this member has no agent", "agent", gone=True)
        message: dict[str, Any] = msgspec.json.decode(call.message.reveal())
        for name, content in call.files.items():
            descriptor = self._files[message["arm"], name]
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, content.reveal(), 0)
            message[name] = f"/proc/self/fd/{descriptor}"
        shown = {name: Secret(value) if name in SECRETS else value for name, value in message.items()}
        try:
            return self._agent.request(shown, timeout=call.timeout)
        except AgentError as error:
            return Failure(str(error), error.code)
        except CiphercostError as error:
            return Failure(str(error), "agent", gone=True)

    def requests(self, calls: list[Call]) -> Failure | None:
        """Pass on several messages whose answers say nothing."""
        for each in calls:
            if isinstance(answer := self.request(each), Failure):
                return answer
        return None

    def slice_at(self, order: SliceOrder) -> SliceReport | Failure:
        """Run a slice that begins at an agreed moment. What is late is taken off the part that does not count, so that the
        counted window is the agreed one.
        """
        early = order.at - now()
        if self._agent is None or self._sampler is None:
            return Failure("this member has no agent", "agent", gone=True)
        sampler, counted_at = self._sampler, [0.0]
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
            answer = self._agent.slice(
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
        counters = sampler.end(*self._agent.own_cpu(answer)) if order.sampled else None
        return SliceReport(answer, early, counted_at[0], counted_from, counters)


SECRETS = ("password", "key", "sealing_key", "headers")
"""Fields of an agent's messages that may not be shown."""


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
