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


def report(own: Described, study: StudyResult, cells: Sequence[Cell] = ()) -> Report:
    """The parts that every report renders: verdict, its table, the study's own tables, how they were measured, and the findings.

    `cells`: those of the same run; if they were disturbed, the verdict says so.
    """
    judged = own.judged(study)
    return Report(
        title=study.title,
        verdict=" ".join(filter(None, (f"{agreement.counted(judged)}.", agreement.unreliable(cells)))),
        compared=agreement.compared(judged, study.published_server, study.server),
        sheets=[*compared(judged, own.caveat(study)), *own.sheets(study)],
        method=[f"the same procedure here: {study.procedure}", *own.method(study)],
        findings=study.findings,
        sources=printed_in(study, own.sources),
    )


def printed_in(study: StudyResult, known: Mapping[str, str]) -> list[tuple[str, str]]:
    """The published tables and figures behind the numbers, in the study's order, and what each holds."""
    named = dict.fromkeys(each.source for each in study.figures if each.source and each.published is not None)
    return [(name, known[name]) for name in known if name in named] + [
        (name, "") for name in named if name not in known
    ]


def label(figure: StudyFigure, judged: Judged) -> str:
    """What distinguishes one of these costs from the others: its operation or server, its figure, or both."""
    figures = {each.figure for each in judged.figures}
    if len(figures) > 1 and len(figures) == len(judged.figures):
        return figure.figure
    return ", ".join(filter(None, (figure.figure if len(figures) > 1 else "", place(figure, judged))))


def place(figure: StudyFigure, judged: Judged) -> str:
    """The operation or server of a cost."""
    return what(figure, several=len({each.operation for each in judged.figures}) > 1)


def what(figure: StudyFigure, several: bool) -> str:
    """`insert`, or in a study of several servers `firebird aes-ofb-128`; with the operation if there are several."""
    server = f"{figure.engine} {figure.mechanism}".strip()
    return ", ".join(filter(None, (server, figure.operation if several or not server else "")))


def compared(judged: Judged, caveat: str) -> Iterator[Sheet]:
    """The published costs beside ours, whether they agree, and the criterion below."""
    figures = dict.fromkeys(each.figure for each in judged.figures)
    # If each figure has one cost, its name is the row's.
    single = len(figures) > 1 and len(figures) == len(judged.figures)
    rows: list[tuple[str, ...]] = []
    for figure in figures:
        if len(figures) > 1 and not single:
            rows.append((figure,))
        rows += [
            (
                figure if single else place(each, judged),
                cite(claimed(each), each) if each.published is not None else NOT_PUBLISHED,
                change(each.here, each.figure),
                with_interval(each),
                agreement.SHORT[judged.of(each)],
            )
            for each in judged.figures
            if each.figure == figure
        ]
    if rows:
        title = f"What {judged.changed} changed"
        if len(figures) == 1:
            title += f": {next(iter(figures))}"
        head = ("", "as\npublished", "the same\nhere", "our method\n(95 %)", "published\ncost")
        yield Sheet(title, head, rows, " ".join(filter(None, (judged.criterion, caveat, agreement.ALONE))))


def sheets(study: StudyResult) -> Iterator[Sheet]:
    """Every operation's figures: both arms' levels, then the cost if there is one."""
    rows: list[tuple[str, ...]] = []
    for operation in dict.fromkeys(each.operation for each in study.figures):
        rows.append((operation,))
        own = [each for each in study.figures if each.operation == operation]
        for figure in dict.fromkeys(each.figure for each in own):
            rows += figure_rows([each for each in own if each.figure == figure])
    head = (
        "\nplain → encrypted",
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
    own = [each for each in study.figures if each.figure == figure]
    repeated = any(each.here is not None for each in own)
    names = dict.fromkeys(each.operation for each in own)
    for operation in dict.fromkeys(name.partition(", ")[0] for name in names):
        rows.append((operation,))
        for name in (each for each in names if each.partition(", ")[0] == operation):
            by_arm = {each.arm: each for each in own if each.operation == name}
            here = (pair([by_arm[arm].here for arm in what]) or "-",) if repeated else ()
            ours = pair([by_arm[arm].ours for arm in ARMS]) or "-"
            rows.append((name.partition(", ")[2], *here, ours, with_interval(by_arm["cost"])))
    again = (f"the same here\n{of}, {' → '.join(what)}",) if repeated else ()
    return Sheet(title, ("", *again, f"our method\n{of}, plain → encrypted", "encryption costs\n(95 %)"), rows)


def figure_rows(figures: list[StudyFigure]) -> Iterator[tuple[str, ...]]:
    """Rows of one figure of one operation."""
    by_arm = {each.arm: each for each in figures}
    levels = [by_arm[arm] for arm in ARMS]
    unit = levels[0].unit
    bare = levels[0].figure.startswith("%") or unit in ("", COUNT)
    yield (
        levels[0].figure if bare else f"{levels[0].figure}, {unit}",
        cite(pair([each.published for each in levels], unit), *levels) or NOT_PUBLISHED,
        pair([each.here for each in levels], unit) or "-",
        pair([each.ours for each in levels], unit) or "-",
    )
    if cost := by_arm.get("cost"):
        yield (
            "encryption costs",
            cite(claimed(cost), cost),
            change(cost.here, cost.figure),
            with_interval(cost),
        )


def pair(levels: list[float | None], unit: str = "") -> str:
    """`31.49 → 31.92`, or empty if neither arm's level is known."""
    if all(each is None for each in levels):
        return ""
    return " → ".join("-" if each is None else level(each, unit) for each in levels)


def level(value: float, unit: str = "") -> str:
    """Four digits, like the published tables, and at most two decimal places."""
    if value >= 1000 or unit == COUNT:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 100 else f"{value:.2f}"
