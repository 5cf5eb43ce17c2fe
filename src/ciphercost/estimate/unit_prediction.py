"""What encryption at rest or in columns adds to an operation of a server that handles so many pages or values a second. Pure.

The costs of pages, log and values are those of `unit_costs`. What an operation itself costs does not matter, only its share of this work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ciphercost.estimate import least_squares
from ciphercost.estimate.notation import number
from ciphercost.model.prediction import UNIT_OPTIONS, Load
from ciphercost.model.result import Part, Result, Unit, UnitCost

TOGETHER: Mapping[Unit, tuple[Unit, ...]] = {
    "page": ("page read", "page written"),
    "value": ("value sealed", "value opened", "value searched"),
}
"""Units that a fit takes together where its cells can't tell them apart."""
FAR = 5.0
"""Times what a cipher alone costs, from which a cost is doubted."""
LOG: Unit = "kilobyte of log"
WHOLE: tuple[Unit, ...] = (*TOGETHER, "kilobyte")
"""Units of which a load says only what they consist of."""


def asks(unit: Unit) -> list[str]:
    """The options that tell how many of these a server handles."""
    if unit == "kilobyte":
        return [UNIT_OPTIONS[part] for part in (*TOGETHER["page"], LOG)]
    return [UNIT_OPTIONS[part] for part in TOGETHER.get(unit, (unit,)) if part in UNIT_OPTIONS]


class Fit(NamedTuple):
    """Costs that were fitted together, and what opening a database costs if its CPU time was measured."""

    costs: Sequence[UnitCost]
    opening: UnitCost | None

    @property
    def first(self) -> UnitCost:
        return self.costs[0]


class Added(NamedTuple):
    """What an operation has more, µs."""

    whole: Part
    by_unit: dict[str, float]
    notes: list[str]


def fits(costs: Sequence[UnitCost]) -> list[Fit]:
    """The costs of a result, by fit."""
    groups: list[list[UnitCost]] = []
    for cost in costs:
        if cost.unit == "opening":
            continue
        if groups and _alike(groups[-1][0], cost) and groups[-1][0].cells == cost.cells:
            groups[-1].append(cost)
        else:
            groups.append([cost])
    openings = [cost for cost in costs if cost.unit == "opening" and cost.measure == "cpu"]
    return [Fit(group, next((opening for opening in openings if _alike(group[0], opening)), None)) for group in groups]


def _alike(one: UnitCost, other: UnitCost) -> bool:
    return (one.engine, one.mechanism, one.end) == (other.engine, other.mechanism, other.end)


def unmeasured(fit: Fit, load: Load) -> list[Unit]:
    """Units of the load that this fit has no cost of."""
    known = {cost.unit for cost in fit.costs}
    covered = known | {part for whole in known for part in TOGETHER.get(whole, ())}
    if "kilobyte" in known:
        covered |= {*TOGETHER["page"], LOG}
    return [unit for unit, rate in load.units.items() if rate and unit not in covered]


def of(fit: Fit, result: Result, load: Load) -> Added:
    """What this load adds. `unmeasured` is empty."""
    notes: list[str] = []
    work: dict[Unit, float] = {unit: rate / load.rate for unit, rate in load.units.items()}
    page = _page(fit, result)
    known = {cost.unit: cost for cost in fit.costs}
    if LOG in known and LOG not in work:
        work[LOG] = work.get("page written", 0.0) * _log_per_page(fit)
        notes.append(
            f"{number(work[LOG] * load.rate)} KB of log a second is taken, as the measured workloads write with so many pages; "
            f"{UNIT_OPTIONS[LOG]} changes that"
        )
    if page and any(unit in work for unit in TOGETHER["page"]):
        notes.append(f"a page is taken to have {number(page)} bytes, as measured")
    searched = known.get("value searched")
    if searched is not None and searched.rows and work.get("value searched"):
        notes.append(
            f"a search is taken to be in a table of {searched.rows:,} rows; without an index it opens every row, so a larger table costs more"
        )
    notes += _doubts(fit)
    counts = [_count(cost.unit, work, page) for cost in fit.costs]
    whole = least_squares.together([cost.us for cost in fit.costs], counts, fit.first.error, fit.first.scatter)
    by_unit: dict[str, float] = {
        cost.unit: cost.us.value * count for cost, count in zip(fit.costs, counts, strict=True)
    }
    if load.connections and fit.opening is not None:
        opening, times = fit.opening.us, load.connections / load.rate
        whole = Part(
            whole.value + times * opening.value, whole.low + times * opening.low, whole.high + times * opening.high
        )
        by_unit["opening"] = times * opening.value
    if fit.first.end == "client":
        notes.append("the application encrypts, so this CPU time is the application's and not the server's")
    return Added(whole, by_unit, notes)


def _doubts(fit: Fit) -> Iterator[str]:
    """What makes a cost of the fit hard to believe: a unit can't cost less than nothing, nor many times what its cipher alone does."""
    for cost in fit.costs:
        if cost.us.value < 0:
            yield f"by the fit a {cost.unit} costs less than nothing, so its cells do not tell the costs apart; measure longer, on a quiet machine"
        elif cost.floor_us and cost.us.value > FAR * cost.floor_us:
            yield (
                f"by the fit a {cost.unit} costs {cost.us.value / cost.floor_us:.0f} times what its cipher alone does, so something else differs "
                "between its cells; measure longer, on a quiet machine"
            )


def _count(unit: Unit, work: Mapping[Unit, float], page: int) -> float:
    if unit == "kilobyte":
        return sum(work.get(part, 0.0) for part in TOGETHER["page"]) * page / 1e3 + work.get(LOG, 0.0)
    return sum(work.get(part, 0.0) for part in TOGETHER.get(unit, (unit,)))


def _page(fit: Fit, result: Result) -> int:
    """Bytes of a page; 0: the fit has none."""
    for cell in (result.cells[place] for place in fit.first.cells):
        for kind, stream in cell.enciphered.streams.items() if cell.enciphered is not None else ():
            if not kind.endswith("log"):
                return stream.page
    return 0


def _log_per_page(fit: Fit) -> float:
    """Kilobytes of log for each page that the fitted cells write."""
    units = {cost.unit: sum(cost.units) for cost in fit.costs}
    written = units.get("page written", units.get("page", 0.0))
    return units[LOG] / written if written else 0.0
