"""table: a StudyResult -> three columns, 80 wide, and what the published procedure could not have told. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ciphercost.layout import row, wrap
from ciphercost.model import ARMS, StudyFigure, StudyResult
from ciphercost.words import decimals_of_width

LABEL, COLUMN, LAST = 20, 17, 26
NOT_PUBLISHED = "not published"
COUNT = "count"
"""A unit that is none: whole numbers."""


def render(study: StudyResult) -> str:
    """Every operation's figures, how they were come by, and the findings."""
    return "\n".join(_lines(study))


def _lines(study: StudyResult) -> Iterator[str]:
    yield from wrap(study.title)
    yield ""
    yield line("", "as published", "the same here", "our method here")
    yield line("  plain → encrypted", study.published_server, study.server, "(95 % interval)")
    for operation in dict.fromkeys(each.operation for each in study.figures):
        yield operation.upper()
        own = [each for each in study.figures if each.operation == operation]
        for figure in dict.fromkeys(each.figure for each in own):
            yield from rows([each for each in own if each.figure == figure])
    yield ""
    yield from wrap(f"the same procedure here: {study.procedure}")
    yield ""
    yield from findings(study)


def findings(study: StudyResult) -> Iterator[str]:
    yield "What the published procedure could not have told:"
    for finding in study.findings:
        yield from wrap(f"- {finding}", "", "  ")


def rows(figures: list[StudyFigure]) -> Iterator[str]:
    """One figure of one operation: both arms' levels, then the cost where there is one."""
    by_arm = {each.arm: each for each in figures}
    levels = [by_arm[arm] for arm in ARMS]
    unit = levels[0].unit
    bare = levels[0].figure.startswith("%") or unit in ("", COUNT)
    label = f"  {levels[0].figure}" if bare else f"  {levels[0].figure}, {unit}"
    yield line(
        label,
        pair([each.published for each in levels], unit) or NOT_PUBLISHED,
        pair([each.here for each in levels], unit) or "-",
        pair([each.ours for each in levels], unit) or "-",
    )
    if cost := by_arm.get("cost"):
        yield line("  encryption costs", percent(cost.published), percent(cost.here), with_interval(cost))


def line(*parts: str) -> str:
    label, *others, ours = parts
    # Large counts would touch what stands before them.
    published, here = (each if len(each) < COLUMN else each.replace(",", "") for each in others)
    ends = -LABEL - COLUMN, -LABEL - 2 * COLUMN, -LABEL - 2 * COLUMN - LAST
    return "\n".join(row((label, 0), (published, ends[0]), (here, ends[1]), (ours, ends[2])))


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
