"""The data types of a trend: the cost of each cell over several runs."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciphercost.model.result import Estimate
from ciphercost.report.comparison_types import Change, Side
from ciphercost.report.words.added_text import AddedCost

Found = Literal["changed", "unchanged", "too-few"]


class Point(msgspec.Struct, frozen=True):
    """One cell of one run."""

    run: int
    """Number of the run, from 0, in the order in which they were measured."""
    cell: int
    estimate: Estimate
    """encrypted ÷ plain."""
    changed: list[Change] = []
    """What differs from the point before: versions, libraries, machine. `reference` is the value there."""
    added: AddedCost | None = None
    """CPU time that encryption adds to an operation. None: the run does not tell it."""


class Level(msgspec.Struct, frozen=True):
    """Consecutive runs between which no change was found."""

    first: int
    """Number of its first point, from 0."""
    last: int
    estimate: Estimate
    """encrypted ÷ plain: the weighted mean of the runs, with its 95 % interval."""
    added: AddedCost | None = None
    """CPU time that encryption adds to an operation: the mean of the runs, each counting the same. None: one of them does not tell it."""


class Shift(msgspec.Struct, frozen=True):
    """A change of the cost from one level to the next."""

    point: int
    """First point of the new level, as estimated."""
    earliest: int
    latest: int
    """The first point of the new level lies between these with 95 % confidence."""
    change: Estimate
    """The new level's ratio ÷ the old one's. Its p-value is that of the difference between the two levels."""
    higher: bool
    """Whether encryption costs more than before."""
    candidates: list[tuple[int, Change]]
    """(point, what differs from the point before) for every point at which the new level may begin."""


class Gap(msgspec.Struct, frozen=True):
    """A run that measured the cell but has no number for it."""

    run: int
    reason: str


class Series(msgspec.Struct, frozen=True):
    """One cell over time."""

    title: str
    """What its cells have in common."""
    metric: str
    label: str
    """The metric's name."""
    found: Found
    points: list[Point]
    levels: list[Level]
    shifts: list[Shift]
    gaps: list[Gap]
    p_value: float | None = None
    """How often random orders of the same runs differ as much; Holm's correction over all cells. None: not tested."""
    smallest_step: float | None = None
    """Without a change: the smallest lasting change of the ratio, as a share, that would probably have been
    found; None if even a large one might not."""
    correlation: float | None = None
    """With changes, reported or not: the estimated correlation of neighbouring runs around their levels, 0 if none is visible."""
    withheld: int = 0
    """Changes that independent runs would show, but that so correlated ones show by themselves. They are not in `shifts`."""


class Trend(msgspec.Struct, frozen=True):
    """The result of `ciphercost trend`."""

    format: int
    runs: list[Side]
    """In the order in which they were measured."""
    least_runs: int
    """Fewest runs of a cell that are tested, with this number of cells."""
    series: list[Series]
    once: int
    """Cells that only one run has; they are not in `series`."""
    machines: list[tuple[str, list[int]]]
    """(machine, numbers of the runs that it measured), if there are several."""
    exit_status: int
