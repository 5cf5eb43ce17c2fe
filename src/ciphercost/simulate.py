"""simulate: scenario + effect + seed -> log rates of simulated blocks. Pure; the tests and METHODOLOGY.md stand on it.

Time runs in steps of half a slice, so that a block takes nine of them: one for its lead-in and two for each counted
slice. All rates are logarithms; 0.01 is about one per cent. Arrays have one row a simulation, so that thousands run
at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ciphercost.model import AgentSlice, Block, Counters, Order, Phase, SliceRecord
from ciphercost.plan import LEAD_IN
from ciphercost.tally import COLUMN, FIELDS, QUANTILES, Arms

Floats = NDArray[np.float64]
Random = np.random.Generator

BLOCK_STEPS = 9
FIRST_STEPS = np.array([1, 3, 5, 7])
"""Where in a block the four counted slices begin."""

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
    """Checkpoints: every 4 to 60 steps, for a fifth of that time, 10 % slower; half of them in step with the blocks."""
    period = np.where(random.random((rows, 1)) < 0.5, float(BLOCK_STEPS), random.uniform(4, 60, (rows, 1)))
    phase = random.random((rows, 1))
    inside = (np.arange(steps) / period + phase) % 1.0 < 0.2
    return -0.1 * inside + white(random, rows, steps, 0.005)


Noise = Callable[[Random, int, int], Floats]
SCENARIOS: dict[str, Noise] = {
    "white": white,
    "drift": drift,
    "correlated": correlated,
    "spikes": spikes,
    "periodic": periodic,
}
TWIN_SD = 0.003
"""Standard deviation of a twin's own persistent effect after a restart (memory layout, file placement), as a log
rate."""


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
    coin: bool = True,
    lead_in: bool = True,
) -> Blocks:
    """Run `rows` sessions of so many blocks. `effect`: true log ratio.

    `debt`: how much slower (log) a slice is on average that follows an encrypted one. With `memory` = 0 all of it is
    paid in that slice, else it decays exponentially with this time constant in slices. `coin` and `lead_in` are the
    design's guards: the tests take them away and see it fail.
    """
    steps = BLOCK_STEPS if lead_in else BLOCK_STEPS - 1
    first = FIRST_STEPS if lead_in else FIRST_STEPS - 1
    signs = random.choice([-1.0, 1.0], (rows, blocks)) if coin else np.ones((rows, blocks))
    series = noise(random, rows, blocks * steps).reshape(rows, blocks, steps)
    rates = (series[..., first] + series[..., first + 1]) / 2
    outside = np.array([True, False, False, True])
    rates = rates + effect * np.where((signs > 0)[..., None], ~outside, outside)
    if debt:
        rates = rates - debt * debts(signs, memory, lead_in=lead_in)
    return Blocks(rates, signs)


def debts(signs: Floats, memory: float, *, lead_in: bool) -> Floats:
    """Share of a debt that each counted slice pays, shape (rows, blocks, 4); the slice after an encrypted one pays 1
    if that was its only one.

    Every encrypted slice, a lead-in too, ends with a debt of the same size. A plain slice leaves what it has not paid.
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
            owed = np.where(arms[:, slot] > 0, 1.0, owed * left)
    return paid


def one_after_the_other(random: Random, noise: Noise, rows: int, blocks: int, *, effect: float = 0.0) -> Floats:
    """The old way, in the time of as many blocks: half of it plain, then half of it encrypted; difference of two
    means, (rows,)."""
    steps = BLOCK_STEPS * blocks
    series = noise(random, rows, steps)
    middle = steps // 2
    difference: Floats = series[:, middle:].mean(axis=1) - series[:, :middle].mean(axis=1) + effect
    return difference


def sessions(
    random: Random, noise: Noise, rows: int, count: int, blocks: int, *, effect: float = 0.0, twin_sd: float = TWIN_SD
) -> Floats:
    """d of every block of `count` sessions with fresh twins, shape (rows, count, blocks).

    Each of the two twins of a session has its own persistent effect of standard deviation `twin_sd`.
    """
    values = experiment(random, noise, rows * count, blocks, effect=effect).values.reshape(rows, count, blocks)
    own = random.normal(0, twin_sd * np.sqrt(2), (rows, count, 1))
    combined: Floats = values + own
    return combined


# ── as a record ───────────────────────────────────────────────────────────────────────────────────────────────────────


def records(
    rates: Floats, signs: Floats, *, session: int = 1, first: int = 0, phase: Phase = "capacity", histogram: str = ""
) -> Iterator[SliceRecord]:
    """One session's blocks, `rates` (blocks, 4) and `signs` (blocks,), as the slices that a run would have written.

    A log rate of 0 is 10,000 operations a second in slices of 0.5 s. Agent and server each use a fifth of a core, so
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


def regimes(random: Random, rows: int, steps: int) -> Floats:
    """A machine with two speeds, 20 % apart, that changes every 40 steps on average, with 0.5 % of white noise."""
    state = (np.cumsum(random.random((rows, steps)) < 1 / 40, axis=1) + random.integers(0, 2, (rows, 1))) % 2
    return -0.2 * state + white(random, rows, steps, 0.005)


def trend_with_step(random: Random, rows: int, steps: int) -> Floats:
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
