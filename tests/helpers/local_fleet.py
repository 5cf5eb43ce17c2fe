"""A fleet without Ray: members in threads of this process, which tests can let die, freeze or be late."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from ciphercost.load.fleet.agent_pool import Gone, Pending, Remote, Seat
from ciphercost.load.fleet.messages import NodeDescription
from ciphercost.load.fleet.remote_agent import RemoteAgent


class Local:
    """A member in a thread; see `Remote`."""

    def __init__(self, name: str, member: Any) -> None:
        self._name = name
        self.member = member
        self.dead = ""
        self.frozen = False
        self.delay = 0.0
        """Seconds that every call takes to arrive."""
        self.ahead = 0.0
        """Seconds by which this node's clock is ahead."""
        self.calls: list[str] = []
        self._pool, self._pings = ThreadPoolExecutor(1), ThreadPoolExecutor(1)

    @property
    def name(self) -> str:
        return self._name

    def start(self, method: str, *arguments: Any) -> Future[Any]:
        self.calls.append(method)
        return (self._pings if method == "ping" else self._pool).submit(self._run, method, arguments)

    def _run(self, method: str, arguments: tuple[Any, ...]) -> Any:
        time.sleep(self.delay)
        while self.frozen:
            time.sleep(0.01)
        if self.dead:
            return Gone(self.dead)
        if method == "slice_at" and self.ahead:
            # The member itself reads this machine's clock.
            arguments = (msgspec.structs.replace(arguments[0], at=arguments[0].at - self.ahead),)
        found = getattr(self.member, method)(*arguments)
        return found + self.ahead if method == "clock" else found

    def close(self) -> None:
        self.frozen, self.dead, self.delay = False, "", 0.0
        self._pool.submit(self.member.end).result()
        self._pool.shutdown()
        self._pings.shutdown()


class LocalCluster:
    """Carries calls to members in this process; see `Cluster`."""

    def __init__(self, members: Sequence[Local], *, boots: Sequence[str] = ()) -> None:
        """`boots`: a boot id for each member, where it should count as a machine of its own."""
        self.remotes = list(members)
        self.boots = boots
        self.dismissed: list[str] = []

    @property
    def count(self) -> int:
        return len(self.remotes)

    def collect(self, calls: Sequence[Future[Any]], timeout: float) -> list[Any]:
        done, _ = wait(calls, timeout)
        return [call.result() if call in done else Pending() for call in calls]

    def dismiss(self, remote: Remote) -> None:
        self.dismissed.append(remote.name)

    def work_in(self, directory: Path) -> None: ...

    @contextmanager
    def members(self, wanted: int, server: str = "") -> Iterator[tuple[list[Seat], dict[str, str]]]:
        yield self.seats()[:wanted], {}

    @contextmanager
    def server_host(self, address: str) -> Iterator[None]:
        yield None

    def seats(self) -> list[Seat]:
        found = []
        for number, remote in enumerate(self.remotes):
            node = remote.member.describe()
            assert isinstance(node, NodeDescription)
            if self.boots:
                node = msgspec.structs.replace(node, boot=self.boots[number])
            found.append(Seat(remote, node))
        return found

    def close(self) -> None:
        for each in self.remotes:
            each.close()


@contextmanager
def local_cluster(count: int, *, boots: Sequence[str] = ()) -> Iterator[LocalCluster]:
    made = LocalCluster([Local(f"node-{number}", RemoteAgent()) for number in range(count)], boots=boots)
    try:
        yield made
    finally:
        made.close()
