"""Power, equivalence, and the gain over measuring one arm after the other. The limits are those of METHODOLOGY.md."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

import by_row
import simulate
from ciphercost.estimate import statistics
from ciphercost.estimate.statistics import Floats

Record = Callable[[str, object], None]
RUNS = 10_000


def show(record_property: Record, name: str, value: float, bar: str) -> None:
    record_property(name, round(value, 4))
    print(f"\n{name}: {value:.4f} (bar {bar})", end="")


@pytest.mark.parametrize(("effect", "sd"), [(0.02, 0.01), (0.01, 0.01), (0.02, 0.02)])
def test_a_known_effect_is_detected_with_25_blocks(effect: float, sd: float, record_property: Record) -> None:
    noise = partial(simulate.white, sd=sd)
    values = simulate.experiment(np.random.default_rng(20), noise, RUNS, 25, effect=float(np.log1p(effect))).values
    low, high = by_row.block_bounds(values)  # p < 0.05 exactly if they exclude 0
    power = float(np.mean((low > 0) | (high < 0)))
    show(record_property, f"{effect:.0%} effect, block sd {sd:.0%}, 25 blocks: found", power, "≥ 0.99")
    assert power >= 0.99


@pytest.mark.parametrize(("effect", "least"), [(0.02, 0.99), (0.01, 0.9)])
def test_a_known_effect_is_detected_by_a_short_full_run(effect: float, least: float, record_property: Record) -> None:
    random = np.random.default_rng(26)
    values = simulate.sessions(random, simulate.white, 4000, 8, 4, effect=float(np.log1p(effect)))
    centres = by_row.hodges_lehmann(values.reshape(-1, 4)).reshape(4000, 8)
    power = float(np.mean([statistics.session_interval(row).p_value() < 0.05 for row in centres]))
    show(record_property, f"{effect:.0%} effect, 8 sessions of 4 blocks: found", power, f"≥ {least:g}")
    assert power >= least


def test_mutant_the_textbook_number_of_cosines_misses_small_effects(record_property: Record) -> None:
    noise = partial(simulate.white, sd=0.01)
    values = simulate.experiment(np.random.default_rng(20), noise, RUNS, 25, effect=float(np.log1p(0.01))).values
    power = float(np.mean([with_four_cosines(row).p_value() < 0.05 for row in values]))
    show(record_property, "mutant, ν = 4: 1 % effect, block sd 1 %: found", power, "it must fail: < 0.99")
    assert power < 0.98


def with_four_cosines(row: Floats) -> statistics.Interval:
    errors = (statistics.t_error(row), statistics.cosine_error(row, 4))
    return statistics.Interval(statistics.hodges_lehmann(row), errors, len(row))


@pytest.mark.parametrize(("truth", "least", "most"), [(0.01, 0.0, 0.05), (0.0, 0.99, 1.0)])
def test_equivalence_is_claimed_when_it_is_true_and_only_then(
    truth: float, least: float, most: float, record_property: Record
) -> None:
    random = np.random.default_rng(21)
    values = simulate.experiment(random, simulate.white, RUNS, 25, effect=float(np.log1p(truth))).values
    bound = float(np.log1p(0.01))
    claimed = float(np.mean([statistics.block_interval(row).tost(bound) < 0.05 for row in values]))
    show(record_property, f"equivalent within ±1 %, truth {truth:.0%}", claimed, f"{least:g} to {most:g}")
    assert least <= claimed <= most


def rmse(errors: Floats) -> float:
    return float(np.sqrt(np.mean(errors**2)))


@pytest.mark.parametrize(
    ("scenario", "least"), [("white", 1 / 1.1), ("drift", 5.0), ("correlated", 5.0), ("spikes", 1.0)]
)
def test_interleaving_compared_with_one_arm_after_the_other_in_equal_time(
    scenario: str, least: float, record_property: Record
) -> None:
    random, noise = np.random.default_rng(22), simulate.SCENARIOS[scenario]
    new = by_row.hodges_lehmann(simulate.experiment(random, noise, RUNS, 50).values)
    old = simulate.one_after_the_other(random, noise, RUNS, 50)
    gain = rmse(old) / rmse(new)
    show(record_property, f"error of the old way ÷ ours, {scenario}", gain, f"≥ {least:.2f}")
    assert gain >= least


# ── carry-over ────────────────────────────────────────────────────────────────────────────────────────────────────────


def silence(random: np.random.Generator, rows: int, steps: int) -> Floats:
    return np.zeros((rows, steps))


def bias(memory: float, *, lead_in: bool = True) -> float:
    """Percentage points that a carry-over of 2 % adds to the estimate, without noise."""
    random = np.random.default_rng(23)
    blocks = simulate.experiment(random, silence, 500, 200, debt=0.02, memory=memory, lead_in=lead_in)
    return 100 * float(blocks.values.mean())


@pytest.mark.parametrize("memory", [0.0, 0.2, 0.3])
def test_a_carry_over_of_two_per_cent_hardly_moves_the_estimate(memory: float, record_property: Record) -> None:
    points = abs(bias(memory))
    show(record_property, f"debt 2 %, decay {memory} slices: bias in points", points, "≤ 0.1")
    assert points <= 0.1


def test_mutant_without_lead_ins_carry_over_is_charged_to_the_wrong_arm(record_property: Record) -> None:
    points = abs(bias(0.0, lead_in=False))
    show(record_property, "mutant, no lead-in: bias in points", points, "it must fail: > 0.1")
    assert points > 0.4


@pytest.mark.parametrize("memory", [0.0, 0.3, 0.5, 1.0, 2.0])
def test_the_carry_over_test_fires_and_fires_for_slow_debts_that_lead_ins_do_not_balance(
    memory: float, record_property: Record
) -> None:
    random = np.random.default_rng(24)
    blocks = simulate.experiment(random, simulate.white, 2000, 25, debt=0.02, memory=memory)
    fired = np.mean([statistics.carryover(y, s).significant for y, s in zip(blocks.rates, blocks.signs, strict=True)])
    show(record_property, f"debt 2 %, decay {memory} slices: λ found", float(fired), "≥ 0.95")
    assert fired >= 0.95


@pytest.mark.parametrize(("memory", "gradual"), [(3.0, False), (3.0, True), (5.0, True)])
def test_effects_over_many_slices_are_a_limit_of_the_carry_over_test_and_move_the_estimate_little(
    memory: float, gradual: bool, record_property: Record
) -> None:
    random = np.random.default_rng(27)
    blocks = simulate.experiment(random, simulate.white, 2000, 25, debt=0.02, memory=memory, gradual=gradual)
    fired = np.mean([statistics.carryover(y, s).significant for y, s in zip(blocks.rates, blocks.signs, strict=True)])
    off = 100 * abs(float(blocks.values.mean()))
    name = f"debt 2 %, {'built up and ' if gradual else ''}decaying over {memory:g} slices"
    show(record_property, f"{name}: λ found", float(fired), "none: a limit")
    show(record_property, f"{name}: bias in points", off, "≤ 0.4: a limit")
    assert fired < 0.95
    assert off <= 0.4


def test_a_gradual_carry_over_is_complete_only_after_many_slices() -> None:
    signs = np.array([[1.0, -1.0]])
    paid = simulate.debts(signs, 3.0, lead_in=True, gradual=True)[0]
    step, half = 1 - np.exp(-1 / 3), 1 - np.exp(-1 / 6)
    assert paid[0].tolist() == pytest.approx([0, 0, step, step * (1 - step) + step])
    before = (step * (1 - step) + step) * (1 - step)
    assert paid[1, 0] == pytest.approx(before * (1 - half) + half)
    assert (paid < 1).all()


@pytest.mark.parametrize("scenario", simulate.SCENARIOS)
def test_the_carry_over_test_stays_silent_without_carry_over(scenario: str, record_property: Record) -> None:
    blocks = simulate.experiment(np.random.default_rng(25), simulate.SCENARIOS[scenario], 2000, 25, effect=-0.1)
    fired = np.mean([statistics.carryover(y, s).significant for y, s in zip(blocks.rates, blocks.signs, strict=True)])
    show(record_property, f"no debt, {scenario}: λ found", float(fired), "≤ 0.01, and 0.01 for chance")
    assert fired <= 0.02


def test_slow_carry_over_is_not_balanced_which_is_why_slices_get_longer(record_property: Record) -> None:
    for memory in (0.5, 1.0):
        points = abs(bias(memory))
        show(record_property, f"debt 2 %, decay {memory} slices: bias in points", points, "none: a limit of the method")
        assert 0.1 < points < 0.5
