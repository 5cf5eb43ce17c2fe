"""schedule: Spec + seed -> budget, cores, ordered slices. Pure; what the pilot and the warm-up saw comes in as arrays.

Every random choice has its own generator, keyed by (seed, cell, session), so that a run's order doesn't depend on its
timing and can be drawn again from the seed alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from ciphercost import mechanisms
from ciphercost.model.slices import Block
from ciphercost.model.spec import ARMS, Arm, CellSpec, Regime, Spec
from ciphercost.plan.change_points import change_points

Floats = NDArray[np.float64]

DISCARD = 0.2
"""Share of each slice that is not counted: the edges."""
LEAD_IN = 0.5
"""Length of a lead-in ÷ length of a counted slice. It is thrown away, so it is kept short: a whole slice would cost
12 % of precision, half of one 6 %; its end and the discarded edge together still leave 0.7 slices for a debt to be
paid."""
SLICES_A_BLOCK = 4 + LEAD_IN
"""Time of a block in slices."""
CANDIDATES: tuple[float, ...] = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)
"""Slice lengths that the pilot chooses from, seconds."""
DEFAULT_SLICE = 0.5
LONGEST = 60.0
"""Seconds that a slice may get where operations are so slow that a shorter one would hold none."""
LEAST_OPERATIONS = 200
"""Counted operations a slice: below, counting noise (1/√200 = 7 %) swamps what pairing gains."""
LEAST_BLOCKS_QUICK = 20
"""Blocks before a quick run may stop on precision."""
MIN_BLOCKS = 4
"""Blocks of a session: of fewer no robust mean can be taken."""
LEAST_SESSIONS = 8
SECONDS, SECONDS_AT_REST = 90.0, 240.0
"""Load time of a cell where nothing else is asked for. At rest an operation waits for the disk, so that there are fewer of them."""
LATENCY, LATENCY_AT_REST = 0.25, 0.45
"""Share of a cell's time that the open loop gets. At rest it is more, for the 99th percentile: of 240 s in 8 sessions 45 % are 13.5 s
a session, of which each arm's counted slices are 4.8 s (4/4.5 without lead-ins, 0.8 without edges, half). 60 % of 1,000 operations
a second are then 2,900 requests of a session and arm, 29 of them beyond p99; the 10 that it needs are reached from 350 a second on."""
PENALTY = 11.0
"""Of a change point in a warm-up: at most 5 % false alarms on stationary noise of autocorrelation up to 0.5."""
WARMUP_POINTS = 40
"""Slices an arm that a warm-up needs at least before `steady` has anything to say."""


def groups(spec: Spec) -> list[list[int]]:
    """Numbers of the cells of each experiment: neighbours of one group are one, any other cell is one by itself."""
    found: list[list[int]] = []
    for number, cell in enumerate(spec.cells):
        if found and cell.group and spec.cells[number - 1].group == cell.group:
            found[-1].append(number)
        else:
            found.append([number])
    return found


# ── order ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def blocks(seed: int, cell: int, session: int) -> Iterator[Block]:
    """Endless blocks of one session, each ABBA or BAAB by a fair coin.

    The coin makes block values symmetric and uncorrelated however the machine drifts; it is drawn from (seed, cell,
    session) alone.
    """
    coin = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, cell, session, 0])))
    for number in itertools.count():
        yield Block(number, "ABBA" if coin.integers(2) else "BAAB")


def turns(seed: int, session: int, cells: int) -> Iterator[tuple[int, ...]]:
    """Endless rounds of an experiment of several cells: in each, every cell has one block, in an order drawn anew."""
    order = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, session, 2])))
    while True:
        yield tuple(int(each) for each in order.permutation(cells))


def arms(seed: int, cell: int, session: int) -> tuple[Arm, Arm]:
    """Which arm comes first in whatever a session does to both before its blocks: copied, started, proven, connected, warmed up.

    Drawn for two sessions at a time (1 and 2, 3 and 4, …), of which the second has it the other way round: whoever is the first
    gains nothing by it in the long run, nor in two sessions.
    """
    return ARMS if _first_of_two(seed, session, (cell, 3)) else ARMS[::-1]


def _first_of_two(seed: int, session: int, purpose: Sequence[int]) -> bool:
    """A fair coin for each two sessions: in one of them it shows one side, in the other the other."""
    two, second = divmod(session - 1, 2)
    coin = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, two + 1, *purpose])))
    return bool(coin.integers(2)) is not bool(second)


def slice_seed(seed: int, cell: int, session: int, block: int, position: int) -> int:
    """Seed of one slice's draws, 0 ≤ seed < 2⁵³, so that every JSON reader keeps it exactly."""
    state = np.random.SeedSequence([seed, cell, session, 1, block, position]).generate_state(1, np.uint64)
    return int(state[0]) >> 11


def cores(
    seed: int, session: int, available: Sequence[int], regime: Regime, physical: Mapping[int, str] | None = None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """CPUs of the server and of the agent in one session: (server, agent), chosen from `available` (not empty).

    `one-core`: both on one core, the first or the last. Otherwise two halves of equal size, each side on one of them; with an
    odd number one core is left to everything else. Which of the two is drawn for two sessions at a time, and they have it the
    other way round from each other. With a single core both are on it. `physical` names each CPU's physical core: SMT
    siblings then go to the same half, so that client and server never share a core, unless there is only one. Raises
    ValueError without any core.
    """
    if not available:
        raise ValueError("no CPU is available to this process")
    lower = _first_of_two(seed, session, (4,))
    if regime == "one-core" or len(available) == 1:
        core = (available[0] if lower else available[-1],)
        return core, core
    together: dict[str, list[int]] = {}
    for cpu in available:
        together.setdefault((physical or {}).get(cpu, str(cpu)), []).append(cpu)
    groups = list(together.values()) if len(together) > 1 else [[cpu] for cpu in available]
    half = len(groups) // 2
    low, high = (tuple(cpu for group in side for cpu in group) for side in (groups[:half], groups[-half:]))
    # Not all threads of a core may be ours.
    size = min(len(low), len(high))
    low, high = low[:size], high[-size:]
    return (low, high) if lower else (high, low)


# ── time ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Budget(msgspec.Struct, frozen=True):
    """How a cell's seconds of load are spent."""

    sessions: int
    pilot_s: float
    """Once, at the start of the first session."""
    warmup_s: float
    """Each session."""
    warmup_limit_s: float
    """A session that isn't steady by then makes the cell `no steady state`."""
    capacity_s: float
    """Each session, closed loop."""
    latency_s: float
    """Each session, open loop."""
    min_blocks: int
    """Blocks of a session that the slice length leaves room for."""

    @property
    def per_session_s(self) -> float:
        return self.warmup_s + self.capacity_s + self.latency_s

    @property
    def total_s(self) -> float:
        """Load time of the cell: the time asked for, unless warm-ups take longer."""
        return self.pilot_s + self.sessions * self.per_session_s


def at_rest(cell: CellSpec) -> bool:
    """Whether the cell's mechanism encrypts what lies on the disk."""
    return cell.mechanism in mechanisms.names() and mechanisms.get(cell.mechanism).layer == "rest"


def seconds(cells: Sequence[CellSpec]) -> float:
    """Load time of each cell where nothing else is asked for."""
    return SECONDS_AT_REST if any(map(at_rest, cells)) else SECONDS


def budget(spec: Spec, cell: CellSpec) -> Budget:
    """Split `spec.time`: pilot 8 % (at most 6 s), warm-up 15 % of the rest, latency 25 % of all (at rest 45 %), capacity what is left.

    In regime `latency` it is the other way round: capacity gets 25 % (the rate is a share of it), or nothing where the
    rate is given.
    """
    sessions = spec.sessions if spec.mode == "full" else 1
    pilot = 0.0 if spec.slice_seconds else min(0.08 * spec.time, 6.0)
    warmup = 0.15 * (spec.time - pilot)
    rest, quarter = spec.time - pilot - warmup, LATENCY * spec.time
    open_loop = (LATENCY_AT_REST if at_rest(cell) else LATENCY) * spec.time if spec.latency else 0.0
    if cell.regime == "latency":
        open_loop = rest if cell.rate else rest - quarter
    return Budget(
        sessions=sessions,
        pilot_s=pilot,
        warmup_s=warmup / sessions,
        warmup_limit_s=max(5.0, 4 * warmup / sessions),
        capacity_s=(rest - open_loop) / sessions,
        latency_s=open_loop / sessions,
        min_blocks=MIN_BLOCKS if spec.mode == "full" else LEAST_BLOCKS_QUICK,
    )


def least_seconds(spec: Spec, cell: CellSpec) -> float:
    """The shortest `spec.time`, in whole seconds, in which each session of the cell has MIN_BLOCKS of the shortest slices.

    Of the closed loop, or of the open one in regime latency. A shorter time could not be kept: a session has these blocks
    in any case, since of fewer no robust mean can be taken.
    """
    wanted = MIN_BLOCKS * SLICES_A_BLOCK * CANDIDATES[0]
    for whole in itertools.count(1):
        split = budget(msgspec.structs.replace(spec, time=float(whole)), cell)
        if (split.latency_s if cell.regime == "latency" else split.capacity_s) >= wanted:
            return float(whole)
    raise AssertionError


def lead_in_seconds(slice_seconds: float) -> float:
    """Length of the lead-in of a block whose counted slices are `slice_seconds` long."""
    return LEAD_IN * slice_seconds


def latency_slice_length(latency_s: float, rate: float, slice_seconds: float) -> float:
    """Length of the open loop's slices, seconds, for `latency_s` of it in a session at `rate` operations a second.

    Long enough for the 99th percentile (5000 requests in a block's two slices of an arm) if MIN_BLOCKS such
    blocks fit; else as long as these allow, but never shorter than the closed loop's `slice_seconds`.
    """
    wanted = 1.1 * 5000 / (2 * (1 - DISCARD) * rate) if rate > 0 else slice_seconds
    room = latency_s / (SLICES_A_BLOCK * MIN_BLOCKS)
    return max(slice_seconds, min(wanted, room))


COMPILING = 4.0
"""Seconds in which a virtual machine starts and compiles what will be measured."""


def time_estimate(spec: Spec, setup_s: float = 3.0) -> float:
    """Seconds that a whole run will take, for the message before its start. `setup_s`: one session's start, load and
    proof."""
    each = [(budget(spec, cell), COMPILING if cell.client or cell.driver else 0.0) for cell in spec.cells]
    return sum(b.total_s + b.sessions * (setup_s + compiling) for b, compiling in each)


# ── pilot ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def choose_slice_length(
    fine: Floats,
    fine_seconds: float,
    candidates: Sequence[float] = CANDIDATES,
    *,
    session_seconds: float = math.inf,
    min_blocks: int = MIN_BLOCKS,
    switch_seconds: float = 0.005,
    clients: int = 1,
) -> float:
    """The slice length, seconds, that minimises variance of a block × time of a block.

    `fine`: log rates of short alternating slices, shape (pairs, 2): plain, encrypted; `fine_seconds`: length of each.
    With each arm's mean removed, the 2 · pairs values are one series of the machine's noise, on which blocks of every
    candidate length are laid at every offset. Only lengths of which three blocks fit side by side are judged; of those
    within 10 % of the best the shortest is taken, as it gives most blocks. The bounds: LEAST_OPERATIONS counted
    operations a slice, and room for `min_blocks` blocks in the `session_seconds` of one phase. Without enough data it
    is 0.5 s within these bounds. `switch_seconds`: time lost between two slices. `clients`: connections; each must be able to
    end an operation in the counted part, and where operations are so slow that this breaks the bounds, the run takes longer.
    """
    pairs = np.asarray(fine, dtype=np.float64).reshape(-1, 2)
    pairs = pairs[np.isfinite(pairs).all(axis=1)]
    longest = max(candidates[0], min(candidates[-1], session_seconds / (SLICES_A_BLOCK * min_blocks)))
    if len(pairs):
        one_each = clients / ((1 - DISCARD) * math.exp(float(pairs.mean(axis=0).min())))
        longest = max(longest, min(one_each, LONGEST))
    if len(pairs) == 0:
        return min(DEFAULT_SLICE, longest)
    slowest = math.exp(float(pairs.mean(axis=0).min()))
    floor = LEAST_OPERATIONS / ((1 - DISCARD) * slowest)
    costs = _block_costs((pairs - pairs.mean(axis=0)).ravel(), fine_seconds, candidates, switch_seconds)
    allowed = {length: cost for length, cost in costs.items() if floor <= length <= longest}
    if not allowed:
        # Too short a pilot, or operations so slow that no slice holds enough of them in time: the bounds decide.
        return min(max(DEFAULT_SLICE, floor), longest)
    best = min(allowed.values())
    return min(length for length, cost in allowed.items() if cost <= 1.1 * best)


def _block_costs(noise: Floats, step: float, candidates: Sequence[float], switch: float) -> dict[float, float]:
    """Variance of a block's value × its time, for each candidate that fits three times into `noise` (steps of `step`
    seconds)."""
    sums = np.concatenate([[0.0], np.cumsum(noise)])
    costs: dict[float, float] = {}
    for length in candidates:
        slots = round(length / step)
        offsets = np.arange(len(noise) - 4 * slots + 1)
        if slots < 1 or len(noise) < 3 * 4 * slots:
            continue
        edge = int(DISCARD * slots)
        means = [
            (sums[offsets + (k + 1) * slots] - sums[offsets + k * slots + edge]) / (slots - edge) for k in range(4)
        ]
        contrast = (means[1] + means[2] - means[0] - means[3]) / 2
        costs[length] = float(np.mean(contrast**2)) * (SLICES_A_BLOCK * length + 5 * switch)
    return costs


# ── warm-up ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def steady(log_plain: Floats, log_encrypted: Floats, penalty: float = PENALTY) -> bool:
    """Whether a warm-up is over: the last quarter holds no change point.

    Log rates of consecutive warm-up slices, one array an arm, in time order. With fewer than WARMUP_POINTS an arm it is
    False. `penalty`: gain, in squared units of noise, that a change point must bring.
    """
    n = min(len(log_plain), len(log_encrypted))
    if n < WARMUP_POINTS:
        return False
    plain, encrypted = _binned(log_plain[-n:]), _binned(log_encrypted[-n:])
    # Sum and difference: the arms share the machine's noise, so that their own two series are not independent evidence.
    signal = np.column_stack([_in_noise_units(plain + encrypted), _in_noise_units(encrypted - plain)])
    return all(change < 0.75 * len(signal) for change in change_points(signal, penalty))


def _binned(series: Floats) -> Floats:
    """Means of neighbours, so that 2 · WARMUP_POINTS values are left at most: the search's time grows with their square."""
    size = -(-len(series) // (2 * WARMUP_POINTS))
    bins = len(series) // size
    means: Floats = np.asarray(series[len(series) - bins * size :], float).reshape(bins, size).mean(axis=1)
    return means


def _in_noise_units(series: Floats) -> Floats:
    """The series divided by its long-run noise sd, that of an AR(1) process around a cubic trend.

    The trend keeps a warm-up that is still under way from being taken for noise; autocorrelated noise wanders, and
    without its long-run sd every wandering would be a change of level.
    """
    n = len(series)
    trend = np.polynomial.legendre.legvander(np.linspace(-1, 1, n), 3)
    noise = series - trend @ np.linalg.lstsq(trend, series, rcond=None)[0]
    variance = float(noise @ noise) / (n - 4)
    if variance < 1e-20:
        return np.zeros(n)
    # Fitting a trend hides some of the autocorrelation: about 6/n of it.
    phi = min(0.9, max(0.0, float(noise[1:] @ noise[:-1] / (noise @ noise)) + 6 / n))
    scaled: Floats = (series - series.mean()) / math.sqrt(variance * (1 + phi) / (1 - phi))
    return scaled
