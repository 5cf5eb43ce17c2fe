"""stopping: what measuring needs from statistics: whether a cell is precise enough, and the rate of its open loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from ciphercost.model.result import Estimate
from ciphercost.model.slices import AgentSlice, SliceRecord
from ciphercost.model.spec import Arm, Mode, Phase


class Stopping(Protocol):
    """Statistics of the slices measured so far: whether they are precise enough, and the rate for the open loop.

    Measuring knows no statistics: whoever starts the run passes this in (`estimate.so_far.OnlineEstimator`).
    """

    def add(self, record: SliceRecord) -> None:
        """Add one slice, in the order of measurement."""

    @property
    def blocks(self) -> int:
        """Number of complete blocks so far."""

    def expect(self, session: int, blocks: int) -> None:
        """Take memory for that many blocks of capacity in this session at once."""

    def void(self, session: int) -> None:
        """Ignore all slices of this session."""

    def precise(self, target: float, mode: Mode) -> bool:
        """Whether the interval of the log ratio is no wider than ±`target`."""

    def carries_over(self, session: int) -> bool:
        """Whether work that one arm left behind slowed the other in this session."""

    def throughput_interval(self, mode: Mode) -> Estimate | None:
        """Encrypted ÷ plain operations per second with its 95 % interval so far; None with too few blocks."""

    def slice_p99(self, record: SliceRecord) -> float:
        """99th percentile of one slice's operations, seconds."""

    def slowest_operation(self, slices: Iterable[tuple[AgentSlice, float]], clients: int) -> float:
        """Seconds of the slowest usual operation in one arm's slices of a pilot, each with the seconds that it took; 0 if
        operations all take about as long.
        """

    def open_loop_rate(self, fallback: float, *, clients: int, think_s: float) -> float:
        """Operations per second that the open loop requests of both arms."""

    def next_of_search(self, session: int, lowest: float, *, alone: bool) -> tuple[Phase, dict[Arm, float]] | None:
        """The next block of the search for capacity at the cell's objective: phase and each arm's rate. None: the search is over.

        `lowest`: the lowest rate that has enough requests for the quantile; `alone`: the run has one session.
        """


Start = Callable[[Iterable[int], bool, str], Stopping]
"""Makes the statistics of a cell from (sessions that do not count, whether it may stop before its time is over, its objective)."""
