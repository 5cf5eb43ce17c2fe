"""The content of the page of `replicate all`. Pure except for the drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ciphercost import studies
from ciphercost.report import together
from ciphercost.report.formats.html._content import AGAIN, Entry
from ciphercost.report.formats.html._figure import Figure, figure
from ciphercost.report.plots import published
from ciphercost.report.together import Outcome
from ciphercost.studies.sheet import Report


class Shown(NamedTuple):
    """One study."""

    name: str
    title: str
    reason: str
    """Why it has no result or an incomplete one."""
    run: str
    report: Report | None
    plots: list[Figure]


class Page(NamedTuple):
    """Everything that the template shows."""

    title: str
    answer: str
    studies: list[Shown]
    command: str
    ended: str
    contents: Sequence[Entry]


def page(outcomes: Sequence[Outcome], name: str, command: str, ended: str) -> Page:
    """The page. `name`: of the whole replication; `command`: the command that started it."""
    shown = [_shown(outcome) for outcome in outcomes]
    contents = [Entry(study.name, study.name) for study in shown]
    contents += [AGAIN] if command else []
    answer = together.summary(outcomes)
    return Page(
        f"Published studies repeated · {name}", answer, shown, command, ended or "cut off before its end", contents
    )


def _shown(outcome: Outcome) -> Shown:
    study = studies.get(outcome.study)
    if outcome.result is None:
        return Shown(outcome.study, study.title, outcome.reason, outcome.run, None, [])
    report = study.report(outcome.result)
    report = report._replace(verdict=" ".join(filter(None, (report.verdict, outcome.unreliable))))
    drawn = [figure(plot) for plot in published.drawn(outcome.result, f"{published.NAME}-{outcome.study}")]
    return Shown(outcome.study, report.title, outcome.reason, outcome.run, report, drawn)
