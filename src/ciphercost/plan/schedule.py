"""The schedule of a run from its spec and seed: time budget, cores, order of slices. Pure; the pilot's data are arguments.

Every random choice has its own generator, keyed by (seed, cell, session). So the order of a run does not depend on its
timing, and the seed alone reproduces it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from ciphercost import mechanisms
from ciphercost.load import clients, workloads
from ciphercost.model import command_load
from ciphercost.model.connection_memory import IDLE, USUAL_CONNECTIONS
from ciphercost.model.replication import REPLICATION
from ciphercost.model.slices import Block
from ciphercost.model.spec import ARMS, Arm, CellSpec, Mode, Regime, Spec
from ciphercost.model.storms import STORM

Floats = NDArray[np.float64]

DISCARD = 0.2
"""Share of each slice that is not counted, at its beginning."""
LEAD_IN = 0.5
"""Length of a lead-in ÷ length of a counted slice. It is discarded, so it is short: a whole slice would cost 12 % of
precision, half a slice costs 6 %. Together with the discarded edge it leaves 0.7 slices for carry-over to decay."""
SLICES_A_BLOCK = 4 + LEAD_IN
"""Length of a block, in slices."""
CANDIDATES: tuple[float, ...] = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)
"""Slice lengths that the pilot chooses from, seconds."""
DEFAULT_SLICE = 0.5
LONGEST = 60.0
"""Longest slice, seconds, for operations so slow that a shorter slice would contain none."""
LEAST_OPERATIONS = 200
"""Fewest counted operations per slice: with fewer, counting noise (1/√200 = 7 %) exceeds what pairing gains."""
SLOWEST_FIT, SLOWEST_LEAST = 5.0, 2.5
"""Slice ÷ slowest usual operation, where time allows, and in any case. Every slice begins with new operations, so in slices
that are too short the quick kinds are overrepresented, more so in the slower arm. Simulated with one slow kind among quick
ones, the ratio is wrong by up to 48 % at 1, 16 % at 2 and 3 % at 2.5 and at 5 (`tests/plan/test_slow_kinds.py`)."""
LEAST_BLOCKS_QUICK = 20
"""Fewest blocks before a quick run may stop on precision."""
MIN_BLOCKS = 4
"""Fewest blocks of a session: a robust mean needs this many."""
LEAST_SESSIONS = 8
LEAST_SESSIONS_PRECISE = 16
"""Fewest sessions before a full run may stop on precision. Where sessions are skewed, few of them often look alike by chance."""
SECONDS, SECONDS_AT_REST, SECONDS_OF_COMMAND = 90.0, 240.0, 300.0
"""Default load time of a cell. At rest, operations wait for the disk, so fewer of them fit into the same time."""
LATENCY, LATENCY_AT_REST = 0.25, 0.45
"""Share of a cell's time for the open loop. It is larger at rest because of the 99th percentile: 45 % of 240 s in 8 sessions is
13.5 s per session, and each arm's counted slices are 4.8 s of it (4/4.5 without lead-ins, 0.8 without edges, half). A rate of
60 % of 1,000 operations/s then gives 2,900 requests per session and arm, 29 of them beyond p99. The estimate needs 10, which
it gets from 350 operations/s on."""
PROFILE = 0.25
"""Extra time for the profiled slices of a cell, as a share of its time."""
PROFILE_SLICE = 0.5
"""Shortest profiled slice, seconds: perf needs milliseconds to switch on and off, and a slice needs some hundred samples."""
STORM_SHARE, STORM_PART = 0.5, 0.5
"""Extra time for a cell's storms, as a share of its time; and the length of each of a storm's three parts, seconds."""
STORM_BLOCKS, STORM_BLOCKS_QUICK = 1, 4
"""Fewest blocks of storms of a session, as of profiled slices."""
STORMY, MEMORY, REPLICATED = 6, 7, 8
"""Purposes of the blocks of storms, of the order of the arms in the steps of memory per connection, and of the blocks of what a replica does."""
REPLICATION_BLOCKS, REPLICATION_BLOCKS_QUICK, REPLICATION_S = 1, 3, 10.0
"""Fewest blocks of a session in which lag, backlog and copy are measured, and seconds of the session's load for each further one."""
EVENT_S = 2.0
"""Seconds that a backlog or a copy may take, for the estimate of a run's length."""
PROFILE_BLOCKS, PROFILE_BLOCKS_QUICK = 1, 8
"""Fewest profiled blocks of a session: in full mode sessions are the unit, in quick mode blocks are."""
OBJECTIVE, SECONDS_OBJECTIVE = 0.6, 240.0
"""Share of a cell's time for the search for capacity at an objective, and the default time of such a cell: 18 s for each of eight sessions."""


def groups(spec: Spec) -> list[list[int]]:
    """Cell numbers of each experiment: consecutive cells of one group, or a single cell."""
    experiments: list[list[int]] = []
    for number, cell in enumerate(spec.cells):
        if experiments and cell.group and spec.cells[number - 1].group == cell.group:
            experiments[-1].append(number)
        else:
            experiments.append([number])
    return experiments


# ── order ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


PROFILED = 5
"""Purpose of the blocks of profiled slices: they have a coin of their own, so that a run's other blocks do not depend on them."""


def blocks(seed: int, cell: int, session: int, purpose: int = 0) -> Iterator[Block]:
    """Endless blocks of one session, each ABBA or BAAB by a fair coin.

    The coin makes block values symmetric and uncorrelated, however the machine drifts. It depends only on (seed, cell,
    session) and on what the blocks are for.
    """
    coin = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, cell, session, purpose])))
    for number in itertools.count():
        yield Block(number, "ABBA" if coin.integers(2) else "BAAB")


def turns(seed: int, session: int, cells: int) -> Iterator[tuple[int, ...]]:
    """Endless rounds of an experiment: in each round, every cell has one block, in a new random order."""
    order = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, session, 2])))
    while True:
        yield tuple(int(number) for number in order.permutation(cells))


def arms(seed: int, cell: int, session: int) -> tuple[Arm, Arm]:
    """Order of the arms in all steps before a session's blocks: copy, start, prove, connect, warm up.

    Drawn for two sessions at a time (1 and 2, 3 and 4, …), the second in reverse order. So being first gives neither arm an
    advantage, not even in two sessions.
    """
    return ARMS if _first_of_two(seed, session, (cell, 3)) else ARMS[::-1]


def _first_of_two(seed: int, session: int, purpose: Sequence[int]) -> bool:
    """A fair coin for each two sessions: the second session gets the opposite of the first."""
    two, second = divmod(session - 1, 2)
    coin = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, two + 1, *purpose])))
    return bool(coin.integers(2)) is not bool(second)


def slice_seed(seed: int, cell: int, session: int, block: int, position: int) -> int:
    """Seed of one slice's random draws, 0 ≤ seed < 2⁵³, which every JSON reader represents exactly."""
    state = np.random.SeedSequence([seed, cell, session, 1, block, position]).generate_state(1, np.uint64)
    return int(state[0]) >> 11


def draws(position: int, *, even: bool) -> int:
    """The position whose draws a slice of a block repeats.

    Each slice has its own draws. `even`: the two neighbours of a block that are of different arms share theirs, so both arms run the same
    operations in the same order.
    """
    return (position + 1) // 2 if even else position


def cores(
    seed: int, session: int, available: Sequence[int], regime: Regime, physical: Mapping[int, str] | None = None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """CPUs of the server and of the agent in one session, (server, agent), from `available`.

    `one-core`: both use one core, the first or the last. Otherwise each uses one half of the cores; with an odd number, one
    core is left for everything else. Which core or half is drawn for two sessions at a time, and swapped in the second. With
    a single core, both use it. `physical`: the physical core of each CPU. SMT siblings then go to the same half, so that
    client and server share a core only if there is only one. Raises ValueError if `available` is empty.
    """
    if not available:
        raise ValueError("this process has no CPU")
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
    # This process may not be allowed to use all threads of a core.
    size = min(len(low), len(high))
    low, high = low[:size], high[-size:]
    return (low, high) if lower else (high, low)


# ── time ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Budget(msgspec.Struct, frozen=True):
    """How a cell's load time is divided, in seconds."""

    sessions: int
    pilot_s: float
    """Pilot, once, at the start of the first session."""
    warmup_s: float
    """Warm-up of each session."""
    warmup_limit_s: float
    """If a session isn't steady by then, the cell's status is `no-steady-state`."""
    capacity_s: float
    """Closed loop of each session."""
    latency_s: float
    """Open loop of each session."""
    profile_s: float
    """Profiled slices of each session, in addition to `spec.time`; 0: none."""
    min_blocks: int
    """Blocks of a session for which the slice length must leave room."""
    objective_s: float = 0.0
    """Search for capacity at an objective, of each session."""

    @property
    def per_session_s(self) -> float:
        return self.warmup_s + self.capacity_s + self.latency_s + self.objective_s + self.profile_s

    @property
    def total_s(self) -> float:
        """Load time of the cell: the spec's time, and that of profiled slices, unless warm-ups take longer."""
        return self.pilot_s + self.sessions * self.per_session_s


def at_rest(cell: CellSpec) -> bool:
    """Whether the cell's mechanism encrypts data at rest."""
    return mechanisms.layer_of(cell.mechanism) == "rest"


def one_shot(cell: CellSpec) -> bool:
    """Whether a slice of the cell is one execution of something: a command of the user's, or an operator's task."""
    return cell.command is not None or bool(operation_of(cell))


def operation_of(cell: CellSpec) -> str:
    """The operator's task that the cell measures, such as `backup`; empty: none."""
    return "" if cell.own_script or cell.command is not None else workloads.operation_of(cell.workload)


def seconds(cells: Sequence[CellSpec]) -> float:
    """Default load time of each cell."""
    usual = SECONDS_AT_REST if any(map(at_rest, cells)) else SECONDS
    if any(map(one_shot, cells)):
        usual = SECONDS_OF_COMMAND
    if any(cell.objective for cell in cells):
        # What the other phases would have had stays about the same.
        return max(SECONDS_OBJECTIVE, 1.5 * usual)
    return usual


def budget(spec: Spec, cell: CellSpec) -> Budget:
    """Split `spec.time`: pilot 8 % (at most 6 s), warm-up 15 % of the rest, latency 25 % of all (at rest 45 %), capacity the remainder.

    In regime `latency`, capacity gets 25 %, because the rate is a share of it, or nothing if the rate or its limit is given;
    latency gets the remainder. With an objective, the search for it gets 60 % of all, and there is no phase of latency alone.
    Profiled slices get PROFILE of the time on top.
    """
    sessions = spec.sessions if spec.mode == "full" else 1
    pilot = 0.0 if spec.slice_seconds else min(0.08 * spec.time, 6.0)
    warmup = 0.15 * (spec.time - pilot)
    rest, quarter = spec.time - pilot - warmup, LATENCY * spec.time
    open_loop, searching = 0.0, 0.0
    if cell.objective:
        searching = OBJECTIVE * spec.time
    elif cell.regime == "latency":
        open_loop = rest if cell.rate or cell.max_rate else rest - quarter
    elif spec.latency and not one_shot(cell):
        open_loop = (LATENCY_AT_REST if at_rest(cell) else LATENCY) * spec.time
    return Budget(
        sessions=sessions,
        pilot_s=pilot,
        warmup_s=warmup / sessions,
        warmup_limit_s=max(5.0, 4 * warmup / sessions),
        capacity_s=(rest - open_loop - searching) / sessions,
        latency_s=open_loop / sessions,
        profile_s=_profile_s(spec, sessions),
        min_blocks=MIN_BLOCKS if spec.mode == "full" else LEAST_BLOCKS_QUICK,
        objective_s=searching / sessions,
    )


def profile_blocks(mode: Mode) -> int:
    """Fewest profiled blocks of a session."""
    return PROFILE_BLOCKS if mode == "full" else PROFILE_BLOCKS_QUICK


def storm_part(spec: Spec) -> float:
    """Length of each part of a storm, seconds."""
    return spec.slice_seconds or STORM_PART


def storm_blocks(spec: Spec) -> int:
    """Blocks of storms of each session of a cell: what fits into their share of its time, but never too few."""
    sessions = spec.sessions if spec.mode == "full" else 1
    least = STORM_BLOCKS if spec.mode == "full" else STORM_BLOCKS_QUICK
    return max(least, int(STORM_SHARE * spec.time / sessions / (SLICES_A_BLOCK * 3 * storm_part(spec))))


def replicated(cell: CellSpec) -> bool:
    """Whether the cell measures replication."""
    return cell.workload == REPLICATION and not cell.own_script


def replication_blocks(spec: Spec) -> int:
    """Blocks of each session in which lag, backlog and copy are measured: more in a longer session, but never too few."""
    least, sessions = (REPLICATION_BLOCKS, spec.sessions) if spec.mode == "full" else (REPLICATION_BLOCKS_QUICK, 1)
    return max(least, int(spec.time / sessions / REPLICATION_S))


def _profile_s(spec: Spec, sessions: int) -> float:
    """Seconds of profiled slices in each session."""
    if not spec.profile:
        return 0.0
    length = max(PROFILE_SLICE, command_load.SHORTEST if any(cell.command for cell in spec.cells) else 0.0)
    return max(PROFILE * spec.time / sessions, profile_blocks(spec.mode) * SLICES_A_BLOCK * length)


def least_seconds(spec: Spec, cell: CellSpec) -> float:
    """Shortest `spec.time`, in whole seconds, that gives each session of the cell MIN_BLOCKS blocks of the shortest slices.

    Counts the closed loop, or the open loop in regime latency. With less time, the run would exceed it, because a session
    always needs these blocks for a robust mean.
    """
    wanted = MIN_BLOCKS * SLICES_A_BLOCK * shortest(cell)
    for whole in itertools.count(1):
        split = budget(msgspec.structs.replace(spec, time=float(whole)), cell)
        if (split.latency_s if cell.regime == "latency" else split.capacity_s) >= wanted:
            return float(whole)
    raise AssertionError


def shortest(cell: CellSpec) -> float:
    """Seconds of the shortest slice of a cell."""
    return command_load.SHORTEST if cell.command else CANDIDATES[0]


def lead_in_seconds(slice_seconds: float) -> float:
    """Length of a lead-in, seconds, if counted slices last `slice_seconds`."""
    return LEAD_IN * slice_seconds


def latency_slice_length(latency_s: float, rate: float, slice_seconds: float) -> float:
    """Slice length of the open loop, seconds, for `latency_s` seconds per session at `rate` operations/s.

    Long enough for the 99th percentile (5000 requests in an arm's two slices of a block) if MIN_BLOCKS such blocks fit.
    Otherwise as long as these blocks allow, but never shorter than the closed loop's `slice_seconds`.
    """
    wanted = 1.1 * 5000 / (2 * (1 - DISCARD) * rate) if rate > 0 else slice_seconds
    room = latency_s / (SLICES_A_BLOCK * MIN_BLOCKS)
    return max(slice_seconds, min(wanted, room))


FAILOVER_S, CONNECTION_S = 2.0, 0.02
"""Seconds to start a fresh server for a failover; and those of an idle connection of either arm, with all its measurements."""


def beside_s(spec: Spec, cell: CellSpec) -> float:
    """Estimated seconds of each session for storms and memory per connection, which come beside the load."""
    seconds = 0.0
    if cell.storm or cell.workload == STORM:
        blocks, failover = storm_blocks(spec), cell.storm.startswith("failover")
        seconds += blocks * (3 * SLICES_A_BLOCK * storm_part(spec) + 5 * FAILOVER_S * failover)
    if cell.connections or cell.workload == IDLE:
        seconds += 10.0 + CONNECTION_S * (cell.connections or USUAL_CONNECTIONS)
    if replicated(cell):
        seconds += (replication_blocks(spec) * (SLICES_A_BLOCK - 1) + 2) * (2 * EVENT_S + storm_part(spec))
    return seconds


COMPILING = 4.0
"""Seconds that a virtual machine needs to start and to compile the measured code."""


def time_estimate(spec: Spec, setup_s: float = 3.0) -> float:
    """Estimated duration of a whole run, seconds, for the message at its start. `setup_s`: start, data load and proof of
    one session."""
    budgets = [
        (budget(spec, cell), (COMPILING if clients.compiles(cell) else 0.0) + beside_s(spec, cell))
        for cell in spec.cells
    ]
    return sum(b.total_s + b.sessions * (setup_s + more) for b, more in budgets)


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
    slowest: float = 0.0,
) -> float:
    """The slice length, seconds, that minimises variance of a block × time of a block.

    `fine`: log rates of short alternating slices, shape (pairs, 2): plain, encrypted; `fine_seconds`: length of each.
    Without each arm's mean, the 2 · pairs values are one series of the machine's noise. Blocks of every candidate length are
    evaluated on it at every offset. Only lengths count of which three blocks fit side by side. Of those within 10 % of the
    best, the shortest is chosen, because it gives the most blocks.

    Bounds: at least LEAST_OPERATIONS counted operations per slice, and room for `min_blocks` blocks in the `session_seconds`
    of one phase. Without enough data the length is 0.5 s within these bounds. `switch_seconds`: time lost between two
    slices. `clients`: connections; each must be able to finish an operation in the counted part. `slowest`: seconds of the
    slowest usual operation if operations differ in length, else 0; a slice is SLOWEST_FIT times as long if a session of
    MIN_BLOCKS blocks has room for it, and never less than SLOWEST_LEAST times. If operations are so slow that this exceeds the
    bounds, the run takes longer.
    """
    pairs = np.asarray(fine, dtype=np.float64).reshape(-1, 2)
    pairs = pairs[np.isfinite(pairs).all(axis=1)]
    longest = max(candidates[0], min(candidates[-1], session_seconds / (SLICES_A_BLOCK * min_blocks)))
    if len(pairs):
        one_each = clients / ((1 - DISCARD) * math.exp(float(pairs.mean(axis=0).min())))
        longest = max(longest, min(one_each, LONGEST))
    room = session_seconds / (SLICES_A_BLOCK * MIN_BLOCKS)
    whole = min(max(SLOWEST_LEAST * slowest, min(SLOWEST_FIT * slowest, room)), LONGEST)
    longest = max(longest, whole)
    if len(pairs) == 0:
        return max(min(DEFAULT_SLICE, longest), whole)
    least_rate = math.exp(float(pairs.mean(axis=0).min()))
    floor = max(LEAST_OPERATIONS / ((1 - DISCARD) * least_rate), whole)
    costs = _block_costs((pairs - pairs.mean(axis=0)).ravel(), fine_seconds, candidates, switch_seconds)
    allowed = {length: cost for length, cost in costs.items() if floor <= length <= longest}
    if not allowed:
        # The pilot was too short, or operations are too slow for any candidate: the bounds decide.
        return min(max(DEFAULT_SLICE, floor), longest)
    best = min(allowed.values())
    return min(length for length, cost in allowed.items() if cost <= 1.1 * best)


def _block_costs(noise: Floats, step: float, candidates: Sequence[float], switch: float) -> dict[float, float]:
    """Variance of a block's value × its time, for each candidate of which three blocks fit into `noise` (in steps of `step`
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
