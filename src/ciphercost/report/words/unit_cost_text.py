"""What a page, an opening or a value costs, in words and as a table. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ciphercost.estimate.least_squares import DOUBTFUL
from ciphercost.estimate.notation import number
from ciphercost.model.result import Cell, Result, UnitCost
from ciphercost.report.words import added_text
from ciphercost.report.words.cell_text import places

UNITS = {
    "page": "page read or written",
    "kilobyte": "KB read or written",
    "kilobyte of log": "KB of log",
    "value": "value sealed, opened or searched for",
    "value searched": "search",
}
"""What units are called where their own name is not enough."""
COLUMNS = 3
"""Units beside each other in the terminal's table."""


class Row:
    """Units of one mechanism at one end, which share a line of a table."""

    def __init__(self, costs: Sequence[UnitCost]) -> None:
        first = costs[0]
        self.name = f"{first.engine} {first.mechanism}"
        self.end = first.end
        self.costs = costs


def rows(costs: Sequence[UnitCost]) -> Iterator[Row]:
    """The costs by fit, at most COLUMNS of them together; an opening stands beside the pages of its mechanism."""
    fits: list[list[UnitCost]] = []
    for cost in costs:
        if fits and _together(fits[-1][0], cost):
            fits[-1].append(cost)
        else:
            fits.append([cost])
    for fit in fits:
        for start in range(0, len(fit), COLUMNS):
            yield Row(fit[start : start + COLUMNS])


def _together(first: UnitCost, other: UnitCost) -> bool:
    alike = (first.engine, first.mechanism, first.end) == (other.engine, other.mechanism, other.end)
    return alike and (other.unit == "opening" or first.cells == other.cells)


def unit(of: UnitCost) -> str:
    """`page read`, `KB of log`, `search of 2,000 rows`."""
    if of.unit == "value searched" and of.rows:
        return f"search of {of.rows:,} rows"
    return UNITS.get(of.unit, of.unit)


def many(of: UnitCost) -> str:
    """`pages read`, `KB of log`, `searches of 2,000 rows`."""
    first, mark, rest = unit(of).partition(" ")
    if first == "KB":
        return unit(of)
    return f"{first}{'es' if first.endswith('ch') else 's'}{mark}{rest}"


def whose(of: UnitCost) -> str:
    """`process CPU`, `server CPU` or `client CPU`; `time` that passes."""
    return "time" if of.measure == "time" else f"{of.end} CPU"


def sure(of: UnitCost) -> bool:
    """Whether the run shows that the unit costs something."""
    return of.us.low > 0


def headline(costs: Sequence[UnitCost], *, counted: bool = False) -> str:
    """`adds 11.1 µs of process CPU (95 % CI 9.9–12.3) to each page read, 23 µs (…) to each page written and 0.3 ms (…) to each opening`.

    `counted`: of one cell, with how many of them an operation has. Empty unless the fit explains its cells, and the run shows of all units,
    or all but one, that they cost something.
    """
    work = [cost for cost in costs if cost.unit != "opening"]
    clear = sum(map(sure, work))
    if not clear or len(work) - clear > 1 or any(cost.worst > DOUBTFUL or cost.us.value < 0 for cost in work):
        return ""
    phrases: list[str] = []
    for cost in (*work, *[cost for cost in costs if cost.unit == "opening" and sure(cost)][:1]):
        half = (cost.us.high - cost.us.low) / 2
        named = whose(cost) if not phrases or cost.measure == "time" else ""
        if sure(cost):
            figure = added_text.with_interval(cost.us, "" if phrases else added_text.KNOWN, whose=named)
        else:
            figure = f"at most {added_text.time(cost.us.high, half)}{f' of {named}' if named else ''}"
        phrases.append(f"{figure} to each {unit(cost)}")
        if counted and cost.unit != "opening" and cost.units:
            phrases[-1] += f" ({number(cost.units[0])} per operation)"
    return f"adds {', '.join(phrases[:-1])} and {phrases[-1]}" if len(phrases) > 1 else f"adds {phrases[0]}"


def of_cells(result: Result, cells: Sequence[Cell]) -> list[UnitCost]:
    """The costs of one fit, if the run has just one to these cells."""
    cell_numbers = places(result, cells)
    fitted = [cost for cost in result.costs if cell_numbers.issuperset(cost.cells)]
    work = [cost for cost in fitted if cost.unit != "opening"]
    openings = [cost for cost in fitted if cost.unit == "opening"]
    if len({tuple(cost.cells) for cost in work}) != 1:
        return []
    return [*work, *(openings if len(openings) == 1 else [])]


def unknown(cells: Sequence[Cell]) -> str:
    """That a column mechanism's values are not counted, and why; empty if they are."""
    names = dict.fromkeys(
        cell.workload for cell in cells if cell.layer == "column" and cell.overhead and not cell.values
    )
    if not names:
        return ""
    return (
        f"{', '.join(names)}: how many values an operation encrypts, decrypts and searches for is unknown, so what each costs is too; "
        "secret-insert, secret-read and search tell it"
    )
