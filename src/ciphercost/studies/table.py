"""table: a StudyResult -> its report: whether it was replicated, three columns, and what the published procedure could not have told. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ciphercost import studies
from ciphercost.model import ARMS, StudyFigure, StudyResult
from ciphercost.studies import agreement, sheet
from ciphercost.studies.agreement import Judged
from ciphercost.studies.sheet import Report, Sheet
from ciphercost.words import decimals_of_width

NOT_PUBLISHED = "not published"
COUNT = "count"
"""A unit that is none: whole numbers."""


def render(study: StudyResult) -> str:
    """The whole report as text, 80 columns wide."""
    return sheet.text(report(study))


def report(study: StudyResult) -> Report:
    """What every report renders: the verdict, its table, the study's own tables, how they were measured, and the findings."""
    own = studies.get(study.study)
    judged = own.judged(study)
    compared_with = agreement.compared(judged, study.published_server, study.server)
    return Report(
        title=study.title,
        verdict=f"{agreement.counted(judged)}.",
        criterion=" ".join(filter(None, (compared_with, judged.criterion, own.caveat(study)))),
        sheets=[*compared(judged), *own.sheets(study)],
        method=[f"the same procedure here: {study.procedure}", *own.method(study)],
        findings=study.findings,
    )


def compared(judged: Judged) -> Iterator[Sheet]:
    """The published costs beside ours, and whether they agree."""
    from ciphercost.studies import together

    several = len({each.operation for each in judged.figures}) > 1
    figures = dict.fromkeys(each.figure for each in judged.figures)
    # Where each figure has one cost, its name is the row's.
    single = len(figures) > 1 and len(figures) == len(judged.figures)
    rows: list[tuple[str, ...]] = []
    for figure in figures:
        if len(figures) > 1 and not single:
            rows.append((figure,))
        rows += [
            (
                figure if single else together.what(each, several),
                percent(each.published) if each.published is not None else NOT_PUBLISHED,
                percent(each.here),
                with_interval(each),
                agreement.SHORT[judged.of(each)],
            )
            for each in judged.figures
            if each.figure == figure
        ]
    if rows:
        title = f"What encryption changed: {next(iter(figures))}" if len(figures) == 1 else "What encryption changed"
        yield Sheet(title, ("", "as\npublished", "the same\nhere", "our method\n(95 %)", "published\ncost"), rows)


def sheets(study: StudyResult) -> Iterator[Sheet]:
    """Every operation's figures: both arms' levels, then the cost where there is one."""
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


def figure_rows(figures: list[StudyFigure]) -> Iterator[tuple[str, ...]]:
    """One figure of one operation."""
    by_arm = {each.arm: each for each in figures}
    levels = [by_arm[arm] for arm in ARMS]
    unit = levels[0].unit
    bare = levels[0].figure.startswith("%") or unit in ("", COUNT)
    yield (
        levels[0].figure if bare else f"{levels[0].figure}, {unit}",
        pair([each.published for each in levels], unit) or NOT_PUBLISHED,
        pair([each.here for each in levels], unit) or "-",
        pair([each.ours for each in levels], unit) or "-",
    )
    if cost := by_arm.get("cost"):
        yield "encryption costs", percent(cost.published), percent(cost.here), with_interval(cost)


def pair(levels: list[float | None], unit: str = "") -> str:
    """`31.49 → 31.92`, or nothing where neither arm's level is known."""
    if all(each is None for each in levels):
        return ""
    return " → ".join("-" if each is None else level(each, unit) for each in levels)


def level(value: float, unit: str = "") -> str:
    """Four digits, as the published tables have them, and two after the point at most."""
    if value >= 1000 or unit == COUNT:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def percent(ratio: float | None) -> str:
    return "-" if ratio is None else f"{signed((ratio - 1) * 100, 1)} %"


def with_interval(cost: StudyFigure) -> str:
    """`+1.42 % (+1.1 to +1.8)`, with as many digits as the interval lets one trust."""
    if cost.ours is None or cost.low is None or cost.high is None:
        return percent(cost.ours)
    digits = decimals_of_width((cost.high - cost.low) * 100)
    ratio, low, high = (signed((each - 1) * 100, digits) for each in (cost.ours, cost.low, cost.high))
    return f"{ratio} % ({low} to {high})"


def signed(value: float, digits: int) -> str:
    """`+1.4`, `-0.3`, and never `-0`."""
    text = f"{value:+.{digits}f}"
    return text if text.strip("+-0.") else text.lstrip("+-")
