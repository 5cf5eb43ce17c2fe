"""What the published procedure could not show: `findings.md`, with what its repetition here adds. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import TYPE_CHECKING

from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyRun
from ciphercost.studies.costs import bounds, change, too_wide
from ciphercost.studies.mysql_tls import published

if TYPE_CHECKING:
    from ciphercost.studies import Study

Here = Mapping[tuple[str, str], StudyRun]
FEWEST_ITERATIONS = 2
VERIFIED = {
    "tls": "our method's connections check chain and name.",
    "wire-crypt": "wire-crypt encrypts in TLS's place; it verifies no server either.",
}
"""By the mechanism that encrypted the connections here."""


def findings(study: Study, here: Here, ours: Mapping[str, Cell], mechanism: str) -> list[str]:
    """Findings of one or two sentences each, with computed figures. `mechanism`: what encrypted the connections here."""
    all_findings = [
        intervals(study, here),
        order(study, here, ours),
        f"{study.finding('unproven')} {VERIFIED[mechanism]}",
        one_pass(study, here),
        *map(
            study.finding,
            (
                "sar",
                "averages",
                "blank",
                "maxima",
                "consistently",
                "quoted-averages",
                "edges",
                "system-only",
                "statements",
                "availability",
            ),
        ),
        study.finding("changed") if here else "",
    ]
    return [finding for finding in all_findings if finding]


def intervals(study: Study, here: Here) -> str:
    """Published costs beside the spread of one arm's iterations."""
    text = study.finding("intervals")
    spread = {
        name: max(run.series["seconds"]) / min(run.series["seconds"])
        for name in study.operations
        if (run := here.get((name, "plain"))) and len(run.series["seconds"]) >= FEWEST_ITERATIONS
    }
    if not spread:
        return text
    wide = ", ".join(f"{name} {change(ratio)}" for name, ratio in spread.items())
    return f"{text} Here the slowest unencrypted iteration took, compared with the fastest: {wide}."


def order(study: Study, here: Here, ours: Mapping[str, Cell]) -> str:
    """Operations whose repeated cost lies outside the interval of the interleaved measurement."""
    text, apart = study.finding("in-turns"), []
    for name in study.operations:
        rate = ours[name].overhead.get("throughput") if name in ours else None
        if rate is None or any((name, arm) not in here for arm in ARMS):
            continue
        plain, encrypted = (fmean(here[name, arm].series["seconds"]) for arm in ARMS)
        if too_wide(1 / rate.high, 1 / rate.low):
            continue
        if not 1 / rate.high <= encrypted / plain <= 1 / rate.low:
            apart.append(f"{name} {change(encrypted / plain)}, not {bounds(1 / rate.high, 1 / rate.low)}")
    if not apart:
        return text
    return (
        f"{text} Run here, the published procedure gives a different cost for {'; '.join(apart)}. The order of the arms is one reason; that "
        "later iterations find changed data is another."
    )


def one_pass(study: Study, here: Here) -> str:
    """The CPU tables end after about one published time, whatever the number of iterations."""
    text = study.finding("one-pass")
    if run := here.get(("delete", "plain")):
        seconds = [value * published.QUERIES / run.load["queries"] for value in run.series["seconds"]]
        text += f" Here DELETE's iterations take {', '.join(f'{value:.3g}' for value in seconds)} s for {published.QUERIES:,} queries."
    return text


# ── CPU ───────────────────────────────────────────────────────────────────────────────────────────────────────────────
