"""Constants that METHODOLOGY.md names are those of the code."""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path

import pytest

from ciphercost.estimate import (
    disturbance,
    imported_copies,
    latency_ratios,
    model_error,
    objective_all,
    objective_curve,
    objective_search,
    prediction,
    rare,
    statistics,
    steadiness,
    student_t,
    tally,
    totals,
)
from ciphercost.estimate import warnings as of_estimate
from ciphercost.measure import cell_measurement
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import latency_objective, schedule
from ciphercost.report import compare_pair, objective_text

METHOD = Path(__file__).parents[2] / "METHODOLOGY.md"


@cache
def text() -> str:
    return re.sub(r"\s+", " ", METHOD.read_text())


def percent(share: float) -> str:
    return f"{100 * share:.10g} %"


def warm_up(share: float) -> schedule.Budget:
    """The budget of a run so long, or so short, that one of the warm-up's two limits counts."""
    cell = CellSpec(engine="sqlite", mechanism="sqlcipher", workload="point-select")
    return schedule.budget(Spec(cells=[cell], time=share, sessions=8), cell)


LONG, SHORT = warm_up(10_000.0), warm_up(1.0)
WORDS = {2: "two", 4: "four", 8: "eight"}

SENTENCES = {
    "usual error of a model of costs": f"with a usual τ of {percent(model_error.USUAL)}, which counts as {model_error.SERVERS} degrees of freedom",
    "interval without cells to spare": f"at least ±{100 * student_t.quantile(0.975, model_error.SERVERS) * model_error.USUAL:.0f} % of what",
    "size of a guess": f"beyond {({2.0: 'twice'})[prediction.BEYOND]} the largest",
    "latency": f"({percent(schedule.LATENCY)} of the time, {percent(schedule.LATENCY_AT_REST)} at rest, unless",
    "pilot": f"(8 % of the time, at most {LONG.pilot_s:g} s, once per cell)",
    "warm-up's share": f"({percent(LONG.warmup_s * 8 / (10_000 - LONG.pilot_s))} of the rest, in each session)",
    "warm-up's limit": f"after {WORDS[round(LONG.warmup_limit_s / LONG.warmup_s)]} times the planned warm-up, and at least {SHORT.warmup_limit_s:g} s",
    "discarded edge": f"Its first {percent(schedule.DISCARD)} is not counted",
    "lead-in": f"so it is short: {({0.5: 'half'})[schedule.LEAD_IN]} the length of a counted slice",
    "operations of a slice": f"A slice must hold {schedule.LEAST_OPERATIONS} counted operations",
    "blocks of a session": f"a session must have room for {schedule.MIN_BLOCKS} blocks ({schedule.LEAST_BLOCKS_QUICK} in quick mode)",
    "slow kinds": f"a slice is {schedule.SLOWEST_FIT:g} times as long as the slowest kind if a session has "
    f"room for {schedule.MIN_BLOCKS} such blocks, and at least {schedule.SLOWEST_LEAST:g} times",
    "precision": f"not before {schedule.LEAST_BLOCKS_QUICK} blocks (quick) or {schedule.LEAST_SESSIONS_PRECISE} sessions (full)",
    "degrees of freedom": f"keeps the {schedule.LEAST_SESSIONS - 1} degrees of freedom of its first {WORDS[schedule.LEAST_SESSIONS]} sessions",
    "few sessions": f"It needs two sessions and warns below {WORDS[schedule.LEAST_SESSIONS]}",
    "repeats": f"in a session of full mode, the slice length doubles (up to {schedule.CANDIDATES[-1]:g} "
    f"s) and the session is repeated, at most {cell_measurement.MAX_REPEATS} times",
    "carry-over's level": f"The test is a t test over blocks at the {percent(statistics.CARRYOVER_ALPHA)} level",
    "cosines": f"ν = max({statistics.LEAST_COSINES}, 0.4·n^⅔) cosines",
    "most correlation": f"corrected for the bias of short series and at most {statistics.MOST_CORRELATION:g}",
    "margin": f"within ± m (default: {percent(Spec(cells=[]).margin)}): two one-sided tests at {percent(statistics.ALPHA)}",
    "totals": f"Ratios that differ by less than {percent(of_estimate.DISAGREE)} count as equal",
    "totals' level": f"**`totals-disagree`** is a test at {percent(totals.ALPHA)}",
    "far": f"({ {3.0: 'three'}[totals.FAR] } robust standard deviations)",
    "jackknife": f"with more than {latency_ratios.RESAMPLED} sessions, there is no jackknife",
    "quantile of blocks": f"only if the median block has {tally.ENOUGH}/(1 − q) requests",
    "quantile of sessions": f"This needs {tally.ENOUGH_OF_A_SESSION}/(1 − q) requests per session and arm",
    "late": f"If more than {percent(of_estimate.LATE)} of requests began over 1 ms late",
    "rare events": f"**A ratio of such a counter needs {rare.LEAST_EVENTS} in each arm**, and {rare.LEAST_COUNTED} events counted",
    "step": f"The step is {objective_search.STEP:g} · F / s",
    "step's score": f"reaches {objective_search.STEP:g} of the highest score, and the curve itself {math.tanh(objective_search.STEP):.2f}",
    "longest step": f"It is at most {percent(objective_search.MOST_STEP)} of the rate",
    "bracket": f"until both are narrower than {percent(objective_search.BRACKET - 1)}",
    "groups": f"taken together in about {objective_curve.GROUPS} groups",
    "prior": f"s the slope, with a prior of {objective_curve.USUAL_SLOPE:g}",
    "farthest": f"than the logarithm of {math.exp(objective_curve.FARTHEST):.0f}",
    "stalled": f"A block has stalled if these are more than {objective_all.STALLED:g} of what the",
    "watched": f"seconds that each arm was watched ÷ {objective_text.OFTEN}",
    "above": f"up to {percent(objective_all.ABOVE)} above them",
    "wanted": f"long enough for {latency_objective.WANTED} slow requests in each arm of a block",
    "trend's margin": f"(the largest of the runs' own, by default {percent(Spec(cells=[]).margin)})",
    "trend's level": f"if at most {percent(statistics.ALPHA)} of random orders",
    "quick pairs": f"If one of two runs is a quick run, they must differ at {percent(compare_pair.QUICK_ALPHA)} instead of {percent(statistics.ALPHA)}",
    "copies": f"That needs {imported_copies.SURE_DIGITS} digits, or fewer where chance is expected to "
    f"produce less than {percent(imported_copies.EXPECTED)} as many such pairs as there are",
    "coarse copies": f"Where s is unknown, it needs {imported_copies.COARSE_DIGITS} digits",
    "disturbed unevenly": f"differ by {100 * disturbance.GAP:g} points or more, and in more blocks than a "
    f"fair coin would explain (sign test over blocks, {percent(disturbance.ALPHA)})",
    "change's level": f"It needs p < {percent(steadiness.ALPHA)} and a change of the ratio by {percent(steadiness.SMALLEST)} or more",
    "change over blocks": f"(quick mode; {steadiness.LEAST_BLOCKS} or more, at least {steadiness.LEAST_SIDE} on either side)",
    "change's orders": f"against {steadiness.ORDERS:,} random orders",
    "change, many blocks": f"More than {steadiness.MOST_BLOCKS} blocks are taken together",
    "change over sessions": f"({steadiness.LEAST_SESSIONS} or more, at least {steadiness.LEAST_SESSIONS_SIDE} on either side)",
}  # fmt: skip


@pytest.mark.parametrize("name", SENTENCES)
def test_a_constant_of_the_text_is_that_of_the_code(name: str) -> None:
    assert SENTENCES[name] in text()
