"""stopping: what measuring asks of statistics: whether a cell is precise enough, and at what rate its open loop runs."""

from __future__ import annotations

from typing import Protocol

from ciphercost.model.result import Estimate
from ciphercost.model.slices import SliceRecord
from ciphercost.model.spec import Mode


class Stopping(Protocol):
    """What the slices measured so far come to: whether they are precise enough, and the rate for the open loop.

    Measuring knows no statistics: whoever starts the run hands this in (`estimate.estimator.CellEstimator`).
    """

    def add(self, record: SliceRecord) -> None:
        """Take one slice into account, in the order in which they were measured."""

    @property
    def blocks(self) -> int:
        """Complete blocks so far."""

    def void(self, session: int) -> None:
        """Leave all slices of this session out."""

    def precise(self, target: float, mode: Mode) -> bool:
        """Whether the interval of the log ratio is no wider than ±`target`."""

    def carries_over(self, session: int) -> bool:
        """Whether what one arm left undone slowed the other in this session."""

    def throughput_interval(self, mode: Mode) -> Estimate | None:
        """Encrypted ÷ plain operations a second with its 95 % interval so far; None with too few blocks."""

    def open_loop_rate(self, fallback: float, *, clients: int, think_s: float) -> float:
        """Operations a second at which both arms are asked in the open loop."""
