"""progress: What a run tells whoever watches it; this one says nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from ciphercost.load.units import minutes
from ciphercost.model.result import Estimate

Asked = Callable[[], Estimate | None]


class Display:
    """Silent: what `--no-progress` and the Python interface use. The others override what they show."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is drawn in here, so that a person can be asked."""
        yield

    @contextmanager
    def aside(self, name: str, seconds: float) -> Iterator[None]:
        """In here is something that is no cell's: a published procedure of about that length."""
        self.say(f"{name}: about {minutes(seconds)}; then by our own method")
        yield

    def start(
        self, titles: list[str], load_seconds: list[float], wall_seconds: float, sessions: Sequence[int] = ()
    ) -> None:
        """`load_seconds`, `sessions`: planned of each cell; `wall_seconds`: estimate of the whole run's time."""

    def kept(self, cell: int, sessions: int, *, done: bool) -> None:
        """A run that is gone on with has so much of the cell."""

    def say(self, text: str) -> None:
        """One line that stays."""

    def phase(self, cell: int, session: int, name: str) -> None:
        """What the cell does now."""

    def slice(self, cell: int, seconds: float, rate: float, arm: str, marks: Sequence[str] | None = None) -> None:
        """A slice ended; `marks`: why it is suspect, of one that counts."""

    def interval(self, cell: int, estimate: Asked) -> None:
        """The throughput ratio as it stands, for who asks."""

    def done(self, cell: int, text: str) -> None:
        """The cell ended."""


PREPARING = "preparing"
"""A phase before a cell's first session: its server is found and its data is loaded."""
