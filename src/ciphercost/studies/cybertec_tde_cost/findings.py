"""What the published table can and can't show, computed from its own figures and from the repetition's scatter. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyRun
from ciphercost.studies import resolution
from ciphercost.studies.costs import bounds
from ciphercost.studies.cybertec_tde_cost import procedure

if TYPE_CHECKING:
    from ciphercost.studies import Study

LARGE = 99.5
Here = Mapping[tuple[str, str], StudyRun]


def findings(study: Study, here: Here, ours: Mapping[str, Cell], names: Sequence[str]) -> list[str]:
    """Findings of a few sentences each, with computed figures."""
    all_findings = [
        study.finding("answer"),
        answer_here(here, names),
        *map(study.finding, ("all-cells", "contradictions", "spread", "clusters")),
        waiting(study, ours),
        *map(study.finding, ("unproven", "stand-in")),
    ]
    return [finding for finding in all_findings if finding]


def answer_here(here: Here, names: Sequence[str]) -> str:
    """The same from the scatter of the runs here."""
    clauses = []
    for name in names:
        groups = [
            [math.log(rate) for rate in here[name, arm].series[procedure.TPS]] for arm in ARMS if (name, arm) in here
        ]
        if (of := resolution.spread(groups)) is None:
            continue
        runs = min(map(len, groups))
        can_show = resolution.resolution(of, runs)
        needed = [resolution.runs_needed(sd) for sd in (of.sd, of.low, of.high)]
        clauses.append(
            f"{name}: runs of the same arm differ by {digits(100 * of.sd)} % (standard deviation), so averages of {runs} show no difference below "
            f"{_percent(can_show)}; for half a per cent {needed[0]:,} runs of each arm are needed ({needed[1]:,} to {needed[2]:,})"
        )
    if not clauses:
        return ""
    verdict = "; ".join(clauses)
    return f"On this machine, with 95 % intervals: {verdict}. That holds for runs that are independent; drift from one arm to the other comes on top."


def _percent(can_show: resolution.Resolution) -> str:
    """`0.55 % (0.36–1.2 %)`."""
    value, low, high = (digits(100 * math.expm1(difference)) for difference in can_show)
    return f"{value} % ({low}–{high} %)"


def digits(value: float) -> str:
    """Two digits, or a whole number from 100 on."""
    return f"{value:.2g}" if value < LARGE else f"{value:,.0f}"


def waiting(study: Study, ours: Mapping[str, Cell]) -> str:
    """What three clients wait for."""
    text = study.finding("waiting")
    clauses = [
        f"{name} {bounds(cost.low, cost.high)}"
        for name, cell in ours.items()
        if (cost := cell.overhead.get("server_cpu_per_op"))
    ]
    return f"{text} The server's CPU time of a transaction here (95 %): {', '.join(clauses)}." if clauses else text
