"""far_server: the server's host as a fleet samples it, on another node of the cluster."""

from __future__ import annotations

from typing import Any

import msgspec

from ciphercost.load.fleet import clock
from ciphercost.load.fleet.agent_pool import DESCRIBED_SECONDS, OLD, SAMPLES, AgentPool, Remote, silence
from ciphercost.load.fleet.messages import SampleOrder, ServerPlace
from ciphercost.model.slices import AgentSlice, Counters

REFRESH = 1.0
"""Seconds between two checks of which processes the server has."""


class FarServer:
    """Samples the server in the windows of slices; see `SliceSampler`, whose calls between slices need nothing here."""

    def __init__(self, crew: AgentPool, remote: Remote, place: ServerPlace) -> None:
        """Find the server there. Raises RunError."""
        self._crew, self._remote, self._place = crew, remote, place
        self.boot: str = crew.answer(remote, remote.start("find", place), DESCRIBED_SECONDS)
        self._offset = clock.SHARED
        self._measured = float("-inf")
        self._call: Any = None
        self._counters: Counters | None = None

    def order(self, begins: float, ends: float) -> None:
        """Sample between two moments of the controller's clock. Raises RunError."""
        if clock.now() - self._measured > OLD:
            self._offset = clock.offset(self._ask() for _ in range(SAMPLES))
            self._measured = clock.now()
        there = self._offset.there
        self._call = self._remote.start("sample", SampleOrder(self._place, there(begins), there(ends), REFRESH))

    def _ask(self) -> clock.Sample:
        sent = clock.now()
        seen = self._crew.answer(self._remote, self._remote.start("clock"), silence())
        return clock.Sample(sent, seen, clock.now())

    def collect(self, there: list[AgentSlice]) -> None:
        """Take what was sampled. `there`: answers of agents on the server's machine, whose CPU is not foreign. Raises RunError."""
        if self._call is None:
            return
        counters: Counters = self._crew.answer(self._remote, self._call, silence())
        self._call = None
        spent = sum(answer.cpu_user_ns + answer.cpu_system_ns for answer in there) / counters.window_ns
        user = sum(answer.cpu_user_ns for answer in there) / counters.window_ns
        self._counters = msgspec.structs.replace(
            counters,
            foreign_cpu=max(0.0, counters.foreign_cpu - spent),
            foreign_user_cpu=max(0.0, counters.foreign_user_cpu - user),
        )

    def refresh(self, every: float = 0.0) -> None: ...

    def begin(self) -> None: ...

    def stop(self) -> None: ...

    def end(self, agent_cpu_ns: int = 0, agent_user_ns: int = 0) -> Counters:  # noqa: ARG002
        assert self._counters is not None
        return self._counters
