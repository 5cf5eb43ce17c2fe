"""Matches the cells of two runs into pairs, and finds those without a partner. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ciphercost.model.result import Cell
from ciphercost.report.comparison_types import Alone, Change
from ciphercost.report.words import cell_text

SEEDED = ("data_seed", "next")
"""Parameters of a workload that follow from the run's seed. Comparisons ignore them."""


def identity(cell: Cell) -> dict[str, str]:
    """A cell's request, by name. Two cells with the same request are the same cell, measured twice."""
    known = {
        "engine": cell.engine,
        "server version": cell.version,
        "mechanism": cell.mechanism,
        "workload": cell.workload,
        "clients": str(cell.clients),
        "regime": cell.regime,
        "client": cell.client,
    }
    known |= {f"set {name}": value for name, value in cell.factors.items() if name not in SEEDED}
    if cell.pair:
        known |= {f"versus {name}": value for name, value in cell.pair.reference.factors.items()}
    return known | cell.conditions


def unlike(reference: Cell, other: Cell) -> list[Change]:
    """What differs in the requests of two cells. Between two mechanisms, only settings that both have."""
    a, b = identity(reference), identity(other)
    if reference.mechanism != other.mechanism:
        shared = {name for name in {*a, *b} if not name.startswith("set ") or (name in a and name in b)}
        a, b = ({name: value for name, value in request.items() if name in shared} for request in (a, b))
    return changes(a, b)


def comparable(reference: Cell, other: Cell) -> bool:
    """Whether the ratio of their costs means anything: they do the same operation, and neither or both are controls.

    A control is not a cheaper mechanism, half a page is not a cheaper page, and a difference between two encrypted settings is no cost of
    encryption.
    """
    if (reference.pair is None) != (other.pair is None):
        return False
    same = reference.workload == other.workload and cell_text.is_control(reference) == cell_text.is_control(other)
    return same and (not cell_text.is_control(reference) or reference.mechanism == other.mechanism)


def match(
    reference: Sequence[Cell], other: Sequence[Cell]
) -> tuple[list[tuple[int, int]], tuple[list[int], list[int]]]:
    """Pairs of cell numbers, and the numbers left over on both sides.

    Cells with equal requests are matched first. Each remaining cell is matched with the cell that differs in the fewest things, if each is
    the other's only nearest. So two runs that differ in one factor are compared in that factor. If two cells are equally near, neither is
    matched.
    """
    distances = {
        (i, j): len(unlike(a, b))
        for (i, a), (j, b) in itertools.product(enumerate(reference), enumerate(other))
        if comparable(a, b)
    }
    pairs: list[tuple[int, int]] = []
    left = (list(range(len(reference))), list(range(len(other))))

    def take(pair: tuple[int, int]) -> None:
        pairs.append(pair)
        for side, number in zip(left, pair, strict=True):
            side.remove(number)

    for pair in sorted(pair for pair, distance in distances.items() if not distance):
        if pair[0] in left[0] and pair[1] in left[1]:
            take(pair)
    while nearest_pairs := _nearest_both_ways(distances, left):
        for pair in nearest_pairs:
            take(pair)
    return sorted(pairs), left


def _nearest_both_ways(
    distances: Mapping[tuple[int, int], int], left: tuple[Sequence[int], Sequence[int]]
) -> list[tuple[int, int]]:
    near = {pair: far for pair, far in distances.items() if pair[0] in left[0] and pair[1] in left[1]}
    nearest: tuple[dict[int, list[tuple[int, int]]], dict[int, list[tuple[int, int]]]] = ({}, {})
    for pair, _ in sorted(near.items(), key=lambda pair_and_distance: pair_and_distance[1]):
        for of, number in zip(nearest, pair, strict=True):
            if near[of.setdefault(number, [pair])[0]] == near[pair] and pair not in of[number]:
                of[number].append(pair)
    return [pair for pair in near if nearest[0][pair[0]] == [pair] == nearest[1][pair[1]]]


def without_partner(
    reference: Sequence[Cell], other: Sequence[Cell], run: int, left: tuple[Sequence[int], Sequence[int]]
) -> Iterator[Alone]:
    for side, numbers in enumerate(left):
        cells, theirs = (reference, other)[side], (other, reference)[side]
        for number in numbers:
            cell = cells[number]
            nearest = min(theirs, key=lambda candidate: len(unlike(cell, candidate)), default=None)
            differs = []
            if nearest is not None:
                differs = unlike(cell, nearest) if side == 0 else unlike(nearest, cell)
            yield Alone(
                0 if side == 0 else run,
                number,
                cell_text.heading(cell),
                cell_text.heading(nearest) if nearest else "",
                differs,
            )


def changes(reference: Mapping[str, Any], other: Mapping[str, Any], names: Iterable[str] = ()) -> list[Change]:
    """The values that differ, among `names` (default: all names of both). A missing value is empty."""
    listed = list(names) or list(dict.fromkeys([*reference, *other]))
    return [
        Change(name, _text(reference.get(name)), _text(other.get(name)))
        for name in listed
        if _text(reference.get(name)) != _text(other.get(name))
    ]


def _text(value: object) -> str:
    return "" if value is None else "yes" if value is True else "no" if value is False else str(value)
