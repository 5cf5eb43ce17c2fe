"""Starts an agent, the process that makes load, and talks to it in flat JSON lines (PROTOCOL.md).

I/O, no statistics.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import selectors
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Self, TypeVar
from urllib.parse import urlsplit
from urllib.request import url2pathname

import msgspec

from ciphercost.host import confined_start, deadlines
from ciphercost.host.deferred_signals import signals_delayed
from ciphercost.host.environment import child_environment
from ciphercost.host.process_state import Patience, go_on, is_stopped
from ciphercost.load import agent_messages, due_times, password_command, redact
from ciphercost.load.agent_messages import (
    MARGIN,
    Disconnect,
    Failed,
    Floor,
    FloorAnswer,
    Hello,
    HelloAnswer,
    Message,
    Ok,
    Query,
    Reply,
    Rows,
    Slice,
    connect_message,
    connect_seconds,
    program_messages,
    query_message,
    reply_of,
    rows_of,
)
from ciphercost.load.load_client import ClientMachine, SliceSampler
from ciphercost.load.program import Program
from ciphercost.model.cipher_work import RECORD_BYTES, Way
from ciphercost.model.connection import Connected, Pool
from ciphercost.model.errors import AgentError, MissingServer, RunError
from ciphercost.model.slices import AgentSlice, Arrivals
from ciphercost.model.spec import Arm
from ciphercost.model.traffic import Arrived

PROTOCOL = 1
DISTRIBUTION = "ciphercost-agent"
QUERIES_AHEAD = 16
"""Requests sent before the first answer is read."""
LOOK_SECONDS = 1.0
"""Between two looks at what an answer depends on, while it is awaited."""
TITLE = "the agent"
FLOOR_BYTES = 16_000_000
"""Bytes sealed and opened to measure a floor: 2 to 5 ms with the CPU's AES instructions, 0.1 s without."""
A = TypeVar("A", bound=msgspec.Struct)


def find() -> str:
    """Return the path of the `ciphercost-agent` binary: $CIPHERCOST_AGENT, beside this Python, or on PATH.

    Raises MissingServer.
    """
    beside = Path(sys.executable).parent / "ciphercost-agent"
    for candidate in (os.environ.get("CIPHERCOST_AGENT"), str(beside), shutil.which("ciphercost-agent")):
        if candidate and os.access(candidate, os.X_OK) and Path(candidate).is_file():
            return candidate
    raise MissingServer(f"ciphercost-agent, which generates the load, is not installed. {how_to_install()}")


def install_command() -> list[str]:
    """The command that installs the agent: its wheel if ciphercost came as a wheel, else from the clone. Empty if no clone is known."""
    pip = [sys.executable, "-m", "pip", "install"]
    with contextlib.suppress(metadata.PackageNotFoundError):
        wheel = metadata.distribution("ciphercost")
        if pinned := next(
            (requirement for requirement in wheel.requires or () if requirement.startswith(DISTRIBUTION)), ""
        ):
            return [*pip, pinned]
        with contextlib.suppress(TypeError, ValueError, KeyError):
            origin = json.loads(wheel.read_text("direct_url.json") or "")["url"]
            sources = Path(url2pathname(urlsplit(origin).path)) / "agents" / "rust"
            if (sources / "Cargo.toml").is_file():
                return [*pip, str(sources)]
    return []


def how_to_install() -> str:
    """Return how to install the agent, as a sentence with the command."""
    command = install_command()
    if command and command[-1].startswith(DISTRIBUTION):
        what = f"Install it: {shlex.join(command)}"
    else:
        where = "" if command else ", in a clone of ciphercost's sources"
        install = shlex.join(command or [sys.executable, "-m", "pip", "install", "./agents/rust"])
        what = f"Build it{where} (README.md lists the requirements): {install}"
    return f"{what}. Or set CIPHERCOST_AGENT to the path of an agent that is already built."


class Agent:
    """A running agent. Use as a context manager: leaving it ends the process."""

    draws_evenly = True
    """Whether it can draw transactions evenly; another one draws them by chance."""
    takes_times = True
    """Whether it can be given the times at which operations are due; another one makes a Poisson process of the same rate."""
    _arrived: Arrived | None = None
    _hides_values = False
    """Whether errors are shown without what they quote, since its program's statements hold values of the user's."""
    compiles = False
    """Whether it compiles its own code while it runs, and so needs its own warm-up."""
    start_skew: float | None = None
    """One agent has no skew; see `LoadClient`."""
    machines: Sequence[ClientMachine] | None = None
    """Its answers tell how busy it was; see `LoadClient`."""
    reported = None
    """Its answers say all; see `LoadClient`."""

    server_sampler: SliceSampler | None = None
    look: Callable[[], None] = staticmethod(lambda: None)
    """Called about once a second while an answer is awaited. It raises RunError if there can be none any more."""

    def __init__(
        self,
        argv: list[str] | None = None,
        *,
        cpus: Iterable[int] | None = None,
        log: Path | None = None,
        env: Mapping[str, str] | None = None,
        netns: Path | None = None,
        cgroups: Iterable[Path] = (),
        descriptors: Iterable[int] = (),
    ) -> None:
        """Start the agent and exchange `hello`.

        `cpus`: the CPUs it may use. `log`: file for its standard error. `env`: variables added to this process's
        environment, which is passed on without its secrets. `netns`: the network namespace it runs in. `cgroups`:
        control groups it enters before it starts. `descriptors`: open files that it inherits. Raises RunError and AgentError.
        """
        self._argv = argv or [find()]
        self._buffer = b""
        self._renewals = password_command.Renewals()
        self._piece = bytearray(1 << 16)
        failures, written = os.pipe()
        failure = os.fdopen(failures, encoding="utf-8", errors="replace")
        # If the controller is killed, the agent must die too.
        wanted = confined_start.Wanted(
            parent=os.getpid(),
            groups=[str(group / "cgroup.procs") for group in cgroups],
            netns=str(netns or ""),
            cpus=sorted(set(cpus or ())),
            errors=written,
        )
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, written)
            stderr = stack.enter_context(log.open("ab")) if log else subprocess.DEVNULL
            stack.enter_context(signals_delayed())
            self._process = subprocess.Popen(
                confined_start.command(wanted, self._argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=child_environment(env),
                bufsize=0,
                pass_fds=(*descriptors, written),
                start_new_session=True,  # only the controller handles Ctrl-C at the terminal
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._stdout, selectors.EVENT_READ)
        os.set_blocking(self._stdin.fileno(), False)
        self._patience = Patience(TITLE, self.pid)
        try:
            with failure:
                if reason := failure.read():
                    raise RunError(f"can't start {TITLE} ({self._argv[0]}): {reason}")
            self.hello = self.request(Hello(PROTOCOL), HelloAnswer)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def of(self, arm: Arm) -> Agent:  # noqa: ARG002 - one agent makes the load of both arms
        """Return the agent that makes an arm's load."""
        return self

    def watch(self, look: Callable[[], None]) -> None:
        """Call this about once a second while an answer is awaited. It raises RunError if there can be none any more."""
        self.look = look

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the agent: close its standard input, then kill it if it is still running after 5 s."""
        with contextlib.suppress(OSError):
            self._stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._selector.close()
        self._stdout.close()

    def request(self, message: Message, kind: type[A], timeout: float = 60.0) -> A:
        """Send one message and return its answer.

        Raises AgentError for an error answer, RunError if the agent is gone or silent, or answers something else.
        """
        return self._decode(self.exchange(agent_messages.line(message), timeout), kind)

    def exchange(self, line: bytes, timeout: float = 60.0) -> bytes:
        """Send one message as it is on the wire, and return its answer as it is. Raises as `request` does."""
        self.write(line)
        answer = self.line(timeout)
        self._check(answer)
        return answer

    def write(self, line: bytes) -> None:
        """Send one message as it is on the wire. Raises RunError if the agent is gone."""
        try:
            left = memoryview(line)
            while left:
                sent = self._stdin.write(left)  # None: it takes nothing now
                if not sent and not select.select([], [self._stdin], [], LOOK_SECONDS)[1]:
                    self._still_there()
                left = left[sent or 0 :]
        except (BrokenPipeError, ValueError):
            raise RunError(self._gone()) from None

    def line(self, timeout: float) -> bytes:
        """Return the next line that the agent writes. Raises RunError at end of output or after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0:
                advice = f"; {go_on(TITLE, self.pid)}" if is_stopped(self.pid) else ""
                raise RunError(f"{TITLE} did not answer within {timeout:g} s ({self._argv[0]}, pid {self.pid}){advice}")
            if not self._selector.select(min(left, LOOK_SECONDS)):
                self._still_there()
                continue
            count = os.readv(self._stdout.fileno(), [self._piece])
            if not count:
                raise RunError(self._gone())
            self._buffer += memoryview(self._piece)[:count]
        line, _, self._buffer = self._buffer.partition(b"\n")
        return redact.shown_line(line) if b"error" in line else line

    def _still_there(self) -> None:
        """Raise RunError if it has been stopped for too long, or if something else is wrong that its answer depends on."""
        self._patience.check()
        self.look()

    def _answers_before(self, due: float) -> bool:
        left = due - time.monotonic()
        return b"\n" in self._buffer or (left > 0 and bool(self._selector.select(left)))

    def _check(self, line: bytes) -> None:
        """Raise AgentError if it is an error."""
        if b'"error"' in line:
            with contextlib.suppress(msgspec.DecodeError):
                failed = msgspec.json.decode(line, type=Failed)
                raise AgentError(self._shown(failed.text), failed.code)

    def _shown(self, error: str) -> str:
        """An error as records may hold it."""
        return redact.without_values(error) if self._hides_values else error

    def _decode(self, line: bytes, kind: type[A]) -> A:
        try:
            return msgspec.json.decode(line, type=kind)
        except msgspec.DecodeError:
            raise RunError(f"the agent's answer does not follow protocol {PROTOCOL}: {line[:200]!r}") from None

    def _gone(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):  # its output ends a moment before the process
            self._process.wait(1)
        status = self._process.poll()
        how = f"signal {-status}" if status is not None and status < 0 else f"status {status}"
        return f"the agent ended in the middle of the run ({how}); see its output in the run's logs/"

    def fitting(self, seconds: float, room: float = 0.0) -> float:  # noqa: ARG002
        """Return the length unchanged: an agent makes slices of any length."""
        return seconds

    def own_cpu(self, answer: AgentSlice) -> tuple[int, int]:
        """CPU time that a slice cost this agent, in nanoseconds: in all, and in user mode. Compiler and collector threads
        belong to it too.
        """
        threads = answer.cpu_user_ns + answer.cpu_system_ns
        total = max(threads, answer.process_cpu_ns)
        return total, answer.cpu_user_ns + total - threads

    # ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def program(self, program: Program) -> None:
        """Send the agent a program: what an operation is."""
        self._hides_values = program.holds_values
        self._arrived = program.arrived if self.takes_times else None
        if not self.draws_evenly:
            program = msgspec.structs.replace(program, draw="random")
        for message in program_messages(program):
            self.request(message, Ok)

    def connect(self, arm: str, connection: Pool) -> Connected:
        """Open an arm's connections. The answer reports what was negotiated. Raises AgentError."""
        message, seconds = connect_message(arm, connection), connect_seconds(connection)
        answer = password_command.logged_in(connection, lambda: self.request(message, Connected, seconds))
        self._renewals.connected(arm, connection)
        return answer

    def disconnect(self, arm: str) -> None:
        self.request(Disconnect(arm), Ok)

    def query(
        self, arm: str, sql: str, *, everywhere: bool = False, timeout: float | None = None
    ) -> list[list[str | None]]:
        """Run a query and return its rows as text values. Raises AgentError with the server's code.

        `everywhere`: on every connection of the arm. `timeout`: seconds until the whole answer has arrived; default: a
        witness's.
        """
        message = query_message(arm, sql, everywhere=everywhere, timeout=timeout)
        return rows_of(self.request(message, Rows, message.timeout + MARGIN))

    def reply(self, arm: str, sql: str) -> Reply:
        """Run a query on the arm's first connection and return its columns and rows. Raises AgentError."""
        message = query_message(arm, sql)
        return reply_of(self.request(message, Rows, message.timeout + MARGIN))

    def queries(self, arm: str, statements: Iterable[str], *, timeout: float | None = None) -> int:
        """Run statements one after the other, discard their answers, and return how many ran. Raises AgentError for the
        first that failed.

        Requests are sent ahead of their answers, so that the server never waits for this process.
        `timeout`: seconds for each answer; default: as long as loading may take.
        """
        seconds = deadlines.load() if timeout is None else timeout
        sent = answered = 0
        ahead = iter(statements)
        more = True
        while more or answered < sent:
            # So few that neither pipe fills up while both ends write.
            while more and sent - answered < QUERIES_AHEAD:
                statement = next(ahead, None)
                if statement is None:
                    more = False
                    break
                self.write(agent_messages.line(Query(arm, statement, seconds)))
                sent += 1
            if answered == sent:
                break
            line = self.line(seconds + MARGIN)
            answered += 1
            if line.startswith(b'{"type":"error"'):
                while answered < sent:  # requests sent ahead are answered too
                    self.line(seconds + MARGIN)
                    answered += 1
                self._check(line)
        return answered

    def floor(
        self, cipher: str, size: int = FLOOR_BYTES, *, mac: str = "", unit: int = RECORD_BYTES
    ) -> dict[Way, float]:
        """Measure what a cipher alone costs on this CPU: {"seal": ns per byte, "open": ns per byte}.

        `unit`: bytes sealed at a time. Raises AgentError for an unknown cipher or MAC.
        """
        answer = self.request(Floor(cipher, size, unit, mac), FloorAnswer)
        return {"seal": answer.ns_per_byte_seal, "open": answer.ns_per_byte_open}

    def slice(
        self,
        arm: str,
        seconds: float,
        *,
        discard: float = 0.2,
        seed: int = 0,
        rate: float = 0.0,
        operations: int = 0,
        arrivals: Arrivals = "even",
        on_counting: Callable[[], None] | None = None,
        on_counted: Callable[[], None] | None = None,
    ) -> AgentSlice:
        """Run one slice. Calls `on_counting` and `on_counted` when its counted part begins and ends. Raises AgentError,
        RunError.

        The answer arrives only after the operations in flight have ended. These are not counted, so this process times
        the end itself.
        """
        if renewed := self._renewals.due(arm):
            self.connect(arm, renewed)
        spacing, gaps_us = due_times.of(self._arrived, arrivals, rate, seconds, seed, discard)
        message = Slice(
            arm=arm,
            seconds=seconds,
            discard=discard,
            seed=seed,
            rate=rate,
            operations=operations,
            arrivals=spacing,
            gaps_us=gaps_us,
            timeout=deadlines.overtime(),
        )
        self.write(agent_messages.line(message))
        timeout = seconds + 2 * deadlines.overtime() + MARGIN  # once for preparation, once for the end
        due = 0.0
        while True:
            if due and on_counted and not self._answers_before(due):
                on_counted()
                on_counted = None
            line = self.line(timeout)
            if line.startswith(b'{"type":"counting"'):
                if on_counting:
                    on_counting()
                due = time.monotonic() + seconds * (1 - discard)
                continue
            if on_counted:
                on_counted()
            self._check(line)
            answer = self._decode(line, AgentSlice)
            if answer.first_error:
                answer = msgspec.structs.replace(answer, first_error=self._shown(answer.first_error))
            return self._renewals.ended(arm, answer)
