"""fleet: many agents as one: it deals out the connections, starts each slice on all agents at one moment, and merges their answers.

Only the arms of the load are spread. Other connections, of witnesses and of what asks the server, belong to one agent on the
controller.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import msgspec

from ciphercost.host import deadlines
from ciphercost.host.ports import is_loopback
from ciphercost.load import agent_messages
from ciphercost.load.agent import Agent
from ciphercost.load.agent_messages import (
    Disconnect,
    HelloAnswer,
    Message,
    Reply,
    Rows,
    connect_message,
    connect_seconds,
    program_messages,
    query_message,
    rows_of,
)
from ciphercost.load.fleet.agent_pool import AgentPool, Remote, Seat, patience
from ciphercost.load.fleet.clock import now
from ciphercost.load.fleet.far_server import FarServer
from ciphercost.load.fleet.merge import deal, merge
from ciphercost.load.fleet.messages import FILES, Call, Failure, Sealed, ServerPlace, SliceOrder, SliceReport, Start
from ciphercost.load.fleet.remote_agent import SAMPLING, be_punctual, boot_id, network, wait_until
from ciphercost.load.load_client import LATE, SKEWED, ClientMachine
from ciphercost.load.program import Program
from ciphercost.model.connection import Connected, Connection
from ciphercost.model.errors import AgentError, RunError, Unproven, UsageError
from ciphercost.model.fleet import FleetFacts, FleetNode
from ciphercost.model.slices import AgentSlice, Arrivals
from ciphercost.model.spec import ARMS

MOST_UNSAMPLED = 0.1
"""Share of a slice's window that may have passed before the server's counters are read: its CPU time would be too small by that."""
FIRST_LEAD, LEAST_LEAD, MOST_LEAD = 0.02, 0.004, 0.25
"""Seconds between sending a slice's orders and its beginning."""
RECENT = 50
"""Slices whose orders show how long an order takes."""
LATE_IN_A_ROW = 3
"""Slices in a row for which a member may be too late before the load goes on without it."""
AGREED = ("encrypted", "protocol", "cipher", "verified", "auth", "server_version")
"""Fields of `connected` in which all members must agree."""
AGREED_IF_KNOWN = ("group", "peer_key")
"""… unless one of them is empty: a resumed session may report fewer facts about itself."""


class Fleet:
    """Agents on many nodes. Use as a context manager: leaving it ends the agents, but not what carries the calls."""

    compiles = False
    reported = None

    def __init__(
        self, local: Agent, crew: AgentPool, facts: FleetFacts, start: Start, logs: Path, changed: Callable[[], None]
    ) -> None:
        """Start an agent on every node of the crew, and measure the nodes' clocks. Raises AgentsLost and RunError.

        `local`: the agent on the controller, which the fleet ends too. `start`: how agents on the controller's machine are
        started; others may use all CPUs of their node. `facts`: where it records nodes, clocks and losses, and calls
        `changed` after that. `logs`: directory for the agents' logs.
        """
        self._local, self._crew, self._facts, self._start = local, crew, facts, start
        self._logs, self._changed = logs, changed
        self._lead = FIRST_LEAD
        self._took: deque[float] = deque(maxlen=RECENT)
        self._reports: list[tuple[Seat, SliceReport]] = []
        self.start_skew: float | None = None
        self._far: FarServer | None = None
        self._place = boot_id(), network()
        self._sampling = ThreadPoolExecutor(1, initializer=be_punctual, initargs=(SAMPLING,))
        everywhere = msgspec.structs.replace(start, cpus=None)
        try:
            starts = [start if crew.here(seat) else everywhere for seat in crew.seats]
            self._accepted(crew.seats, crew.ask("begin", patience(deadlines.login()), starts))
            crew.measure_clocks()
        except BaseException:
            self.close()
            raise
        crew.record_clocks()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all agents, and keep the ends of their logs."""
        while self._crew.seats:
            seats = list(self._crew.seats)
            try:
                for seat, log in zip(seats, self._crew.ask("end", patience()), strict=True):
                    self._keep_log(seat, log)
                break
            except RunError:  # lost at the very end: the others have ended, or are asked again
                continue
        self._sampling.shutdown()
        self._local.close()

    def _keep_log(self, seat: Seat, log: object) -> None:
        if isinstance(log, str) and log:
            name = "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in seat.name)
            (self._logs / f"agent-{name}.log").write_text(log)

    @property
    def pid(self) -> int:
        return self._local.pid

    @property
    def hello(self) -> HelloAnswer:
        return self._local.hello

    @property
    def local(self) -> Agent:
        """The agent on the controller."""
        return self._local

    @property
    def server_sampler(self) -> FarServer | None:
        """Samples a server on another node, once `sample_server` has found it."""
        return self._far

    def sample_server(self, remote: Remote, place: ServerPlace) -> None:
        """From now on sample the server's host too, on its own node. Raises RunError if it is not found there."""
        self._far = FarServer(self._crew, remote, place)

    @property
    def names(self) -> list[str]:
        """The nodes that are left."""
        return [seat.name for seat in self._crew.seats]

    # ── connections ───────────────────────────────────────────────────────────────────────────────────────────────────

    def program(self, program: Program) -> None:
        """Send every agent a program. Raises AgentsLost and AgentError."""
        self._local.program(program)
        calls = [_call(message, patience()) for message in program_messages(program)]
        seats = list(self._crew.seats)
        self._accepted(seats, self._crew.ask("requests", patience(deadlines.login()), [calls] * len(seats)))

    def connect(self, arm: str, connection: Connection) -> Connected:
        """Open an arm's connections, dealt out over all agents. All must negotiate the same.

        Raises AgentError, AgentsLost, Unproven; UsageError if a node can't reach the server.
        """
        if arm not in ARMS:
            return self._local.connect(arm, connection)
        self._check_reachable(connection.host)
        seats = list(self._crew.seats)
        shares = deal(connection.connections, len(seats))
        files = {name: Sealed(Path(path).read_bytes()) for name in FILES if (path := getattr(connection, name))}
        calls = []
        for seat, share in zip(seats, shares, strict=True):
            seat_connection = connection | {"connections": share, "threads": max(1, min(share, self._cores(seat)))}
            calls.append(_call(connect_message(arm, seat_connection), connect_seconds(seat_connection), files))
        lines = self._accepted(seats, self._crew.ask("request", patience(connect_seconds(connection)), calls))
        answers = [msgspec.json.decode(line, type=Connected) for line in lines]
        for seat, answer in zip(seats, answers, strict=True):
            if unlike := differing(answers[0], answer):
                raise Unproven(
                    f"client witness, {arm} arm: {unlike} is {getattr(answers[0], unlike)!r} on {seats[0].name} and "
                    f"{getattr(answer, unlike)!r} on {seat.name}: the agents do not make the same connections"
                )
        return msgspec.structs.replace(
            answers[0],
            connections=sum(answer.connections for answer in answers),
            resumed=sum(answer.resumed or 0 for answer in answers),
        )

    def disconnect(self, arm: str) -> None:
        if arm not in ARMS:
            self._local.disconnect(arm)
            return
        seats = list(self._crew.seats)
        call = _call(Disconnect(arm), patience())
        self._accepted(seats, self._crew.ask("request", patience(), [call] * len(seats)))

    def query(
        self, arm: str, sql: str, *, everywhere: bool = False, timeout: float | None = None
    ) -> list[list[str | None]]:
        """Run a query on an arm's first connection, or on every connection of every agent. Raises AgentError."""
        if arm not in ARMS:
            return self._local.query(arm, sql, everywhere=everywhere, timeout=timeout)
        message = query_message(arm, sql, everywhere=everywhere, timeout=timeout)
        seconds = message.timeout
        call = _call(message, patience(seconds))
        seats = list(self._crew.seats) if everywhere else self._crew.seats[:1]
        answers = self._crew.ask("request", patience(patience(seconds)), [call] * len(seats), seats)
        lines = self._accepted(seats, answers)
        return [row for line in lines for row in rows_of(msgspec.json.decode(line, type=Rows))]

    def reply(self, arm: str, sql: str) -> Reply:
        """Run a query of an arm that makes no load, from this machine. Raises AgentError."""
        return self._local.reply(arm, sql)

    def _check_reachable(self, host: str) -> None:
        if not (is_loopback(host) or host.startswith("/")):
            return
        for seat in self._crew.seats:
            if (seat.node.boot, seat.node.network) != self._place:
                raise UsageError(
                    f"--cluster: the server listens on {host}, which {seat.name} can't reach; start it with --listen and an "
                    "address of this machine that the nodes can reach, or measure a server of your own with --url"
                )

    def _cores(self, seat: Seat) -> int:
        if self._crew.here(seat) and self._start.cpus:
            return len(self._start.cpus)
        return int(seat.node.machine.get("cores", 1))

    def _accepted(self, seats: Sequence[Seat], answers: Sequence[Any]) -> list[Any]:
        """The answers, if none is an agent's error. Raises AgentError for the first that is."""
        for seat, answer in zip(seats, answers, strict=True):
            if isinstance(answer, Failure):
                raise AgentError(f"{answer.text} (on {seat.name})", answer.code)
        return list(answers)

    # ── slices ────────────────────────────────────────────────────────────────────────────────────────────────────────

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
        """Run one slice on all agents at once. What is counted is the window from `discard` to the end of the agreed slice.

        Raises AgentsLost if an agent was lost, AgentError if one failed, or if they did not count the same window.
        """
        if arm not in ARMS:
            return self._local.slice(
                arm, seconds, discard=discard, seed=seed, rate=rate, operations=operations, arrivals=arrivals,
                on_counting=on_counting, on_counted=on_counted,
            )  # fmt: skip
        self._crew.measure_clocks()
        seats = list(self._crew.seats)
        shares = deal(operations, len(seats)) if operations else [0] * len(seats)
        if operations:
            seats = [seat for seat, share in zip(seats, shares, strict=True) if share]
        at = now() + self._lead
        calls = []
        for number, seat in enumerate(seats):
            order = SliceOrder(
                arm=arm,
                at=seat.offset.there(at),
                seconds=seconds,
                discard=discard,
                seed=seed_of(seed, number),
                rate=rate / len(seats),
                operations=shares[number],
                arrivals="random" if arrivals == "logged" else arrivals,
                phase=phase(number, rate, discard * seconds) if arrivals == "even" else 0.0,
                sampled=not self._crew.here(seat),
            )
            calls.append(seat.remote.start("slice_at", order))
        if self._far is not None and not operations:
            self._far.order(at + discard * seconds, at + seconds)
        late = 0.0
        if not operations:
            moments = ((at + discard * seconds, on_counting), (at + seconds, on_counted))
            late = self._sampling.submit(_call_at, moments).result()
        longest = seconds + 2 * deadlines.overtime()
        try:
            answers = self._crew.results(seats, calls, patience(patience(longest)), max(0.0, at + seconds - now()))
            merged = self._merged(seats, answers, discard * seconds)
            if late > MOST_UNSAMPLED * (1 - discard) * seconds:
                raise AgentError(f"the server was sampled {late * 1e3:.1f} ms after the slice began to count", SKEWED)
            return merged
        except RunError as error:
            self._facts.failed_slices += 1
            self._facts.late_slices += isinstance(error, AgentError) and error.code in (LATE, SKEWED)
            self._changed()
            raise

    def _merged(self, seats: Sequence[Seat], answers: Sequence[Any], slack: float) -> AgentSlice:
        self._forget_late(seats, answers)
        reports: list[SliceReport] = self._accepted(seats, answers)
        self._reports = list(zip(seats, reports, strict=True))
        self._took.append(self._lead - min(report.early for report in reports))
        self._lead = min(MOST_LEAD, max(LEAST_LEAD, 2 * max(self._took)))
        counted = [report.counting - report.window for report in reports]
        self.start_skew = max(counted) - min(counted)
        if slack and self.start_skew > slack:
            raise AgentError(
                f"the agents began to count {self.start_skew * 1e3:.1f} ms apart, and only the first {slack * 1e3:.0f} ms of a "
                "slice are not counted",
                SKEWED,
            )
        self._note_hosts()
        if self._far is not None:
            self._far.collect([r.answer for seat, r in self._reports if seat.node.boot == self._far.boot])
        return merge([report.answer for report in reports])

    def _forget_late(self, seats: Sequence[Seat], answers: Sequence[Any]) -> None:
        """Count orders that came too late; lose a member that is late again and again."""
        lost = {}
        for seat, answer in zip(seats, answers, strict=True):
            late = isinstance(answer, Failure) and answer.code == LATE
            seat.late = seat.late + 1 if late else 0
            if late:
                self._lead = min(MOST_LEAD, 2 * self._lead)
            if seat.late >= LATE_IN_A_ROW:
                lost[seat.name] = f"{LATE_IN_A_ROW} orders in a row came too late"
        if lost:
            raise self._crew.lose(lost)

    def fitting(self, seconds: float, room: float = 0.0) -> float:  # noqa: ARG002
        """Return the length unchanged."""
        return seconds

    def own_cpu(self, answer: AgentSlice) -> tuple[int, int]:  # noqa: ARG002
        """CPU time in nanoseconds that the last slice cost the agents on the controller's machine: in all, and in user mode."""
        here = [report.answer for seat, report in self._reports if self._crew.here(seat)]
        return sum(a.cpu_user_ns + a.cpu_system_ns for a in here), sum(a.cpu_user_ns for a in here)

    @property
    def machines(self) -> list[ClientMachine]:
        """What each machine did in the last slice."""
        by_boot: defaultdict[str, list[tuple[Seat, SliceReport]]] = defaultdict(list)
        for seat, report in self._reports:
            by_boot[seat.node.boot].append((seat, report))
        machines = []
        for members in by_boot.values():
            answers = [report.answer for _, report in members]
            cores = min(sum(max(1, answer.threads) for answer in answers), self._cores(members[0][0]))
            window = sum(answer.seconds for answer in answers) / len(answers) * cores * 1e9
            spent = sum(answer.cpu_user_ns + answer.cpu_system_ns for answer in answers)
            all_cores = int(members[0][0].node.machine.get("cores", 1))
            machines.append(ClientMachine(spent / window if window else 0.0, all_cores, members[0][1].counters))
        return machines

    def _note_hosts(self) -> None:
        """Add what the nodes did in the last slice to the facts."""
        known = {node.name: node for node in self._facts.nodes}
        for seat, report in self._reports:
            node = known.get(seat.name)
            if node is None:
                continue
            node.slices += 1
            if (counters := report.counters) is not None:
                node.cpu = mean(node.cpu, 1.0 - counters.host_idle - counters.host_iowait, node.slices)
                node.steal = mean(node.steal, counters.host_steal, node.slices)
                node.foreign_cpu = mean(node.foreign_cpu, counters.foreign_cpu, node.slices)


def mean(before: float | None, value: float, count: int) -> float:
    """The mean of `count` values, of which `value` is the last and `before` the mean of the others. Pure."""
    return max(0.0, value if before is None else before + (value - before) / count)


def differing(one: Connected, other: Connected) -> str:
    """The name of a fact in which two `connected` answers differ, or "". Pure."""
    for name in AGREED:
        if getattr(one, name) != getattr(other, name):
            return name
    known = ((name, getattr(one, name), getattr(other, name)) for name in AGREED_IF_KNOWN)
    return next((name for name, here, there in known if here and there and here != there), "")


def seed_of(seed: int, number: int) -> int:
    """The seed of a member's draws: the slice's own for the first; below 2⁵³, as `slice_seed`. Pure."""
    if not number:
        return seed
    mixed = (seed + number * 0x9E3779B97F4A7C15) % 2**64
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) % 2**64
    return (mixed ^ (mixed >> 31)) >> 11


def phase(number: int, rate: float, slack: float) -> float:
    """Seconds by which a member's even requests follow those of the first: 1/rate for each one before it. Pure.

    0 where that is more than half of the time that a slice has before it counts.
    """
    wanted = number / rate if rate else 0.0
    return wanted if wanted <= slack / 2 else 0.0


def described(seats: Iterable[Seat], boot: str) -> list[FleetNode]:
    """The nodes as the record describes them. Pure."""
    return [
        FleetNode(seat.name, seat.node.machine, with_controller=bool(boot) and seat.node.boot == boot) for seat in seats
    ]


def _call(message: Message, timeout: float, files: Mapping[str, Sealed] | None = None) -> Call:
    return Call(Sealed(agent_messages.line(message)), dict(files or {}), timeout)


def _call_at(moments: Sequence[tuple[float, Callable[[], None] | None]]) -> float:
    """Call each function, if there is one, at its moment. Returns by how many seconds the first was late."""
    late = []
    for moment, act in moments:
        if act is not None:
            wait_until(moment)
            late.append(now() - moment)
            act()
    return late[0] if late else 0.0
