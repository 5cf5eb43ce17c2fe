"""The data types of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from ciphercost.estimate.statistics import Interval
from ciphercost.model.constrained_types import Verdict
from ciphercost.model.result import Estimate, Part, Result
from ciphercost.report.words.added_text import AddedCost

Passed = Literal["pass", "fail", "unresolved", "failed"]


class Run(NamedTuple):
    """One run, with the intervals that its result does not contain."""

    name: str
    result: Result
    intervals: Sequence[Mapping[str, Interval]]
    """By cell: the log ratio of each metric, with its standard errors."""


class Side(msgspec.Struct, frozen=True):
    """One run, as reports name it."""

    name: str
    id: str
    started: str
    mode: str
    cells: int
    command: str = ""


class Change(msgspec.Struct, frozen=True):
    """A fact that differs between two runs or two cells."""

    name: str
    reference: str
    other: str


class Differences(msgspec.Struct, frozen=True):
    """What differs between one run and the reference as a whole."""

    run: int
    """Number of the run, from 1; 0 is the reference."""
    machine: list[Change]
    run_facts: list[Change]


class AddedChange(msgspec.Struct, frozen=True):
    """CPU time that encryption adds to an operation in both cells, µs."""

    reference: AddedCost
    other: AddedCost
    difference: Part
    """The other's − the reference's, with its 95 % interval."""


class UnitChange(msgspec.Struct, frozen=True):
    """What encryption adds to one unit of work in both runs, µs."""

    run: int
    engine: str
    mechanism: str
    unit: str
    """`operation`, `byte`, `new connection`, `page read`, `value sealed`, …"""
    whose: str
    """`server CPU`."""
    reference: Part
    other: Part
    difference: Part


class Pair(msgspec.Struct, frozen=True):
    """A cell of the reference and the cell of another run that it is compared with."""

    run: int
    cells: tuple[int, int]
    """Their numbers: in the reference, in the other run."""
    title: str
    """What the two cells have in common."""
    metric: str
    """The metric of the verdict; empty if one of the two cells has no number."""
    verdict: Verdict | None
    change: dict[str, Estimate]
    """By metric: the other run's ratio ÷ the reference's, with its 95 % interval; p is after Holm for the verdict's metric."""
    costs: dict[str, tuple[Estimate, Estimate]]
    """By metric: the reference's and the other run's ratio."""
    factors: list[Change]
    """Requested factors that differ, i.e. what is compared."""
    also: list[Change]
    """What else differs: versions, libraries, negotiated encryption, cores."""
    mind: list[str]
    """Warnings of either cell that matter for this comparison."""
    reason: str = ""
    """Why there is no verdict."""
    noise: list[str] = []
    """Metrics that reports leave out: counters whose change is not resolved, or of which both cells have almost nothing."""
    added: AddedChange | None = None
    """None: the CPU time of one of the two cells is not known, or it is that of another process."""


class Alone(msgspec.Struct, frozen=True):
    """A cell without a partner."""

    run: int
    cell: int
    title: str
    nearest: str = ""
    """The most similar cell of the other run; empty if that run has none."""
    differs: list[Change] = []


class Gate(msgspec.Struct, frozen=True):
    """One cell against the budget."""

    run: int
    cell: int
    title: str
    metric: str
    outcome: Passed
    estimate: Estimate | None
    reason: str = ""
    doubt: Literal["", "no-cost", "uneven", "mostly", "failures"] = ""
    """Why the cost can't be judged, or only in part.

    no-cost: the ratio is no cost of encryption; uneven: one arm was disturbed more; failures: they may change the answer, or do; mostly: it is
    judged on a busy machine.
    """
    verdict: Verdict | None = None
    """The cell's own: whether encryption costs anything at all."""
    added: AddedCost | None = None
    """CPU time that encryption adds to an operation. It is not what the budget limits."""


class Comparison(msgspec.Struct, frozen=True):
    """The result of `ciphercost compare`."""

    format: int
    runs: list[Side]
    """The first is the reference."""
    margin: float
    """Costs that differ by less than this share are equivalent."""
    differences: list[Differences]
    pairs: list[Pair]
    alone: list[Alone]
    limit: float | None
    """Of --fail-over, as a share: 0.1."""
    gates: list[Gate]
    strict: bool
    exit_status: int
    disturbed: list[str] = []
    """A warning for each run that other processes disturbed, with its name if there are several."""
    units: list[UnitChange] = []
    """What encryption adds to each unit of work, where both runs tell it."""
