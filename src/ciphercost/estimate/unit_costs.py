"""unit_costs: what encryption at rest costs for each page and opening, and in columns for each value. Pure.

The model of the CPU time that encryption adds to an operation is

    at rest       pages read × read  +  pages written × write  +  kilobytes of log × log
    in columns    values sealed × seal  +  values opened × open  +  values searched for × search

The server's own counters tell the pages and the log (`Enciphered`), the workload tells the values. `least_squares` fits the model to cells of
one server and mechanism with different mixes. Where they are too few, or too alike, for all causes, causes are taken together: pages read or
written, then all bytes; all values. One cell is enough for one cause.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from ciphercost.estimate import least_squares, plausible, statistics, student_t
from ciphercost.estimate.parts import BySession
from ciphercost.model.cipher_work import Enciphered, Stream, Way
from ciphercost.model.result import Cell, Part, Unit, UnitCost

DIFFERENT = 0.1
"""How different cells must be to tell causes apart: the least singular value of their mixes. Two causes with a correlation of 0.99 have it."""
MATERIAL = 0.02
"""A cause with a smaller share of the work in every cell is left out."""
OPENS = 0.5
"""Connections per operation from which an operation is the opening of a database."""
VALUES: tuple[tuple[Unit, str], ...] = (
    ("value sealed", "sealed"),
    ("value opened", "opened"),
    ("value searched", "searched"),
)

Starts = Mapping[int, tuple[float, float]]
"""Seconds from start to first answer (plain, encrypted), by session."""
Work = Mapping[Unit, float]
"""Units of each cause in one operation."""
End = Literal["server", "client", "process"]


class Cause(NamedTuple):
    """A cause as the fit sees it."""

    unit: Unit
    units: Callable[[Work], float]
    """How many units of it an operation has."""


KEYS: Mapping[End, str] = {"server": "server_cpu", "client": "client_cpu", "process": "client_cpu"}
"""Of `Cell.added`."""
PAGES: tuple[Unit, ...] = ("page read", "page written")
LOG: Unit = "kilobyte of log"


def split(cells: Sequence[Cell], sessions: Sequence[BySession] = (), starts: Sequence[Starts] = ()) -> list[UnitCost]:
    """The cost of each unit for each server and mechanism whose cells determine it.

    `sessions`: as in `parts.split`; `starts`: of each cell; empty: unknown.
    """
    alike: dict[str, list[int]] = {}
    for number, cell in enumerate(cells):
        if plausible.tells_cost(cell) and cell.layer in ("rest", "column"):
            alike.setdefault(_like(cell), []).append(number)
    costs: list[UnitCost] = []
    for numbers in alike.values():
        end = _end([cells[number] for number in numbers])
        costs += _of_work(cells, numbers, end, sessions)
        costs += _openings(cells, numbers, sessions, starts)
    return costs


def _like(cell: Cell) -> str:
    """What cells must have in common: all but workload, its parameters and the size of the cache, which decide only how many pages are read."""
    factors = {name: value for name, value in cell.factors.items() if name in cell.mechanism_factors}
    conditions = {name: value for name, value in cell.conditions.items() if name != "cache"}
    cipher = cell.encryption.get("cipher", "")
    return repr((cell.engine, cell.version, cell.mechanism, factors, conditions, cell.regime, cell.cores, cipher))


def _end(cells: Sequence[Cell]) -> End:
    """The end that encrypts; in columns that at which encryption adds more, as either the server's functions or the application may do it."""
    if cells[0].embedded:
        return "process"
    server, client = (
        sum(cell.added[key].mean for cell in cells if key in cell.added) for key in ("server_cpu", "client_cpu")
    )
    return "client" if cells[0].layer == "column" and client > server else "server"


# ── pages and values ──────────────────────────────────────────────────────────────────────────────────────────────────


def _of_work(cells: Sequence[Cell], numbers: Sequence[int], end: End, sessions: Sequence[BySession]) -> list[UnitCost]:
    key = KEYS[end]
    works = {number: work for number in numbers if key in cells[number].added and (work := work_of(cells[number]))}
    if not works:
        return []
    known = list(works)
    first = cells[known[0]]
    page = _page(first.enciphered)
    for causes in _ways(works.values(), page):
        design = np.array([[cause.units(works[number]) for cause in causes] for number in known])
        session_values = [sessions[number].get(key, {}) for number in known] if sessions else []
        fitted = least_squares.fit(design, [cells[number].added[key] for number in known], session_values, DIFFERENT)
        if fitted is None:
            continue
        return [
            UnitCost(
                engine=first.engine,
                mechanism=first.mechanism,
                end=end,
                unit=cause.unit,
                us=us,
                cells=known,
                units=[cause.units(works[number]) for number in known],
                bytes=page if "page" in cause.unit else 0,
                rows=_rows(cells, known, cause.unit),
                floor_us=_floor(first, cause.unit),
                worst=fitted.worst,
                error=least_squares.recorded(fitted.error) if place == 0 else None,
                scatter=fitted.scatter,
            )
            for place, (cause, us) in enumerate(zip(causes, fitted.causes, strict=True))
        ]
    return []


def work_of(cell: Cell) -> Work:
    """Units of each cause in one operation of a cell; {} if that is unknown, or nothing is encrypted."""
    work: dict[Unit, float] = {}
    if cell.layer == "column":
        work = {unit: cell.values.get(name, 0.0) for unit, name in VALUES}
    elif cell.enciphered is not None and (operations := cell.enciphered.operations):
        for kind, stream in cell.enciphered.streams.items():
            if _is_log(kind):
                work[LOG] = work.get(LOG, 0.0) + (stream.read + stream.written) / 1e3 / operations
            else:
                work["page read"] = stream.read / stream.page / operations
                work["page written"] = stream.written / stream.page / operations
    return work if any(work.values()) else {}


def _is_log(kind: str) -> bool:
    return kind.endswith("log")


def _pages(of: Enciphered | None) -> Stream | None:
    return next((stream for kind, stream in of.streams.items() if not _is_log(kind)), None) if of is not None else None


def _page(of: Enciphered | None) -> int:
    pages = _pages(of)
    return pages.page if pages is not None else 0


def _ways(works: Collection[Work], page: int) -> Iterator[list[Cause]]:
    """Causes to fit, the finest way first. Those that are next to nothing of the work in every cell are left out."""

    def size(work: Work, unit: Unit) -> float:
        return work.get(unit, 0.0) * {"page read": page, "page written": page, LOG: 1e3}.get(unit, 1)

    def whole(work: Work) -> float:
        return sum(size(work, unit) for unit in work)

    units = dict.fromkeys(unit for work in works for unit in work)
    causes = [
        Cause(unit, partial(_amount, units=(unit,)))
        for unit in (*PAGES, LOG, *(unit for unit, _ in VALUES))
        if unit in units and any(size(work, unit) >= MATERIAL * whole(work) for work in works)
    ]
    yield causes
    names = [cause.unit for cause in causes]
    if set(PAGES) <= set(names):
        together = [Cause("page", partial(_amount, units=PAGES)), *(cause for cause in causes if cause.unit == LOG)]
        yield together
        names = [cause.unit for cause in together]
    if len(names) > 1:
        values = names[0].startswith("value")
        yield [Cause("value", whole) if values else Cause("kilobyte", lambda work: whole(work) / 1e3)]


def _amount(work: Work, units: Sequence[Unit]) -> float:
    return sum(work.get(unit, 0.0) for unit in units)


def _rows(cells: Sequence[Cell], known: Sequence[int], unit: Unit) -> int:
    """Rows of the table that is searched; 0 if there is none, or the cells' tables differ."""
    rows = {cells[number].rows for number in known if cells[number].values.get("searched")}
    return rows.pop() if unit == "value searched" and len(rows) == 1 else 0


def _floor(cell: Cell, unit: Unit) -> float | None:
    """What the cipher alone costs for one page, µs."""
    ways: dict[str, Way] = {"page read": "open", "page written": "seal"}
    pages = _pages(cell.enciphered)
    if unit not in ways or pages is None:
        return None
    cost = cell.floor.get(pages.work.key(ways[unit]))
    return None if cost is None else cost * pages.work.unit / 1e3


# ── openings ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _openings(
    cells: Sequence[Cell], numbers: Sequence[int], sessions: Sequence[BySession], starts: Sequence[Starts]
) -> Iterator[UnitCost]:
    """What opening costs: the CPU time of operations that open the database, or else how much longer a start takes."""
    first = cells[numbers[0]]
    if first.layer != "rest":
        return
    end = _end([first])
    if first.embedded and (opening_cost := _by_connections(cells, numbers, sessions)) is not None:
        us, known, worst = opening_cost
        yield UnitCost(
            first.engine,
            first.mechanism,
            end,
            "opening",
            us,
            known,
            [_opened(cells[number]) for number in known],
            worst=worst,
        )
    elif (longer := _by_starts([starts[number] for number in numbers] if starts else [])) is not None:
        yield UnitCost(first.engine, first.mechanism, end, "opening", longer, list(numbers), measure="time")


def _by_connections(
    cells: Sequence[Cell], numbers: Sequence[int], sessions: Sequence[BySession]
) -> tuple[Part, list[int], float] | None:
    opened = {number: _opened(cells[number]) for number in numbers if "client_cpu" in cells[number].added}
    known = [number for number, connections in opened.items() if connections >= OPENS]
    session_values = [sessions[number].get("client_cpu", {}) for number in known] if sessions else []
    design = np.array([[opened[number]] for number in known]).reshape(-1, 1)
    fitted = least_squares.fit(design, [cells[number].added["client_cpu"] for number in known], session_values)
    return (fitted.causes[0], known, fitted.worst) if fitted is not None else None


def _opened(cell: Cell) -> float:
    """Connections per operation: each opens the database, with its key."""
    plain = cell.arms.get("plain", {})
    return plain.get("connects", 0) / plain["operations"] if plain.get("operations") else 0.0


def _by_starts(starts: Sequence[Starts]) -> Part | None:
    """How much longer an encrypted server takes to its first answer, µs: mean over sessions, with its t interval. None: fewer than two sessions."""
    longer: dict[int, list[float]] = {}
    for cell_starts in starts:
        for session, (plain, encrypted) in cell_starts.items():
            longer.setdefault(session, []).append(1e6 * (encrypted - plain))
    if len(longer) < 2:
        return None
    values = np.array([float(np.mean(times)) for times in longer.values()])
    error = statistics.t_error(values)
    mean, half = float(values.mean()), error.standard * student_t.quantile(0.975, error.nu)
    return Part(mean, mean - half, mean + half)
