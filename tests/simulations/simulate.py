"""Simulates log rates of blocks from a scenario, an effect and a seed, for the tests and METHODOLOGY.md. Pure.

Time runs in steps of half a slice, so a block takes nine: one for its lead-in and two for each counted slice. All rates
are logarithms; 0.01 is about one per cent. Arrays have one row per simulation, so that thousands run at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ciphercost.estimate.tally import COLUMN, FIELDS, QUANTILES, Arms
from ciphercost.model.slices import AgentSlice, Block, Counters, SliceRecord
from ciphercost.model.spec import Order, Phase
from ciphercost.plan.schedule import LEAD_IN

Floats = NDArray[np.float64]
Random = np.random.Generator

BLOCK_STEPS = 9
FIRST_STEPS = np.array([1, 3, 5, 7])
"""Steps of a block at which the four counted slices begin."""

# ── the machine's noise: (random, rows, steps) -> log rate of each step, shared by both arms
# ────────────────────────────


def white(random: Random, rows: int, steps: int, sd: float = 0.01) -> Floats:
    """Independent noise; `sd` is that of a slice, thus of a block's value too (two slices against two)."""
    return random.normal(0.0, sd * np.sqrt(2), (rows, steps))


def drift(random: Random, rows: int, steps: int) -> Floats:
    """A machine that gets up to 20 % slower or faster from start to end, on a random walk, with 0.5 % of white
    noise."""
    slope = random.uniform(-0.1, 0.1, (rows, 1)) * np.linspace(0, 1, steps)
    walk = np.cumsum(random.normal(0, 0.002, (rows, steps)), axis=1)
    return slope + walk + white(random, rows, steps, 0.005)


def correlated(random: Random, rows: int, steps: int) -> Floats:
    """Ornstein-Uhlenbeck noise of 3 % with a memory of ten slices (other tenants, clock frequency), with 0.5 % of
    white noise."""
    return ornstein_uhlenbeck(random, rows, steps, sd=0.03, memory=20.0) + white(random, rows, steps, 0.005)


def ornstein_uhlenbeck(random: Random, rows: int, steps: int, sd: float, memory: float) -> Floats:
    """Stationary AR(1) with autocorrelation exp(−k/memory) at lag k."""
    phi = np.exp(-1 / memory)
    noise = random.normal(0, sd * np.sqrt(1 - phi**2), (rows, steps))
    noise[:, 0] = random.normal(0, sd, rows)
    for step in range(1, steps):
        noise[:, step] += phi * noise[:, step - 1]
    return noise


def spikes(random: Random, rows: int, steps: int) -> Floats:
    """One step in 25 loses a fifth of its throughput on average, exponentially distributed, on 0.5 % of white noise."""
    hit = random.random((rows, steps)) < 0.04
    return white(random, rows, steps, 0.005) - hit * random.exponential(0.2, (rows, steps))


def periodic(random: Random, rows: int, steps: int) -> Floats:
    """Checkpoints: every 4 to 60 steps, for a fifth of that time, 10 % slower; half of them in phase with the blocks."""
    period = np.where(random.random((rows, 1)) < 0.5, float(BLOCK_STEPS), random.uniform(4, 60, (rows, 1)))
    phase = random.random((rows, 1))
    inside = (np.arange(steps) / period + phase) % 1.0 < 0.2
    return -0.1 * inside + white(random, rows, steps, 0.005)


def in_phase(random: Random, rows: int, steps: int, share: float = 0.2) -> Floats:
    """Checkpoints exactly in phase with the blocks: 10 % slower in `share` of each block's time. Block values take two
    values, one for each side of the coin, with 0.5 % of white noise."""
    inside = (np.arange(steps) / BLOCK_STEPS + random.random((rows, 1))) % 1.0 < share
    return -0.1 * inside + white(random, rows, steps, 0.005)


def in_phase_half(random: Random, rows: int, steps: int) -> Floats:
    """`in_phase`, for half of each block's time."""
    return in_phase(random, rows, steps, share=0.5)


def wave(random: Random, rows: int, steps: int) -> Floats:
    """A sine of 5 % whose period is a block's length within 6 %, with 0.5 % of white noise."""
    period = random.uniform(0.94, 1.06, (rows, 1)) * BLOCK_STEPS
    angle = 2 * np.pi * (np.arange(steps) / period + random.random((rows, 1)))
    return 0.05 * np.sin(angle) + white(random, rows, steps, 0.005)


def regimes(random: Random, rows: int, steps: int) -> Floats:
    """Two levels 4 % apart that alternate after 60 steps on average, with 0.5 % of white noise."""
    level = np.cumsum(random.random((rows, steps)) < 1 / 60, axis=1) % 2
    values: Floats = 0.04 * level + white(random, rows, steps, 0.005)
    return values


def trend_with_step(random: Random, rows: int, steps: int) -> Floats:
    """A linear trend and one step at a random time, each up to 10 % up or down, with 0.5 % of white noise."""
    trend = random.uniform(-0.1, 0.1, (rows, 1)) * np.linspace(0, 1, steps)
    after = np.arange(steps) >= random.integers(0, steps, (rows, 1))
    return trend + random.uniform(-0.1, 0.1, (rows, 1)) * after + white(random, rows, steps, 0.005)


def heavy_tails(random: Random, rows: int, steps: int) -> Floats:
    """Independent noise, Student's t with 2 degrees of freedom, whose variance is infinite; a scale of 0.5 % a slice."""
    values: Floats = 0.005 * np.sqrt(2) * random.standard_t(2, (rows, steps))
    return values


def flicker(random: Random, rows: int, steps: int) -> Floats:
    """1/f noise of 2 %: equal power in every octave of time scales, so it has no time constant."""
    frequencies = np.fft.rfftfreq(steps)
    frequencies[0] = np.inf  # No level.
    noise = np.fft.irfft(np.fft.rfft(random.normal(size=(rows, steps)), axis=1) / np.sqrt(frequencies), steps, axis=1)
    scaled: Floats = 0.02 * noise / noise.std(axis=1, keepdims=True)
    return scaled


def bursts(random: Random, rows: int, steps: int) -> Floats:
    """White noise whose scale wanders by a factor of 2.7 either way over 90 steps: quiet minutes and loud ones."""
    return white(random, rows, steps, 0.01) * np.exp(ornstein_uhlenbeck(random, rows, steps, sd=1.0, memory=90.0))


def sawtooth(random: Random, rows: int, steps: int) -> Floats:
    """Throughput that falls by 8 % and springs back, each 10 to 40 steps (a heap that fills, a log that grows), with 0.5 % of
    white noise."""
    period = random.uniform(10, 40, (rows, 1))
    return -0.08 * ((np.arange(steps) / period + random.random((rows, 1))) % 1.0) + white(random, rows, steps, 0.005)


# ── noise of one arm only: (random, rows, slices) -> log rate of each counted slice of the encrypted arm, of mean 0
# ────────────────────────────


def own_memory(random: Random, rows: int, slices: int) -> Floats:
    """Noise of 1 % that is autocorrelated over three of the arm's own slices (its checkpoints, vacuum, compaction)."""
    return ornstein_uhlenbeck(random, rows, slices, sd=0.01, memory=3.0)


def own_regimes(random: Random, rows: int, slices: int) -> Floats:
    """The arm alternates between 1 % faster and 1 % slower than its mean, after six of its own slices on average."""
    first = random.integers(0, 2, (rows, 1))
    changes = np.cumsum(random.random((rows, slices)) < 1 / 6, axis=1)
    return np.where((first + changes) % 2 == 0, 0.01, -0.01)


STALL_SHARE, STALL_LOSS = 0.02, 0.9
STALL_MEAN = STALL_SHARE * float(np.log1p(-STALL_LOSS))
"""Mean log rate that stalls cost: -4.6 %; of operations they cost 1.8 %."""


def own_stalls(random: Random, rows: int, slices: int) -> Floats:
    """One slice in 50 loses nine tenths of its throughput. The mean log rate is 0: the stalls are part of the cost."""
    hit = random.random((rows, slices)) < STALL_SHARE
    return np.where(hit, float(np.log1p(-STALL_LOSS)), 0.0) - STALL_MEAN


Noise = Callable[[Random, int, int], Floats]
SCENARIOS: dict[str, Noise] = {
    "white": white,
    "drift": drift,
    "correlated": correlated,
    "spikes": spikes,
    "periodic": periodic,
}
IN_PHASE: dict[str, Noise] = {"in phase": in_phase, "in phase, half": in_phase_half, "wave": wave}
"""Noise in phase with the blocks, the hardest case for few blocks."""
FURTHER: dict[str, Noise] = {"regimes": regimes, "trend with a step": trend_with_step, "heavy tails": heavy_tails}
"""Other kinds of noise on which candidate intervals were compared."""
HELD_OUT: dict[str, Noise] = {"flicker": flicker, "bursts": bursts, "sawtooth": sawtooth}
"""Kinds that were written and first run after the interval was settled, so no choice depends on them."""
SERVER_SD = 0.003
"""Standard deviation of a server's own persistent effect after a restart (memory layout, file placement), as a log rate."""


# ── the experiment ────────────────────────────────────────────────────────────────────────────────────────────────────


class Blocks(NamedTuple):
    """Simulated blocks: `rates` (rows, blocks, 4) by position, `signs` (rows, blocks): +1 for ABBA."""

    rates: Floats
    signs: Floats

    @property
    def values(self) -> Floats:
        """d of each block, shape (rows, blocks)."""
        y = self.rates
        values: Floats = self.signs * (y[..., 1] + y[..., 2] - y[..., 0] - y[..., 3]) / 2
        return values

    @property
    def carryover(self) -> Floats:
        """λ of each block, shape (rows, blocks)."""
        y = self.rates
        values: Floats = self.signs * (y[..., 3] - y[..., 0] + y[..., 2] - y[..., 1]) / 2
        return values


def experiment(
    random: Random,
    noise: Noise,
    rows: int,
    blocks: int,
    *,
    effect: float = 0.0,
    debt: float = 0.0,
    memory: float = 0.0,
    gradual: bool = False,
    arm_noise: Noise | None = None,
    coin: bool = True,
    lead_in: bool = True,
) -> Blocks:
    """Simulate `rows` sessions of `blocks` blocks. `effect`: true log ratio.

    `debt` is the carry-over: how much slower (log) a slice is on average after an encrypted one. With `memory` = 0 only
    that slice is slower; otherwise the effect decays exponentially with this time constant in slices. `gradual`: it also
    builds up that slowly, see `debts`. `arm_noise`: noise of the encrypted arm only. The tests switch off `coin` and
    `lead_in` to show that the design fails without them.
    """
    steps = BLOCK_STEPS if lead_in else BLOCK_STEPS - 1
    first = FIRST_STEPS if lead_in else FIRST_STEPS - 1
    signs = random.choice([-1.0, 1.0], (rows, blocks)) if coin else np.ones((rows, blocks))
    series = noise(random, rows, blocks * steps).reshape(rows, blocks, steps)
    rates = (series[..., first] + series[..., first + 1]) / 2
    outside = np.array([True, False, False, True])
    rates = rates + effect * np.where((signs > 0)[..., None], ~outside, outside)
    if arm_noise is not None:
        pairs = arm_noise(random, rows, 2 * blocks).reshape(rows, blocks, 2)
        rates[..., 1:3] += np.where((signs > 0)[..., None], pairs, 0)
        rates[..., [0, 3]] += np.where((signs < 0)[..., None], pairs, 0)
    if debt:
        rates = rates - debt * debts(signs, memory, lead_in=lead_in, gradual=gradual)
    return Blocks(rates, signs)


def debts(signs: Floats, memory: float, *, lead_in: bool, gradual: bool = False) -> Floats:
    """Share of the carry-over that each counted slice bears, shape (rows, blocks, 4); 1 in the slice after an encrypted
    one.

    Every encrypted slice, including a lead-in, leaves a carry-over of the same size, which decays in plain slices.
    `gradual`, which needs `memory` > 0: an encrypted slice builds it up as slowly as a plain one lets it decay (a cache
    that fills, a backlog that grows), so a single slice leaves 1 − exp(−1/memory) of it.
    """
    rows, blocks = signs.shape
    lengths = [LEAD_IN, 1.0, 1.0, 1.0, 1.0] if lead_in else [1.0, 1.0, 1.0, 1.0]
    orders = np.array([[0, 1, 1, 0], [1, 0, 0, 1]], float)  # Encrypted slices of ABBA, BAAB.
    paid = np.zeros((rows, blocks, 4))
    owed = np.zeros(rows)
    for block in range(blocks):
        quad = orders[(signs[:, block] < 0).astype(int)]
        arms = np.concatenate([quad[:, :1], quad], axis=1) if lead_in else quad
        for slot, length in enumerate(lengths):
            counted = slot - len(lengths) + 4
            if counted >= 0:
                paid[:, block, counted] = owed
            left = np.exp(-length / memory) if memory else 0.0
            grown = owed * left + 1 - left if gradual else 1.0
            owed = np.where(arms[:, slot] > 0, grown, owed * left)
    return paid


def one_after_the_other(random: Random, noise: Noise, rows: int, blocks: int, *, effect: float = 0.0) -> Floats:
    """The old way, in the time of `blocks` blocks: the first half plain, the second half encrypted. Returns the difference
    of two means, shape (rows,)."""
    steps = BLOCK_STEPS * blocks
    series = noise(random, rows, steps)
    middle = steps // 2
    difference: Floats = series[:, middle:].mean(axis=1) - series[:, :middle].mean(axis=1) + effect
    return difference


def sessions(
    random: Random,
    noise: Noise,
    rows: int,
    count: int,
    blocks: int,
    *,
    effect: float = 0.0,
    server_sd: float = SERVER_SD,
    skewed_sd: float = 0.0,
    arm_noise: Noise | None = None,
) -> Floats:
    """d of every block of `count` sessions with fresh server pairs, shape (rows, count, blocks).

    Each of the two servers of a session has its own persistent effect of standard deviation `server_sd`. With `skewed_sd`
    the encrypted one has a second effect that is log-normal (σ = 1, skewness 6.2), of mean 0: most sessions are a little
    faster than the mean, a few much slower.
    """
    simulated = experiment(random, noise, rows * count, blocks, effect=effect, arm_noise=arm_noise)
    values = simulated.values.reshape(rows, count, blocks)
    persistent = random.normal(0, server_sd * np.sqrt(2), (rows, count, 1))
    if skewed_sd:
        scale = skewed_sd / np.sqrt((np.e - 1) * np.e)  # The sd of a log-normal with σ = 1.
        persistent = persistent - scale * (random.lognormal(0.0, 1.0, (rows, count, 1)) - np.sqrt(np.e))
    combined: Floats = values + persistent
    return combined


# ── as a record ───────────────────────────────────────────────────────────────────────────────────────────────────────


def records(
    rates: Floats, signs: Floats, *, session: int = 1, first: int = 0, phase: Phase = "capacity", histogram: str = ""
) -> Iterator[SliceRecord]:
    """One session's blocks, `rates` (blocks, 4) and `signs` (blocks,), as the slices that a run would write.

    A log rate of 0 is 10,000 operations per second in slices of 0.5 s. Agent and server each use a fifth of a core, so
    that slower operations cost more CPU each; an operation takes 100 bytes on the wire, encrypted 130.
    """
    for number, (quad, sign) in enumerate(zip(rates, signs, strict=True), start=first):
        order: Order = "ABBA" if sign > 0 else "BAAB"
        for position, arm in enumerate(Block(number, order).arms):
            rate = 10_000 * float(np.exp(quad[max(position - 1, 0)]))
            length = 0.5 if position else 0.5 * LEAD_IN
            operations = round(rate * 0.8 * length)
            cpu = round(0.1 * 0.8 * length * 1e9)
            agent = AgentSlice(
                arm=arm,
                seconds=operations / rate,  # Operations are whole numbers: the clock takes up the rest.
                operations=operations,
                errors=0,
                rows=operations,
                checksum="",
                cpu_user_ns=cpu,
                cpu_system_ns=cpu,
                bytes_sent=(30 if arm == "plain" else 60) * operations,
                bytes_received=70 * operations,
                segments_sent=operations,
                segments_received=operations,
                connects=0,
                resumed=0,
                late=0,
                threads=1,
                histogram=histogram,
            )
            counters = Counters(
                window_ns=round(0.8 * length * 1e9),
                server_cpu_ns=2 * cpu,
                server_user_ns=cpu,
                server_system_ns=cpu,
                server_memory_bytes=100_000_000,
                host_user=0.3,
                host_system=0.1,
                host_idle=0.6,
            )
            yield SliceRecord(0, session, phase, number, order, position, arm, 0.0, length, 0.0, agent, counters)


# ── stalls ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def speeds(random: Random, rows: int, steps: int) -> Floats:
    """A machine with two speeds, 20 % apart, that changes every 40 steps on average, with 0.5 % of white noise."""
    state = (np.cumsum(random.random((rows, steps)) < 1 / 40, axis=1) + random.integers(0, 2, (rows, 1))) % 2
    return -0.2 * state + white(random, rows, steps, 0.005)


def trend_with_large_step(random: Random, rows: int, steps: int) -> Floats:
    """A trend of up to 10 % over the run and one step of 20 % somewhere in it, with 0.5 % of white noise."""
    index = np.arange(steps)
    trend = random.uniform(-0.1, 0.1, (rows, 1)) * index / steps
    return trend - 0.2 * (index >= random.integers(0, steps, (rows, 1))) + white(random, rows, steps, 0.005)


STALL = float(np.log(0.1))
"""A slice that stalls does a tenth of its work."""


def stalling(random: Random, blocks: Blocks, share: float) -> Blocks:
    """The blocks, this share of their encrypted slices stalled: a true cost of 0.9 · `share`."""
    outside = np.array([True, False, False, True])
    encrypted = np.where((blocks.signs > 0)[..., None], ~outside, outside)
    return blocks._replace(rates=blocks.rates + STALL * (encrypted & (random.random(blocks.rates.shape) < share)))


def as_arms(rates: Floats, signs: Floats, sessions: NDArray[np.int64]) -> Arms:
    """One run's blocks, `rates` (blocks, 4), `signs` and `sessions` (blocks,), as the tally has them: work and seconds alone."""
    slices = np.zeros((*rates.shape, len(FIELDS)))
    slices[..., COLUMN["work"]], slices[..., COLUMN["seconds"]] = np.exp(rates), 1.0
    outer, inner = slices[:, [0, 3]], slices[:, [1, 2]]
    outside = (signs > 0)[:, None, None]
    none = np.empty((0, len(QUANTILES)))
    return Arms(sessions, np.where(outside, outer, inner), np.where(outside, inner, outer), none, none, none, none)
