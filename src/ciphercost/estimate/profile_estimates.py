"""Where the CPU time goes, with intervals, from the samples of profiled slices and the cell's own CPU time. Pure.

The CPU time per operation of each arm is that of the slices that count, which ran without profiling. The samples only divide
it: a part's time is the level of its arm × its share of the arm's samples. So the parts of the added CPU time sum exactly to the
figure that the report prints, and what perf costs does not matter as long as it costs every function alike.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ciphercost.estimate import profile_parts, profile_tree, student_t
from ciphercost.estimate.cost_ratios import ADDED
from ciphercost.estimate.tally import Arms, Floats
from ciphercost.model.profile import (
    KERNEL,
    NAMELESS,
    SEPARATOR,
    End,
    EndProfile,
    Profile,
    ProfilePart,
    ProfileSlice,
    Stack,
)
from ciphercost.model.result import Added
from ciphercost.model.slices import SliceRecord
from ciphercost.model.spec import ARMS, Arm, Mode

ENDS: dict[End, str] = {"server": "server_cpu", "client": "client_cpu", "hop": "hop_cpu"}
"""By end: the key of its added CPU time."""
MOST_SYMBOLS, MOST_LIBRARIES, MOST_PROCESSES = 25, 12, 8
FEWEST_SAMPLES = 50
"""Samples of an arm at one end; with fewer there is no table of that end."""
Place = tuple[int, int, int]
"""Session, block and position of a slice."""


class Unit(NamedTuple):
    """The samples of one session or block, by arm."""

    key: int
    plain: list[tuple[ProfileSlice, SliceRecord]]
    encrypted: list[tuple[ProfileSlice, SliceRecord]]

    def of(self, arm: Arm) -> list[tuple[ProfileSlice, SliceRecord]]:
        return self.plain if arm == "plain" else self.encrypted


def profile(
    samples: Iterable[ProfileSlice],
    slices: Iterable[SliceRecord],
    arms: Arms,
    added: Mapping[str, Added],
    mode: Mode,
    void: Iterable[int] = (),
) -> Profile | None:
    """The profile of one cell; None without two complete profiled blocks, or sessions in full mode.

    `slices`: those of phase `profile`; `arms`: the blocks that count; `added`: the CPU time that encryption adds, from these;
    `void`: sessions that do not count.
    """
    by_block = _complete(samples, slices, set(void))
    by_session = arms.by_session(mode)
    units = _units(by_block, by_session=by_session)
    if len(units) < 2:
        return None  # no interval
    ends = [
        end_profile
        for end, key in ENDS.items()
        if key in added
        and (end_profile := _end(end, key, added[key], units, arms, mode, by_session=by_session)) is not None
    ]
    return Profile(blocks=len(by_block), n=len(units), ends=ends)


def _complete(
    samples: Iterable[ProfileSlice], slices: Iterable[SliceRecord], void: set[int]
) -> dict[tuple[int, int], list[tuple[ProfileSlice, SliceRecord]]]:
    """The four slices of each complete block."""
    known: dict[Place, SliceRecord] = {
        (record.session, record.block, record.position): record
        for record in slices
        if record.agent is not None and not record.error
    }
    blocks: dict[tuple[int, int], dict[int, tuple[ProfileSlice, SliceRecord]]] = {}
    for sample in samples:
        record = known.get((sample.session, sample.block, sample.position))
        if record is not None and sample.position and sample.session not in void:
            blocks.setdefault((sample.session, sample.block), {})[sample.position] = (sample, record)
    return {key: list(four.values()) for key, four in sorted(blocks.items()) if len(four) == 4}


def _units(blocks: Mapping[tuple[int, int], list[tuple[ProfileSlice, SliceRecord]]], *, by_session: bool) -> list[Unit]:
    units: dict[int, Unit] = {}
    for number, ((session, _), four) in enumerate(blocks.items()):
        key = session if by_session else number
        unit = units.setdefault(key, Unit(key, [], []))
        for pair in four:
            unit.of(pair[0].arm).append(pair)
    return list(units.values())


class Levels(NamedTuple):
    """CPU time per operation of both arms in the slices that count, µs, and each unit's part in it."""

    keys: list[int]
    level: dict[Arm, float]
    parts: dict[Arm, Floats]
    """Linearised: level + the mean of these is the level of a unit; shape (units,), mean 0."""


def _levels(arms: Arms, fields: Sequence[str], per: str, mode: Mode) -> Levels:
    sessions = np.unique(arms.sessions).tolist() if arms.by_session(mode) else list(range(len(arms.sessions)))
    level: dict[Arm, float] = {}
    parts: dict[Arm, Floats] = {}
    for arm in ARMS:
        cpu, operations = arms.by_unit(arm, mode, *fields) / 1e3, arms.by_unit(arm, mode, per)
        level[arm] = float(cpu.sum() / operations.sum())
        parts[arm] = (cpu - level[arm] * operations) * len(cpu) / float(operations.sum())
    return Levels(sessions, level, parts)


Name = Callable[[Stack, Sequence[str]], str]
"""The name of a group of stacks: a part, a library, …; the stack's frames are texts, outermost first."""


def _end(
    end: End, key: str, added: Added, units: Sequence[Unit], arms: Arms, mode: Mode, *, by_session: bool
) -> EndProfile | None:
    fields, per = next((fields, per) for name, fields, per in ADDED if name == key)
    levels = _levels(arms, fields, per, mode)
    shares = Shares(end, fields, units, levels, by_session=by_session)
    if min(shares.taken.values()) < FEWEST_SAMPLES and end != "hop":
        return None
    parts = shares.table(lambda _, frames: profile_parts.part(frames))
    order = list(profile_parts.PARTS)
    every = [
        stack
        for unit in units
        for arm in ARMS
        for sample, _ in unit.of(arm)
        for stack in sample.stacks
        if stack.end == end
    ]
    nameless = sum(
        stack.count
        for unit in units
        for arm in ARMS
        for sample, _ in unit.of(arm)
        for stack in sample.stacks
        if stack.end == end and (not stack.frames or sample.frames[stack.frames[-1]].endswith(SEPARATOR + NAMELESS))
    )
    taken = sum(stack.count for stack in every) or 1
    both = [sample for unit in units for arm in ARMS for sample, _ in unit.of(arm)]
    samples = sum(stack.count for sample in both for stack in sample.stacks)
    lost = sum(sample.lost for sample in both)
    return EndProfile(
        end=end,
        added_us=added.mean,
        low_us=added.low,
        high_us=added.high,
        parts=sorted(parts, key=lambda part: order.index(part.name)),
        processes=shares.table(lambda stack, _: stack.process, MOST_PROCESSES),
        libraries=shares.table(lambda _, frames: _library(frames), MOST_LIBRARIES),
        symbols=shares.table(lambda _, frames: frames[-1] if frames else f"memory{SEPARATOR}{NAMELESS}", MOST_SYMBOLS),
        frames=profile_tree.tree(shares.stacks()),
        samples=dict(shares.taken),
        whole=sum(sample.whole.get(end, 0) for sample in both) / taken,
        nameless=nameless / taken,
        lost=lost / (samples + lost),
        kernel=all(sample.kernel for sample in both),
        profiled_us=shares.profiled(),
    )


def _kernel_alone(frames: Sequence[str]) -> Sequence[str]:
    """The kernel's frames of a stack that ends in the kernel; otherwise all."""
    outside = [place for place, frame in enumerate(frames) if not frame.startswith(KERNEL)]
    return frames[outside[-1] + 1 :] if outside and outside[-1] < len(frames) - 1 else frames


def _library(frames: Sequence[str]) -> str:
    library = profile_parts.split(frames[-1])[0] if frames else "memory"
    return KERNEL if library.startswith(KERNEL) else library


class Shares:
    """The samples of one end, and the CPU time that they stand for."""

    def __init__(
        self, end: End, fields: Sequence[str], units: Sequence[Unit], levels: Levels, *, by_session: bool
    ) -> None:
        self._end = end
        self._fields = fields
        self._units = units
        self._levels = levels
        self._by_session = by_session
        self.taken: dict[Arm, int] = {
            arm: sum(self._count(sample) for unit in units for sample, _ in unit.of(arm)) for arm in ARMS
        }
        self._hidden: dict[Arm, Floats] = {
            arm: np.array([sum(self._unseen(*pair) for pair in unit.of(arm)) for unit in units]) for arm in ARMS
        }
        """Samples that would have been taken in the kernel, if it can't be sampled."""

    def _count(self, sample: ProfileSlice) -> int:
        return sum(stack.count for stack in sample.stacks if stack.end == self._end)

    def _cpu_ns(self, record: SliceRecord) -> float:
        agent, counters = record.agent, record.counters
        assert agent is not None
        if self._end == "client":
            return agent.cpu_user_ns + agent.cpu_system_ns
        return getattr(counters, self._fields[0], 0) if counters is not None else 0

    def _unseen(self, sample: ProfileSlice, record: SliceRecord) -> float:
        return 0.0 if sample.kernel else max(0.0, self._cpu_ns(record) / sample.period_ns - self._count(sample))

    def profiled(self) -> dict[Arm, float]:
        """CPU time per operation in the profiled slices, µs."""
        times: dict[Arm, float] = {}
        for arm in ARMS:
            records = [record for unit in self._units for _, record in unit.of(arm)]
            done = sum(record.agent.done for record in records if record.agent is not None)
            times[arm] = sum(map(self._cpu_ns, records)) / 1e3 / done if done else 0.0
        return times

    def stacks(self) -> dict[tuple[str, ...], tuple[float, float]]:
        """By stack, beginning with the process: both arms' CPU time per operation, µs.

        In the kernel a stack begins with the system call, whoever made it: with encryption another function of the program sends the same
        data, and the kernel's work for it would otherwise be in two places.
        """
        times: dict[tuple[str, ...], list[float]] = {}
        for number, arm in enumerate(ARMS):
            whole = self.taken[arm] + float(self._hidden[arm].sum())
            each_us = self._levels.level[arm] / whole if whole else 0.0
            for unit in self._units:
                for sample, _ in unit.of(arm):
                    for stack in sample.stacks:
                        if stack.end == self._end:
                            key = (stack.process, *_kernel_alone([sample.frames[frame] for frame in stack.frames]))
                            times.setdefault(key, [0.0, 0.0])[number] += stack.count * each_us
            if hidden := float(self._hidden[arm].sum()):
                times.setdefault((profile_parts.PARTS["hidden"],), [0.0, 0.0])[number] += hidden * each_us
        return {key: (plain, encrypted) for key, (plain, encrypted) in times.items()}

    def table(self, name: Name, most: int = 0) -> list[ProfilePart]:
        """A row per name, largest difference first; `most`: rows, 0: all. The rows of a table without `most` add up to the added CPU time."""
        counts: dict[Arm, list[Counter[str]]] = {
            arm: [self._counted(unit, arm, name) for unit in self._units] for arm in ARMS
        }
        names = dict.fromkeys(key for arm in ARMS for unit_counts in counts[arm] for key in unit_counts)
        rows = [
            self._row(key, {arm: np.array([float(unit_counts[key]) for unit_counts in counts[arm]]) for arm in ARMS})
            for key in names
        ]
        if any(hidden.any() for hidden in self._hidden.values()):
            rows.append(self._row("hidden", self._hidden))
        rows.sort(key=lambda row: (-abs(row.added_us), row.name))
        return rows[:most] if most else rows

    def _counted(self, unit: Unit, arm: Arm, name: Name) -> Counter[str]:
        counts: Counter[str] = Counter()
        for sample, _ in unit.of(arm):
            for stack in sample.stacks:
                if stack.end == self._end:
                    counts[name(stack, [sample.frames[frame] for frame in stack.frames])] += stack.count
        return counts

    def _row(self, name: str, counts: Mapping[Arm, Floats]) -> ProfilePart:
        """One name's CPU time, from its samples in each unit."""
        time: dict[Arm, float] = {}
        sampled, counted = np.zeros(len(self._units)), np.zeros(len(self._levels.keys))
        for arm, sign in zip(ARMS, (-1, 1), strict=True):
            all_ = (
                np.array([sum(self._count(sample) for sample, _ in unit.of(arm)) for unit in self._units])
                + self._hidden[arm]
            )
            whole = float(all_.sum())
            share = float(counts[arm].sum()) / whole if whole else 0.0
            level = self._levels.level[arm]
            time[arm] = level * share
            if whole:
                sampled += sign * level * (counts[arm] - share * all_) * len(all_) / whole
            counted += sign * share * self._levels.parts[arm]
        added = time["encrypted"] - time["plain"]
        half = self._half(sampled, counted)
        return ProfilePart(name, time["plain"], time["encrypted"], added, added - half, added + half)

    def _half(self, sampled: Floats, counted: Floats) -> float:
        """Half of the 95 % interval: from the scatter of shares over profiled units, and of CPU time over those that count.

        In full mode both come from the same sessions, and add up in each. Otherwise they are independent (Welch).
        """
        keys = [unit.key for unit in self._units]
        if self._by_session and keys == self._levels.keys:
            values = sampled + counted
            return _t(float(np.var(values, ddof=1)) / len(values), len(values) - 1) if len(values) > 1 else math.inf
        variances = [
            (float(np.var(values, ddof=1)) / len(values) if len(values) > 1 else math.inf, max(1, len(values) - 1))
            for values in (sampled, counted)
        ]
        whole = sum(variance for variance, _ in variances)
        if not 0 < whole < math.inf:
            return whole
        nu = whole**2 / sum(variance**2 / freedom for variance, freedom in variances)
        return _t(whole, nu)


def _t(variance: float, nu: float) -> float:
    return math.sqrt(variance) * student_t.quantile(0.975, nu)
