"""Progress of a run: a live screen on a terminal, plain lines elsewhere, nothing with --no-progress.

It computes and draws only between slices, and at most once per second, so that it doesn't disturb the measurement.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Self

import msgspec
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from ciphercost.estimate.notation import interval, worded
from ciphercost.load.units import minutes
from ciphercost.measure.progress import PREPARING, Asked, Display
from ciphercost.model.result import Estimate
from ciphercost.model.shares import in_percent
from ciphercost.model.spec import ARMS, COUNTED
from ciphercost.report.layout import wrap
from ciphercost.report.words.figure_text import printable

EVERY = 1.0
"""Seconds between two updates."""
LOADING_SECONDS = 30.0
"""Seconds between two lines about a load, where each line stays."""
ZOOM = 0.1
"""The scale is redrawn when the interval is narrower than this share of it."""
SETUP_SECONDS = 3.0
"""Assumed setup time (start, load and proof) of the first session."""


CLOSED = suppress(OSError)
"""A terminal or a pipe that was closed takes no more. A run goes on without it: its result is worth more than its progress."""


class Lines(Display):
    """Plain lines on standard error, for pipes and logs: one when a session begins and one when a cell ends."""

    def __init__(self) -> None:
        self._titles: list[str] = []
        self._seen: set[tuple[int, int]] = set()
        self._asked: dict[int, Asked] = {}
        self._loading = time.monotonic()

    def start(
        self,
        titles: list[str],
        load_seconds: list[float],
        wall_seconds: float,
        sessions: Sequence[int] = (),  # noqa: ARG002
    ) -> None:
        self._titles = titles
        self.say(outline(len(titles), sum(load_seconds), wall_seconds))

    def kept(self, cell: int, sessions: int, *, done: bool) -> None:
        if done or sessions:
            self.say(f"{self._titles[cell]}: {'already done' if done else f'{counted(sessions)} already recorded'}")

    def say(self, text: str) -> None:
        with CLOSED:
            print(printable(text), file=sys.stderr, flush=True)

    def phase(self, cell: int, session: int, name: str) -> None:
        if (cell, session) not in self._seen and name != PREPARING:
            self._seen.add((cell, session))
            self.say(f"{self._titles[cell]}: session {session}, {name}{self._so_far(cell)}")

    def loading(self, cell: int, text: str) -> None:  # noqa: ARG002
        if time.monotonic() - self._loading >= LOADING_SECONDS:
            self._loading = time.monotonic()
            self.say(text)

    def expect(self, cell: int, load_seconds: float, operation_s: float) -> None:
        self.say(slower(self._titles[cell], load_seconds, operation_s))

    def interval(self, cell: int, estimate: Asked) -> None:
        self._asked[cell] = estimate

    def done(self, cell: int, text: str) -> None:
        self.say(f"{self._titles[cell]}: {text.partition(':')[0]}{self._so_far(cell)}")

    def _so_far(self, cell: int) -> str:
        estimate = self._asked[cell]() if cell in self._asked else None
        return f"; so far {cost(estimate)}" if estimate else ""


# ── state and layout of the screen ──────────────────────────────────────────────────────────────────────────────────────────


class Shown(msgspec.Struct):
    """The progress of one cell."""

    title: str
    load_s: float
    """Planned."""
    sessions: int
    """Planned."""
    kept: int = 0
    """Sessions that an earlier part of the run recorded."""
    spent_s: float = 0.0
    begun: int = 0
    """Sessions."""
    session: int = 0
    phase: str = ""
    """Empty: waiting."""
    state: str = ""
    """How it ended; empty: not yet."""
    estimate: Estimate | None = None
    first: Estimate | None = None
    """The interval that defines the scale: the first, or the first that was much narrower."""
    asked: Asked | None = None
    rates: dict[str, float] = {}
    slices: int = 0
    marked: int = 0
    marks: Counter[str] = msgspec.field(default_factory=Counter)

    @property
    def left_s(self) -> float:
        """Seconds of load that remain."""
        return 0.0 if self.state else max(0.0, self.load_s - self.spent_s)

    @property
    def left_sessions(self) -> int:
        return 0 if self.state else max(0, self.sessions - self.begun)

    def ask(self) -> None:
        """Compute the estimate now."""
        if self.asked is not None:
            self.estimate, self.asked = self.asked() or self.estimate, None
            now = self.estimate
            if now and (not self.first or now.high - now.low < ZOOM * (self.first.high - self.first.low)):
                self.first = now


class Clock(msgspec.Struct):
    """Estimates the time left from the time that was needed so far."""

    began: float
    aside_s: float = 0.0
    """Seconds that belong to no cell."""

    def left(self, cells: Sequence[Shown], now: float) -> float:
        """Seconds left: the remaining load, plus the average setup time for each remaining session. Pure."""
        spent = sum(cell.spent_s for cell in cells)
        begun = sum(cell.begun for cell in cells)
        beside = max(0.0, now - self.began - self.aside_s - spent)
        # The setup is the time of a session beside its load; before the first session it is assumed.
        setup = (beside + SETUP_SECONDS) / (begun + 1)
        return sum(cell.left_s + cell.left_sessions * setup for cell in cells)


def page(
    cells: Sequence[Shown], current: int, left_s: float, note: str, width: int, height: int
) -> list[tuple[str, str]]:
    """The screen as (line, style), at most `width` wide and `height` high. Pure.

    `note`: an activity that belongs to no cell.
    """
    if width < 20 or height < 6:
        return [(f"{minutes(left_s)} left"[:width], "")]
    lines = [(overview(cells, left_s, width), "bold")]
    now = [(f"  {note}", "")] if note else detail(cells[current], width)
    room = height - len(lines) - len(now) - 1
    if len(cells) > 1:
        lines += [*rows(cells, max(1, room), width)]
    lines += now
    return [(line if len(line) <= width else line[: width - 1] + "…", style) for line, style in lines[:height]]


def overview(cells: Sequence[Shown], left_s: float, width: int) -> str:
    """`━━━━━━━━────────  41 %  about 2 min left · 3 of 5 cells done`."""
    done, all_ = sum(cell.load_s - cell.left_s for cell in cells), sum(cell.load_s for cell in cells)
    share = min(1.0, done / all_) if all_ else 1.0
    ended = sum(bool(cell.state) for cell in cells)
    words = f"{in_percent(share, 0):>5} · about {minutes(left_s)} left"
    if len(cells) > 1:
        words += f" · {ended} of {len(cells)} cells done"
    length = max(0, min(30, width - len(words) - 1))
    full = round(share * length)
    return f"{'━' * full}{'─' * (length - full)} {words}"


MARKS = {"ok": ("✓", "green"), "": ("·", "dim")}


def rows(cells: Sequence[Shown], most: int, width: int) -> Iterator[tuple[str, str]]:
    """A line per cell. If there are too many: the running, last finished and next ones, and the number of the others."""
    running = [number for number, cell in enumerate(cells) if cell.phase and not cell.state]
    last = running[-1] if running else max((n for n, cell in enumerate(cells) if cell.state), default=0)
    # Cells nearest to the running ones come first.
    nearest = sorted(range(len(cells)), key=lambda number: (number not in running, abs(number - last)))
    shown = sorted(nearest[: most if most >= len(cells) else max(1, most - 2)])
    hidden = [number for number in range(len(cells)) if number not in shown]
    ended = [number for number in hidden if cells[number].state]
    if ended and most > 2:
        bad = sum(cells[number].state != "ok" for number in ended)
        yield f"  … {len(ended)} more done" + (f", {bad} of them without a number" if bad else ""), "dim"
    for number in shown:
        yield row(cells[number], width)
    if waiting := len(hidden) - len(ended):
        yield f"  … {waiting} more to come", "dim"


def row(cell: Shown, width: int) -> tuple[str, str]:
    """`✓ postgresql:tls point-select      24.9 % fewer (24.2–25.5 %)`."""
    if cell.state:
        mark, style = MARKS.get(cell.state, ("✗", "red"))
        words = cost(cell.estimate) if cell.state == "ok" and cell.estimate else cell.state.upper().replace("-", " ")
        words = "done" if words == "OK" else words
    elif cell.phase:
        mark, style = "▸", ""
        words = cost(cell.estimate) if cell.estimate else cell.phase
    else:
        mark, style = MARKS[""]
        words = "waiting"
    room = width - len(words) - 6
    title = short(cell.title, room)
    return (f"  {mark} {title:<{room}}  {words}" if room >= 8 else f"  {mark} {short(cell.title, width - 4)}"), style


def detail(cell: Shown, width: int) -> list[tuple[str, str]]:
    """The running cell: its phase, both arms' rates, the current interval, and marked slices."""
    where = (
        f"session {cell.session} of {max(cell.kept + cell.sessions, cell.session)}, {cell.phase}"
        if cell.session
        else cell.phase
    )
    lines = [(short(cell.title, width), "bold"), (f"  {where}", "")]
    if cell.rates:
        lines.append(("  " + "   ".join(f"{arm} {cell.rates[arm]:,.0f} op/s" for arm in ARMS if arm in cell.rates), ""))
    if cell.estimate is not None and cell.first is not None:
        lines.append((f"  so far {cost(cell.estimate)} operations/s", ""))
        lines.append((f"  {scale(cell.first, cell.estimate, min(60, width - 4))}", "cyan"))
    if cell.marked:
        kinds = ", ".join(f"{kind} {count}" for kind, count in cell.marks.most_common())
        lines.append((f"  {cell.marked} of {cell.slices} slices marked: {kinds}", "yellow"))
    return lines


def scale(first: Estimate, now: Estimate, width: int) -> str:
    """`40 % fewer [          ├──●──┤                 ] 10 % fewer`: the current interval on the scale of the first. Pure."""
    low, high = min(first.low, now.low), max(first.high, now.high)
    span = (high - low) or 1.0
    least, most = (worded(Estimate(ratio, low, high), "more", "fewer") for ratio in (low, high))
    before, after = f"{least} [", f"] {most}"
    inner = max(5, width - len(before) - len(after))

    def place(value: float) -> int:
        return min(inner - 1, max(0, round((value - low) / span * (inner - 1))))

    letters = [" "] * inner
    left, middle, right = place(now.low), place(now.ratio), place(now.high)
    letters[left : right + 1] = "─" * (right - left + 1)
    letters[left], letters[right], letters[middle] = "├", "┤", "●"
    return f"{before}{''.join(letters)}{after}"


def cost(estimate: Estimate) -> str:
    """`24.9 % fewer (24.2–25.5 %)`."""
    return f"{worded(estimate, 'more', 'fewer')} ({interval(estimate, 'more', 'fewer')})"


def short(text: str, room: int) -> str:
    """A name that fits. It loses its middle, because names differ at their ends."""
    if len(text) <= room:
        return text
    keep = max(1, room - 1)
    return f"{text[: keep // 2]}…{text[len(text) - (keep - keep // 2) :]}"


def counted(sessions: int) -> str:
    return f"{sessions} session{'s' * (sessions != 1)}"


# ── a terminal ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Screen(Display):
    """A live screen: every cell, the time left, both arms' operations per second, and the current interval."""

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console or Console(stderr=True)
        self._now = clock
        self._live = self._new_live()
        self._cells: list[Shown] = []
        self._clock = Clock(clock())
        self._current = 0
        self._aside: tuple[str, float] | None = None
        """A published procedure and its expected end."""
        self._drawn = -EVERY

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        with CLOSED:
            self._live.__exit__(None, None, None)

    def _new_live(self) -> Live:
        # No refresh thread: it would draw in the middle of a slice.
        return Live(console=self._console, auto_refresh=False, transient=True)

    @contextmanager
    def paused(self) -> Iterator[None]:
        if not self._live.is_started:
            yield
            return
        with CLOSED:
            self._live.stop()
        try:
            yield
        finally:
            # A new screen, because the old one would first overwrite its former lines, where other output is now.
            self._live = self._new_live()
            with CLOSED:
                self._live.start()

    @contextmanager
    def aside(self, name: str, seconds: float) -> Iterator[None]:
        began = self._now()
        self._aside = (name, began + seconds)
        self._draw(at_once=True)
        try:
            yield
        finally:
            self._clock.aside_s += self._now() - began
            self._aside = None

    def start(
        self, titles: list[str], load_seconds: list[float], wall_seconds: float, sessions: Sequence[int] = ()
    ) -> None:
        planned = sessions or [0] * len(titles)
        self._cells = [Shown(*cell_plan) for cell_plan in zip(titles, load_seconds, planned, strict=True)]
        self._clock = Clock(self._now())
        self.say(outline(len(titles), sum(load_seconds), wall_seconds))

    def kept(self, cell: int, sessions: int, *, done: bool) -> None:
        progress = self._cells[cell]
        if done:
            progress.state = "ok"
        elif sessions:
            progress.kept = sessions
            self.say(f"{progress.title}: {counted(sessions)} already recorded")

    def say(self, text: str) -> None:
        with CLOSED:
            for line in wrap(printable(text), width=max(20, self._console.width - 1)):
                self._console.print(line, highlight=False, soft_wrap=True, markup=False)

    def phase(self, cell: int, session: int, name: str) -> None:
        progress = self._cells[cell]
        quiet = name not in (*COUNTED, "warmup", "warm-up", "pilot")
        if session != progress.session and name != PREPARING:
            progress.session, progress.begun = session, progress.begun + 1
            progress.sessions = max(progress.sessions, progress.begun)
        changed = name != progress.phase
        self._current, progress.phase = cell, name
        self._draw(at_once=quiet and changed)

    def loading(self, cell: int, text: str) -> None:
        self._current, self._cells[cell].phase = cell, text
        self._draw()

    def slice(self, cell: int, seconds: float, rate: float, arm: str, marks: Sequence[str] | None = None) -> None:
        progress = self._cells[cell]
        progress.spent_s += seconds
        progress.rates = {**progress.rates, arm: rate}
        if marks is not None:
            progress.slices += 1
            progress.marked += bool(marks)
            progress.marks.update(marks)
        self._draw()

    def expect(self, cell: int, load_seconds: float, operation_s: float) -> None:
        progress = self._cells[cell]
        progress.load_s = max(progress.load_s, load_seconds)
        self.say(slower(progress.title, load_seconds, operation_s))

    def interval(self, cell: int, estimate: Asked) -> None:
        self._cells[cell].asked = estimate

    def done(self, cell: int, text: str) -> None:
        progress = self._cells[cell]
        progress.ask()
        progress.state = text.partition(":")[0]
        if progress.state != "ok":
            self.say(f"{progress.title}: {progress.state}")
        self._draw(at_once=True)

    def _draw(self, *, at_once: bool = False) -> None:
        now = self._now()
        if not self._cells or not self._live.is_started or (now - self._drawn < EVERY and not at_once):
            return
        self._drawn = now
        self._cells[self._current].ask()
        left, note = self._clock.left(self._cells, now), ""
        if self._aside:
            note, until = self._aside
            left += max(0.0, until - now)
        width, height = self._console.size
        # Some terminals wrap a line that is as wide as they are.
        lines = page(self._cells, self._current, left, note, width - 1, height - 2)
        shown = Group(*(Text(printable(line), style, no_wrap=True) for line, style in lines))
        with CLOSED:
            self._live.update(shown, refresh=True)


def outline(cells: int, load_seconds: float, wall_seconds: float) -> str:
    """`5 cells: about 75 s, of which 60 s load`. Pure."""
    return f"{cells} cell{'s' * (cells != 1)}: about {minutes(wall_seconds)}, of which {minutes(load_seconds)} load"


def slower(title: str, load_seconds: float, operation_s: float) -> str:
    """`url:tls page: an operation takes 0.7 s, so its load takes about 95 s instead`. Pure."""
    return f"{title}: an operation takes {operation_s:.2g} s, so its load takes about {minutes(load_seconds)} instead"


def pick(progress: bool) -> Display:
    """The watcher for this output: none, a live screen on a terminal, or plain lines for pipes and NO_COLOR."""
    if not progress:
        return Display()
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown") or not sys.stderr.isatty()
    return Lines() if plain else Screen()
