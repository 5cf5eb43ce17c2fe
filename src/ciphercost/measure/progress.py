"""progress: the interface through which a run reports its progress. This base class prints nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from ciphercost.load.units import minutes
from ciphercost.model.result import Estimate

Asked = Callable[[], Estimate | None]


class Display:
    """Prints nothing: used by `--no-progress` and the Python interface. Subclasses override what they show."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Draw nothing within this context, so that a person can be asked."""
        yield

    @contextmanager
    def aside(self, name: str, seconds: float) -> Iterator[None]:
        """Within this context something runs that is no cell: a published procedure of about that length."""
        self.say(f"{name}: about {minutes(seconds)}; then with ciphercost's own method")
        yield

    def start(
        self, titles: list[str], load_seconds: list[float], wall_seconds: float, sessions: Sequence[int] = ()
    ) -> None:
        """`load_seconds`, `sessions`: planned for each cell; `wall_seconds`: estimated time of the whole run."""

    def kept(self, cell: int, sessions: int, *, done: bool) -> None:
        """A resumed run already has this many sessions of the cell."""

    def say(self, text: str) -> None:
        """Print one line that stays."""

    def phase(self, cell: int, session: int, name: str) -> None:
        """Show what the cell does now."""

    def loading(self, cell: int, text: str) -> None:
        """Show how far the data of a cell is loaded, once the load takes longer than a moment."""

    def expect(self, cell: int, load_seconds: float, operation_s: float) -> None:
        """The cell's load takes that long instead, because an operation takes `operation_s` seconds."""

    def slice(self, cell: int, seconds: float, rate: float, arm: str, marks: Sequence[str] | None = None) -> None:
        """A slice ended. `marks`: why it is suspect, if it counts."""

    def interval(self, cell: int, estimate: Asked) -> None:
        """The current throughput ratio, computed only if the display asks for it."""

    def done(self, cell: int, text: str) -> None:
        """The cell ended. `text`: its status and, after a colon, the reason, which the report prints; a display shows the status alone."""


PREPARING = "preparing"
"""A phase before a cell's first session: its server is found and its data is loaded."""
