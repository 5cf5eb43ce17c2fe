"""The interval of the ratio of capacities keeps its coverage on simulated queues. The limits are those of METHODOLOGY.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pytest

from ciphercost.estimate import objective_all
from ciphercost.estimate.objective_answers import STEADY
from ciphercost.estimate.objective_capacity import Capacities
from ciphercost.estimate.objective_curve import Tried
from ciphercost.estimate.objective_search import Search
from ciphercost.model.spec import ARMS, Arm, Mode
from ciphercost.plan import latency_objective, schedule
from ciphercost.plan.latency_objective import Objective

Record = Callable[[str, object], None]
P90 = latency_objective.parse("p90=5ms")
SERVICE: dict[Arm, float] = {"plain": 2000.0, "encrypted": 2000.0 / 1.1}
"""Operations per second of each arm's server without a queue; service times are exponential."""
TRUTH: dict[Arm, float] = {arm: rate - math.log(10) / P90.seconds for arm, rate in SERVICE.items()}
USUAL = 0.1
RUNS = 120


class Noise(NamedTuple):
    """What a shared machine does to servers."""

    drift: float = 0.0
    """Standard deviation of the logarithm of both arms' service rates, which follow an autoregression from block to block."""
    per_slice: float = 0.0
    """The same of each slice for itself."""
    stalls: float = 0.0
    """Stalls per second."""
    stall_s: float = 0.015
    """Their mean length."""


QUIET, NOISY = Noise(), Noise(0.06, 0.04, 0.15)
REMEMBERED = 0.8


def slow(
    random: np.random.Generator, service: float, rate: float, length: float, of: Objective, noise: Noise
) -> tuple[list[float], float]:
    """(slow, late and later requests, all requests) of two slices on M/M/1, each from an empty queue (Lindley's recursion)."""
    limits = (of.seconds, *map(of.exceeded, objective_all.TIMES_RARER))
    late, done, due = [0.0] * len(limits), 0, 2 * (1 - schedule.DISCARD) * length * rate
    for _ in range(2):
        count = random.poisson(rate * length)
        arrivals = np.sort(random.random(count)) * length
        work = random.exponential(1 / (service * math.exp(random.normal(0, noise.per_slice))), count)
        if count:
            stalls = random.integers(0, count, random.poisson(noise.stalls * length))
            np.add.at(work, stalls, random.exponential(noise.stall_s, len(stalls)))
        before = np.cumsum(work) - work
        ends = before + work + np.maximum.accumulate(arrivals - before)
        counted = (ends >= schedule.DISCARD * length) & (ends < length)
        done += int(counted.sum())
        late = [
            so_far + float((ends - arrivals > limit)[counted].sum()) for so_far, limit in zip(late, limits, strict=True)
        ]
    lost = max(0.0, due - done - STEADY * math.sqrt(due))
    return [exceeding + lost for exceeding in late], done + lost


def run(
    random: np.random.Generator,
    sessions: int,
    session_s: float,
    sd: float,
    *,
    of: Objective = P90,
    services: Mapping[Arm, float] = SERVICE,
    usual: float = USUAL,
    noise: Noise = QUIET,
    encrypted_noise: Noise | None = None,
) -> Capacities:
    """A whole search. `sd`: of a log effect that each session has on both arms, and each of them for itself. `encrypted_noise`: the encrypted arm's noise."""
    capacities = Capacities(of)
    lowest = latency_objective.lowest_rate(of, session_s, usual)
    drift = random.normal(0, noise.drift)
    for session in range(1, sessions + 1):
        service = {arm: rate * math.exp(random.normal(0, sd)) for arm, rate in services.items()}
        spent, aimed, block = 0.0, 0, 0
        while True:
            tried = {arm: capacities.arms[arm] for arm in ARMS}
            step = Search(of, tried, services["plain"], lowest, sessions == 1).next(session)
            assert step is not None
            length = max(latency_objective.slice_length(of, rate, session_s, usual) for rate in step.rates.values())
            if spent + schedule.SLICES_A_BLOCK * length > session_s and aimed >= schedule.MIN_BLOCKS:
                break
            drift = REMEMBERED * drift + math.sqrt(1 - REMEMBERED**2) * random.normal(0, noise.drift)
            for arm in ARMS:
                rate = service[arm] * math.exp(drift)
                kind = encrypted_noise if encrypted_noise is not None and arm == "encrypted" else noise
                (over, late, later), requests = slow(random, rate, step.rates[arm], length, of, kind)
                capacities.arms[arm].append(
                    Tried(session, block, step.phase, step.rates[arm], over, requests, length, late, later)
                )
            spent, aimed, block = (
                spent + schedule.SLICES_A_BLOCK * length,
                aimed + (step.phase == "objective"),
                block + 1,
            )
    return capacities


@pytest.mark.parametrize(
    ("mode", "sessions", "session_s", "sd", "least"),
    [("full", 8, 18.0, 0.0, 0.90), ("full", 8, 18.0, 0.01, 0.90), ("quick", 1, 144.0, 0.0, 0.88)],
)
def test_the_interval_covers_and_capacities_are_unbiased(
    mode: Mode, sessions: int, session_s: float, sd: float, least: float, record_property: Record
) -> None:
    random = np.random.default_rng(1)
    truth = math.log(TRUTH["encrypted"] / TRUTH["plain"])
    covered, errors, levels, halves, without = 0, [], [], [], 0
    for _ in range(RUNS):
        capacities = run(random, sessions, session_s, sd)
        interval = capacities.interval(mode)
        if interval is None:
            without += 1
            continue
        low, high = interval.bounds()
        covered += low <= truth <= high
        errors.append(interval.centre - truth)
        halves.append((high - low) / 2)
        levels.append([math.log(capacities.levels(mode)[arm] / TRUTH[arm]) for arm in ARMS])
    summary = (
        f"{mode}, {sessions} sessions, session effects {sd:.1%}: coverage {covered / (RUNS - without):.3f}, half-width {np.mean(halves):.4f}, "
        f"bias of the ratio {np.mean(errors):+.4f}, its sd {np.std(errors):.4f}, bias of both capacities {np.round(np.mean(levels, axis=0), 4).tolist()}, "
        f"their sd {np.round(np.std(levels, axis=0), 4).tolist()}, without a ratio {without}"
    )
    record_property("objective", summary)
    print(summary)
    assert without <= 0.01 * RUNS
    assert covered / (RUNS - without) >= least
    assert abs(float(np.mean(errors))) < 0.005
    assert np.abs(np.mean(levels, axis=0)).max() < 0.02


@pytest.mark.parametrize(("mode", "sessions", "session_s"), [("quick", 1, 144.0), ("full", 8, 18.0)])
def test_on_a_noisy_machine_two_equal_arms_seldom_differ(
    mode: Mode, sessions: int, session_s: float, record_property: Record
) -> None:
    """p99 on a server that gets slower and faster and stalls: a few blocks have most of the slow requests, by chance in one of the arms."""
    random = np.random.default_rng(2)
    equal: dict[Arm, float] = dict.fromkeys(ARMS, 4000.0)
    intervals = []
    for _ in range(RUNS):
        capacities = run(
            random,
            sessions,
            session_s,
            0.0,
            of=latency_objective.parse("p99=5ms"),
            services=equal,
            usual=0.3,
            noise=NOISY,
        )
        intervals.append(capacities.interval(mode))
    known = [interval.bounds() for interval in intervals if interval is not None]
    covered = sum(low <= 0 <= high for low, high in known) / len(known)
    summary = f"{mode}, noisy: coverage {covered:.3f}, half-width {np.mean([high - low for low, high in known]) / 2:.4f}, without {RUNS - len(known)}"
    record_property("objective", summary)
    print(summary)
    # Rare stalls of one arm alone can't be told from those of the machine in every run, so some runs give no ratio.
    assert len(known) >= 0.25 * RUNS
    assert covered >= 0.88


P99 = latency_objective.parse("p99=5ms")
EQUAL: dict[Arm, float] = dict.fromkeys(ARMS, 4000.0)


@pytest.mark.parametrize(
    ("mode", "sessions", "session_s", "runs"), [("quick", 1, 144.0, 40), pytest.param("full", 8, 18.0, 40, id="full")]
)
@pytest.mark.parametrize(
    ("noise", "truth"),
    [
        pytest.param(Noise(stalls=0.3), -0.186, id="short"),
        pytest.param(Noise(stalls=0.1, stall_s=0.06), -0.378, id="long"),
    ],
)
def test_stalls_of_one_arm_alone_seldom_get_a_ratio(
    noise: Noise, truth: float, mode: Mode, sessions: int, session_s: float, runs: int, record_property: Record
) -> None:
    """The typical block shows little of them: the ratio was −3 to −7 %, and its interval held 1 in 77 to 88 % of runs."""
    random = np.random.default_rng(3)
    intervals = [
        run(random, sessions, session_s, 0.0, of=P99, services=EQUAL, usual=0.3, encrypted_noise=noise).interval(mode)
        for _ in range(runs)
    ]
    known = [interval.bounds() for interval in intervals if interval is not None]
    wrong = sum(not low <= math.log1p(truth) <= high for low, high in known) / runs
    summary = f"{mode}, stalls {noise.stalls}/s x {noise.stall_s} s in one arm: a ratio in {len(known) / runs:.2f}, wrong in {wrong:.2f}"
    record_property("objective", summary)
    print(summary)
    assert wrong <= 0.15


@pytest.mark.parametrize(("mode", "sessions", "session_s", "runs"), [("quick", 1, 144.0, 40), ("full", 8, 18.0, 40)])
def test_without_stalls_most_runs_keep_their_ratio(
    mode: Mode, sessions: int, session_s: float, runs: int, record_property: Record
) -> None:
    random = np.random.default_rng(4)
    intervals = [
        run(random, sessions, session_s, 0.0, of=P99, services=EQUAL, usual=0.3).interval(mode) for _ in range(runs)
    ]
    share = sum(interval is not None for interval in intervals) / runs
    summary = f"{mode}, no stalls: a ratio in {share:.2f}"
    record_property("objective", summary)
    print(summary)
    assert share >= 0.7
