"""watch: what a person sees while a run goes on: a live bar on a terminal, plain lines elsewhere, nothing with --no-progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ciphercost.model import Estimate


class Watcher:
    """Silent: what `--no-progress` and the Python interface use. The others override what they show."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is drawn in here, so that a person can be asked."""
        yield

    def start(self, titles: list[str], load_seconds: list[float], wall_seconds: float) -> None:
        """`load_seconds`: planned load of each cell; `wall_seconds`: estimate of the whole run's time."""

    def say(self, text: str) -> None:
        """One line that stays."""

    def phase(self, cell: int, session: int, name: str) -> None:
        """What the cell does now."""

    def slice(self, cell: int, seconds: float, rate: float, arm: str) -> None:
        """A slice ended."""

    def interval(self, cell: int, estimate: Estimate | None) -> None:
        """The throughput ratio as it stands."""

    def done(self, cell: int, text: str) -> None:
        """The cell ended."""


class Lines(Watcher):
    """Plain lines on standard error, for pipes and logs: a line when a session begins and when a cell ends."""

    def __init__(self) -> None:
        self._titles: list[str] = []
        self._seen: set[tuple[int, int]] = set()

    def start(self, titles: list[str], load_seconds: list[float], wall_seconds: float) -> None:
        self._titles = titles
        self.say(outline(len(titles), sum(load_seconds), wall_seconds))

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def phase(self, cell: int, session: int, name: str) -> None:
        if (cell, session) not in self._seen:
            self._seen.add((cell, session))
            self.say(f"{self._titles[cell]}: session {session}, {name}")

    def done(self, cell: int, text: str) -> None:
        self.say(f"{self._titles[cell]}: {text}")


class Bar(Watcher):
    """A live bar: time left, current operations a second of both arms, the interval as it narrows."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._live = self._new_live()
        self._titles: list[str] = []
        self._planned: list[float] = []
        self._spent: dict[int, float] = {}
        self._cell = 0
        self._what = ""
        self._rates: dict[str, float] = {}
        self._interval = ""
        self._drawn = 0.0

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.__exit__(None, None, None)

    def _new_live(self) -> Live:
        return Live(console=self._console, refresh_per_second=4, transient=True)

    @contextmanager
    def paused(self) -> Iterator[None]:
        if not self._live.is_started:
            yield
            return
        self._live.stop()
        try:
            yield
        finally:
            # A new one: the old would first go back over the lines that it drew, which others stand on by now.
            self._live = self._new_live()
            self._live.start()

    def start(self, titles: list[str], load_seconds: list[float], wall_seconds: float) -> None:
        self._titles, self._planned = titles, load_seconds
        self.say(outline(len(titles), sum(load_seconds), wall_seconds))

    def say(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True, markup=False)

    def phase(self, cell: int, session: int, name: str) -> None:
        if cell != self._cell:
            self._rates, self._interval = {}, ""
        self._cell, self._what = cell, f"session {session}, {name}"
        self._draw()

    def slice(self, cell: int, seconds: float, rate: float, arm: str) -> None:
        self._spent[cell] = self._spent.get(cell, 0.0) + seconds
        self._rates[arm] = rate
        self._draw()

    def interval(self, cell: int, estimate: Estimate | None) -> None:  # noqa: ARG002
        if estimate is not None:
            half = (estimate.high - estimate.low) / 2
            self._interval = f"{(estimate.ratio - 1):+.1%} ± {half:.1%}"

    def done(self, cell: int, text: str) -> None:
        self._planned[cell] = self._spent.get(cell, 0.0)
        self.say(f"{self._titles[cell]}: {text}")

    def _draw(self) -> None:
        # Drawing costs the controller milliseconds, and the slices are waiting: four times a second is enough.
        if time.monotonic() - self._drawn < 0.25 or not self._titles:
            return
        self._drawn = time.monotonic()
        total, spent = sum(self._planned), sum(self._spent.values())
        grid = Table.grid(padding=(0, 1))
        grid.add_row(
            ProgressBar(total=max(total, spent, 0.1), completed=spent, width=20),
            Text(f"{_minutes(max(0.0, total - spent))} left"),
            Text(f"{self._titles[self._cell]}", style="bold"),
        )
        rates = "  ".join(f"{arm} {rate:,.0f} op/s" for arm, rate in self._rates.items())
        self._live.update(
            _stack(grid, Text(f"  {self._what}  {rates}"), Text(f"  so far {self._interval}" if self._interval else ""))
        )


def _stack(*rows: Table | Text) -> Table:
    table = Table.grid()
    for row in rows:
        table.add_row(row)
    return table


def outline(cells: int, load_seconds: float, wall_seconds: float) -> str:
    """`5 cells: about 75 s, 60 s of it load`. Pure."""
    return f"{cells} cell{'s' * (cells != 1)}: about {_minutes(wall_seconds)}, {_minutes(load_seconds)} of it load"


def _minutes(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"


def pick(progress: bool) -> Watcher:
    """The watcher that fits: none asked for, a terminal, or a pipe."""
    if not progress:
        return Watcher()
    return Bar() if sys.stderr.isatty() else Lines()
