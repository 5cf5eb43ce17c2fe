"""The agents of a fleet as the controller sees them: who answers, who is lost, and what each one's clock shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ciphercost.host import deadlines
from ciphercost.load.agent_messages import MARGIN
from ciphercost.load.fleet import clock
from ciphercost.load.fleet.messages import Failure, NodeDescription
from ciphercost.load.load_client import AgentsLost
from ciphercost.model.errors import RunError
from ciphercost.model.fleet import FleetClock, FleetFacts, LostAgent

SAMPLES = 7
"""Questions after the time that one measurement of a clock consists of."""
OLD = 15.0
"""Seconds after which a clock is measured again: two unguided clocks drift apart by up to 1 ms in that time."""
DESCRIBED_SECONDS = 120.0
"""Within these, an actor must have started and described its node."""
SLACK = 2.0
"""Seconds after which a member that should have answered is asked whether it is still there."""


class Gone(msgspec.Struct, frozen=True):
    """In place of a result: the member's process or node has ended."""

    reason: str


class Pending(msgspec.Struct, frozen=True):
    """In place of a result: there is none yet."""


class Remote(Protocol):
    """Calls a member's methods, wherever it is."""

    @property
    def name(self) -> str:
        """The node, as messages name it."""

    def start(self, method: str, *arguments: Any) -> Any:
        """Begin a call, and return at once with something to collect its result by."""


class Carrier(Protocol):
    """Carries calls to members and results back."""

    def collect(self, calls: Sequence[Any], timeout: float) -> list[Any]:
        """Results in the order of the calls, as soon as all are there or the time is over: `Gone` or `Pending` in place of
        one that is not there.
        """

    def dismiss(self, remote: Remote) -> None:
        """End a member for good."""


class NoRoom(RunError):
    """The nodes that are alive have no room for so many members."""


class Cluster(Carrier, Protocol):
    """Nodes on which members can be started."""

    @property
    def count(self) -> int:
        """How many nodes are alive that can run a member."""

    def work_in(self, directory: Path) -> None:
        """Make the nodes ready. Files that they are sent are made in this directory, which the run removes at its end."""

    def members(self, wanted: int, server: str = "") -> AbstractContextManager[tuple[list[Seat], dict[str, str]]]:
        """Start that many members; see `RayCluster`."""

    def server_host(self, address: str) -> AbstractContextManager[Remote | None]:
        """Start a `ServerHost` on the node with this address. None: it is no node of the cluster."""


class Seat(msgspec.Struct):
    """One member of the crew."""

    remote: Remote
    node: NodeDescription
    offset: clock.Offset = clock.SHARED
    measured: float = float("-inf")
    """When the clock was measured."""
    late: int = 0
    """Slices in a row for which its orders came too late."""

    @property
    def name(self) -> str:
        return self.remote.name


class AgentPool:
    """The members that are left. A member that is lost stays lost until the next session."""

    def __init__(
        self,
        carrier: Carrier,
        seats: Sequence[Seat],
        boot: str,
        session: int,
        facts: FleetFacts,
        changed: Callable[[], None],
    ) -> None:
        """`boot`: the controller's boot id. `facts`: where losses and clocks are recorded; `changed` is called after that."""
        self.seats = list(seats)
        self._carrier = carrier
        self._boot = boot
        self._session = session
        self._facts = facts
        self._changed = changed

    def here(self, seat: Seat) -> bool:
        """Whether a member runs on the controller's own machine."""
        return bool(self._boot) and seat.node.boot == self._boot

    def ask(
        self, method: str, seconds: float, arguments: Sequence[Any] | None = None, seats: Sequence[Seat] | None = None
    ) -> list[Any]:
        """Call a method of every member (or of `seats`), each with its own argument, and return the results in their order.

        `seconds`: when they must have answered. Raises AgentsLost, after all have answered, if a member has not: its process
        has ended, or it does not even answer a `ping`. RunError if too few are left.
        """
        asked = list(self.seats if seats is None else seats)
        given = [()] * len(asked) if arguments is None else [(argument,) for argument in arguments]
        calls = [seat.remote.start(method, *call_arguments) for seat, call_arguments in zip(asked, given, strict=True)]
        return self.results(asked, calls, seconds)

    def results(self, asked: Sequence[Seat], calls: Sequence[Any], seconds: float, expected: float = 0.0) -> list[Any]:
        """Collect calls that `asked` were given. `expected`: seconds until there may be results. Raises as `ask`."""
        until = clock.now() + seconds
        results: list[Any] = [Pending()] * len(calls)
        lost: dict[int, str] = {}
        wait = expected + SLACK
        while open_ := [at for at, result in enumerate(results) if isinstance(result, Pending) and at not in lost]:
            left = until - clock.now()
            if left <= 0:
                lost |= dict.fromkeys(open_, f"no answer within {seconds:.0f} s")
                break
            for at, result in zip(
                open_, self._carrier.collect([calls[at] for at in open_], min(wait, left)), strict=True
            ):
                results[at] = result
            wait = SLACK
            silent = [at for at in open_ if isinstance(results[at], Pending)]
            alive = self._alive([asked[at] for at in silent])
            lost |= {
                at: f"it did not answer for {silence():.0f} s"
                for at, seat in zip(silent, alive, strict=True)
                if not seat
            }
        for at, outcome in enumerate(results):
            if isinstance(outcome, Gone):
                lost[at] = outcome.reason
            elif isinstance(outcome, Failure) and outcome.gone:
                lost[at] = outcome.text
        if lost:
            raise self.lose({asked[at].name: reason for at, reason in sorted(lost.items())})
        return results

    def _alive(self, seats: Sequence[Seat]) -> list[bool]:
        if not seats:
            return []
        answers = self._carrier.collect([seat.remote.start("ping") for seat in seats], silence())
        # A member that has ended is found by its own call.
        return [not isinstance(answer, Pending) for answer in answers]

    def lose(self, reasons: dict[str, str]) -> RunError:
        """Go on without members. Returns the error to raise: AgentsLost, or a RunError if too few are left."""
        for seat in [seat for seat in self.seats if seat.name in reasons]:
            self.seats.remove(seat)
            self._facts.lost = [*self._facts.lost, LostAgent(self._session, seat.name, reasons[seat.name])]
            self._carrier.dismiss(seat.remote)
        self._changed()
        what = "; ".join(f"the agent on {name} was lost: {reason}" for name, reason in reasons.items())
        if len(self.seats) < self._facts.least:
            return RunError(
                f"{len(self.seats)} of {self._facts.agents} agents are left, and --min-agents is {self._facts.least}: {what}"
            )
        return AgentsLost(what, "agents-lost")

    # ── clocks ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def measure_clocks(self) -> None:
        """Measure the clocks of all members whose last measurement is old. Raises as `ask`."""
        for seat in list(self.seats):
            if clock.now() - seat.measured < OLD:
                continue
            if not self.here(seat):
                seat.offset = clock.offset(self._sample(seat) for _ in range(SAMPLES))
            seat.measured = clock.now()

    def answer(self, remote: Remote, call: Any, seconds: float) -> Any:
        """The result of a call to something that is no member. Raises RunError if there is none."""
        (result,) = self._carrier.collect([call], seconds)
        if isinstance(result, Gone | Pending | Failure):
            why = {Gone: "reason", Failure: "text"}.get(type(result), "")
            reason = str(getattr(result, why)) if why else f"no answer within {seconds:.0f} s"
            raise RunError(f"the server's host, {remote.name}, can't be sampled: {reason}")
        return result

    def _sample(self, seat: Seat) -> clock.Sample:
        sent = clock.now()
        (seen,) = self.ask("clock", silence(), seats=[seat])
        return clock.Sample(sent, seen, clock.now())

    def record_clocks(self) -> None:
        """Record this session's clocks."""
        known = [FleetClock(self._session, seat.name, seat.offset.seconds, seat.offset.error) for seat in self.seats]
        self._facts.clocks = [*self._facts.clocks, *known]
        self._changed()


def silence() -> float:
    """Seconds after which a member that does not answer a `ping` is lost."""
    return deadlines.login() / 3


def patience(seconds: float = 0.0) -> float:
    """Seconds for a call that waits up to `seconds` for a server."""
    return seconds + MARGIN
