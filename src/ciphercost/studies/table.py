"""Build a study's report: the verdict, three columns of figures, and what the published procedure could not show. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyFigure, StudyResult
from ciphercost.studies import agreement
from ciphercost.studies.agreement import Judged
from ciphercost.studies.costs import change, claimed, with_interval
from ciphercost.studies.lost import lost
from ciphercost.studies.sheet import Report, Sheet, cite

NOT_PUBLISHED = "not published"
COUNT = "count"
"""Marks whole numbers, which print without a unit."""


class Described(Protocol):
    """The part of `Study` that the report needs."""

    sources: Mapping[str, str]

    def judged(self, result: StudyResult) -> Judged: ...

    def caveat(self, result: StudyResult) -> str: ...

    def sheets(self, result: StudyResult) -> Iterator[Sheet]: ...

    def method(self, result: StudyResult) -> list[str]: ...

    def below_verdict(self, cells: Sequence[Cell]) -> Iterator[Sheet]: ...

    def judged_on(self, result: StudyResult, cells: Sequence[Cell]) -> list[str]: ...


def report(described: Described, study: StudyResult, cells: Sequence[Cell] = ()) -> Report:
    """The parts that every report renders: verdict, its table, the study's own tables, how they were measured, and the findings.

    `cells`: those of the same run; if they were disturbed, the verdict says so.
    """
    judged = described.judged(study)
    verdict = (f"{agreement.counted(judged)}.", *described.judged_on(study, cells), agreement.unreliable(cells))
    return Report(
        title=study.title,
        verdict=" ".join(filter(None, verdict)),
        compared=agreement.compared(judged, study.published_server, study.server),
        sheets=[
            *compared(judged, described.caveat(study)),
            *described.below_verdict(cells),
            *described.sheets(study),
        ],
        method=[f"the same procedure here: {study.procedure}", *described.method(study)],
        findings=study.findings,
        sources=printed_in(study, described.sources),
        lost=lost(cells, study) if cells else "",
    )


def printed_in(study: StudyResult, known: Mapping[str, str]) -> list[tuple[str, str]]:
    """The published tables and figures behind the numbers, in the study's order, and what each holds."""
    named = dict.fromkeys(figure.source for figure in study.figures if figure.source and figure.published is not None)
    return [(name, known[name]) for name in known if name in named] + [
        (name, "") for name in named if name not in known
    ]


def label(figure: StudyFigure, judged: Judged) -> str:
    """What distinguishes one of these costs from the others: its operation or server, its figure, or both."""
    figures = {cost.figure for cost in judged.figures}
    if len(figures) > 1 and len(figures) == len(judged.figures):
        return figure.figure
    return ", ".join(filter(None, (figure.figure if len(figures) > 1 else "", place(figure, judged))))


def place(figure: StudyFigure, judged: Judged) -> str:
    """The operation or server of a cost."""
    return what(figure, several=len({cost.operation for cost in judged.figures}) > 1)


def what(figure: StudyFigure, several: bool) -> str:
    """`insert`, or in a study of several servers `firebird aes-ofb-128`; with the operation if there are several."""
    server = f"{figure.engine} {figure.mechanism}".strip()
    return ", ".join(filter(None, (server, figure.operation if several or not server else "")))


def compared(judged: Judged, caveat: str) -> Iterator[Sheet]:
    """The published costs beside ours, whether they agree, and the criterion below."""
    figures = dict.fromkeys(cost.figure for cost in judged.figures)
    # If each figure has one cost, its name is the row's.
    single = len(figures) > 1 and len(figures) == len(judged.figures)
    rows: list[tuple[str, ...]] = []
    for figure in figures:
        if len(figures) > 1 and not single:
            rows.append((figure,))
        rows += [
            (
                figure if single else place(cost, judged),
                cite(claimed(cost), cost) if cost.published is not None else NOT_PUBLISHED,
                change(cost.here, cost.figure),
                with_interval(cost),
                agreement.SHORT[judged.of(cost)],
            )
            for cost in judged.figures
            if cost.figure == figure
        ]
    if rows:
        title = f"What {judged.changed} changed"
        if len(figures) == 1:
            title += f": {next(iter(figures))}"
        head = ("", "as\npublished", "the same\nhere", "our method\n(95 %)", "published\ncost")
        yield Sheet(title, head, rows, " ".join(filter(None, (judged.criterion, caveat, agreement.ALONE))))


def sheets(study: StudyResult, arms: str = "plain → encrypted", costs: str = "encryption costs") -> Iterator[Sheet]:
    """Every operation's figures: both arms' levels, then the cost if there is one. `arms`, `costs`: what its arms and costs are called."""
    rows: list[tuple[str, ...]] = []
    for operation in dict.fromkeys(entry.operation for entry in study.figures):
        rows.append((operation,))
        entries = [entry for entry in study.figures if entry.operation == operation]
        for figure in dict.fromkeys(entry.figure for entry in entries):
            rows += figure_rows([entry for entry in entries if entry.figure == figure], costs)
    head = (
        f"\n{arms}",
        f"as published\n{study.published_server}",
        f"the same here\n{study.server}",
        "our method here\n(95 % interval)",
    )
    yield Sheet("Every figure", head, rows)


def by_variant(title: str, study: StudyResult, figure: str, of: str, what: Sequence[str] = ARMS) -> Sheet:
    """One figure by `operation, variant`: a heading for each operation, a row for each variant, and what encryption costs it.

    `of`: the figure in words, in the head. `what`: arms of the procedure here.
    """
    rows: list[tuple[str, ...]] = []
    entries = [entry for entry in study.figures if entry.figure == figure]
    repeated = any(entry.here is not None for entry in entries)
    names = dict.fromkeys(entry.operation for entry in entries)
    for operation in dict.fromkeys(name.partition(", ")[0] for name in names):
        rows.append((operation,))
        for name in (key for key in names if key.partition(", ")[0] == operation):
            by_arm = {entry.arm: entry for entry in entries if entry.operation == name}
            here = (pair([by_arm[arm].here for arm in what]) or "-",) if repeated else ()
            ours = pair([by_arm[arm].ours for arm in ARMS]) or "-"
            rows.append((name.partition(", ")[2], *here, ours, with_interval(by_arm["cost"])))
    again = (f"the same here\n{of}, {' → '.join(what)}",) if repeated else ()
    return Sheet(title, ("", *again, f"our method\n{of}, plain → encrypted", "encryption costs\n(95 %)"), rows)


def figure_rows(figures: list[StudyFigure], costs: str = "encryption costs") -> Iterator[tuple[str, ...]]:
    """Rows of one figure of one operation."""
    by_arm = {figure.arm: figure for figure in figures}
    levels = [by_arm[arm] for arm in ARMS]
    unit = levels[0].unit
    bare = levels[0].figure.startswith("%") or unit in ("", COUNT)
    yield (
        levels[0].figure if bare else f"{levels[0].figure}, {unit}",
        cite(pair([arm_level.published for arm_level in levels], unit), *levels) or NOT_PUBLISHED,
        pair([arm_level.here for arm_level in levels], unit) or "-",
        pair([arm_level.ours for arm_level in levels], unit) or "-",
    )
    if cost := by_arm.get("cost"):
        yield (
            costs,
            cite(claimed(cost), cost),
            change(cost.here, cost.figure),
            with_interval(cost),
        )


def cited_claim(cost: StudyFigure) -> str:
    """A published cost with its source."""
    return cite(claimed(cost), cost)


def pair(levels: list[float | None], unit: str = "") -> str:
    """`31.49 → 31.92`, or empty if neither arm's level is known."""
    if all(value is None for value in levels):
        return ""
    return " → ".join("-" if value is None else level(value, unit) for value in levels)


def level(value: float, unit: str = "") -> str:
    """Four digits, like the published tables, and at most two decimal places."""
    if value >= 1000 or unit == COUNT:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 100 else f"{value:.2f}"
