"""comparison_types: the data types of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from ciphercost.estimate.statistics import Interval
from ciphercost.model.result import Estimate, Result
from ciphercost.model.terms import Verdict

Passed = Literal["pass", "fail", "unresolved", "failed"]


class Run(NamedTuple):
    """One run with what a result no longer has."""

    name: str
    result: Result
    intervals: Sequence[Mapping[str, Interval]]
    """By cell: the log ratio of each metric."""


class Side(msgspec.Struct, frozen=True):
    """One run, as the page names it."""

    name: str
    id: str
    started: str
    mode: str
    cells: int
    command: str = ""


class Change(msgspec.Struct, frozen=True):
    """Something that is not the same in two runs or in two cells."""

    name: str
    reference: str
    other: str


class Differences(msgspec.Struct, frozen=True):
    """What one run has otherwise than the reference, whatever its cells."""

    run: int
    """Number of the run, from 1; 0 is the reference."""
    machine: list[Change]
    run_facts: list[Change]


class Pair(msgspec.Struct, frozen=True):
    """A cell of the reference and the cell of another run that it is compared with."""

    run: int
    cells: tuple[int, int]
    """Their numbers: in the reference, in the other run."""
    title: str
    """What they have in common."""
    metric: str
    """What the verdict is about; empty where one of the two has no number."""
    verdict: Verdict | None
    change: dict[str, Estimate]
    """By metric: the other's ratio ÷ the reference's, with its 95 % interval; of the verdict's metric p is after Holm."""
    costs: dict[str, tuple[Estimate, Estimate]]
    """By metric: both ratios themselves."""
    factors: list[Change]
    """What was asked for otherwise: what is compared."""
    also: list[Change]
    """What else differs: versions, libraries, what was negotiated, cores."""
    mind: list[str]
    """Warnings of either cell that bear on it."""
    reason: str = ""
    """Why there is no verdict."""


class Alone(msgspec.Struct, frozen=True):
    """A cell without a partner."""

    run: int
    cell: int
    title: str
    nearest: str = ""
    """Of the other run: the cell that is most like it; empty where it has none."""
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


class Comparison(msgspec.Struct, frozen=True):
    """What `ciphercost compare` says."""

    format: int
    runs: list[Side]
    """The first is the reference."""
    margin: float
    """Costs that differ by less than this share are called equivalent."""
    differences: list[Differences]
    pairs: list[Pair]
    alone: list[Alone]
    limit: float | None
    """Of --fail-over, as a share: 0.1."""
    gates: list[Gate]
    strict: bool
    exit_status: int
