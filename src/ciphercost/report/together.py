"""Several repeated studies side by side, as rows and as one text page. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

import msgspec

from ciphercost import studies
from ciphercost.model.study import Bound, StudyFigure, StudyResult
from ciphercost.report.layout import row, wrap
from ciphercost.studies import agreement, catalogue
from ciphercost.studies.costs import change, claimed, with_interval
from ciphercost.studies.table import NOT_PUBLISHED, what


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of one study."""

    study: str
    result: StudyResult | None = None
    """None: no result yet."""
    reason: str = ""
    """Why it has no result or an incomplete one."""
    run: str = ""
    """The directory of its run, relative to that of all studies."""
    unreliable: str = ""
    """Why its verdict can't be relied on."""


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """What encryption does to one figure of a study, as ratios, encrypted ÷ plain. None: not published, or not measured."""

    study: str
    what: str
    """Which operation, file or server."""
    figure: str
    published: float | None = None
    here: float | None = None
    """By the published procedure on this machine."""
    ours: float | None = None
    low: float | None = None
    high: float | None = None
    """95 % interval of `ours`."""
    source: str = ""
    """Where the publication prints it."""
    bound: Bound = ""
    """How `published` limits the figure, if it is a limit."""


def rows(outcomes: Sequence[Outcome]) -> list[Row]:
    """The headline figures of every study, in the order of the studies."""
    return [study_row for outcome in outcomes if outcome.result is not None for study_row in rows_of(outcome.result)]


def rows_of(result: StudyResult) -> list[Row]:
    """One study's headline figure for each operation."""
    shown = studies.get(result.study).headline(result)
    several = len({study_figure.operation for study_figure in shown}) > 1
    return [
        Row(
            result.study,
            what(study_figure, several),
            study_figure.figure,
            study_figure.published,
            study_figure.here,
            study_figure.ours,
            study_figure.low,
            study_figure.high,
            study_figure.source if study_figure.published is not None else "",
            study_figure.bound,
        )
        for study_figure in shown
    ]


def summary(outcomes: Sequence[Outcome]) -> str:
    """One sentence: how many studies were replicated in direction and size, in direction only, and so on."""
    counts: dict[str, int] = {}
    for outcome in outcomes:
        verdict = "without a result"
        if outcome.result is not None:
            head = agreement.head(studies.get(outcome.study).judged(outcome.result))
            verdict = (head[0].lower() + head[1:]).removeprefix("direction and size ")
        counts[verdict] = counts.get(verdict, 0) + 1
    several = f"{len(outcomes)} published stud{'y' if len(outcomes) == 1 else 'ies'}"
    return f"{several}: {'; '.join(f'{count} {verdict}' for verdict, count in counts.items())}."


def page(outcomes: Sequence[Outcome]) -> str:
    """Every study, as published and as measured here, as text 80 columns wide."""
    return "\n".join(_lines(outcomes))


def _lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield from wrap(summary(outcomes))
    yield ""
    yield "What encryption changed, as published and measured here"
    yield from _columns("", "as published", "the same here", "our method here (95 %)")
    for outcome in outcomes:
        yield ""
        yield from wrap(
            f"{outcome.study}: {outcome.result.title if outcome.result else catalogue.entry(outcome.study).title}"
        )
        if outcome.reason:
            yield from wrap(f"! {outcome.reason}", "  ", "    ")
        if outcome.result is not None:
            yield from _study(outcome.result, outcome.unreliable)
        if outcome.run:
            yield from wrap(f"details: ciphercost report {shlex.quote(str(outcome.run))}", "  ")


def _study(result: StudyResult, unreliable: str) -> Iterator[str]:
    study_rows = rows_of(result)
    verdict = f"{agreement.counted(studies.get(result.study).judged(result))}."
    yield from wrap(" ".join(filter(None, (verdict, unreliable))), "  ", "    ")
    yield from wrap(f"published on {result.published_server}; here {result.server}", "  ")
    for figure in dict.fromkeys(study_row.figure for study_row in study_rows):
        printed = dict.fromkeys(
            study_row.source for study_row in study_rows if study_row.figure == figure and study_row.source
        )
        where = f" (published: {', '.join(printed)})" if printed else ""
        yield from wrap(f"{figure}, encrypted compared with plain{where}", "  ", "    ")
        for study_row in (one for one in study_rows if one.figure == figure):
            ours = StudyFigure(
                "",
                figure,
                "",
                "cost",
                study_row.published,
                None,
                study_row.ours,
                study_row.low,
                study_row.high,
                bound=study_row.bound,
            )
            published = claimed(ours) if study_row.published is not None else NOT_PUBLISHED
            yield from _columns(study_row.what, published, change(study_row.here, figure), with_interval(ours))


NAME = 22


def _columns(name: str, published: str, here: str, ours: str) -> list[str]:
    columns = [(published, -38), (here, -53), (ours, -80)]
    if len(name) <= NAME:
        return row((f"    {name}" if name else "", 0), *columns)
    return [*wrap(name, "    ", "      "), *row(*columns)]
