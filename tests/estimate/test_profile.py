"""Profiles: the parts sum exactly to the added CPU time, known shares are found, and intervals cover them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.estimate import profile_estimates, profile_tree
from ciphercost.estimate.cost_ratios import added
from ciphercost.estimate.estimator import CellEstimator
from ciphercost.model.profile import EndProfile, Profile, ProfileSlice, Stack
from ciphercost.model.result import Added
from ciphercost.model.slices import Block, SliceRecord
from ciphercost.model.spec import ARMS, Arm, Mode
from simulate import records

STACKS = {
    "cipher": ["nginx`main", "libssl.so.3`SSL_write", "libcrypto.so.3`EVP_EncryptUpdate", "libcrypto.so.3`?"],
    "record": ["nginx`main", "libssl.so.3`SSL_write"],
    "system-calls": ["nginx`main", "libc.so.6`write", "kernel`do_syscall_64", "kernel`tcp_sendmsg"],
    "rest": ["nginx`main", "nginx`ngx_http_handler"],
    "unresolved": ["nginx`?"],
}
SLOWER = math.log(0.8)
"""Log ratio of the rates of all simulated cells: with CPU time per second alike, an operation costs a quarter more."""
PLAIN_US, ENCRYPTED_US = 20.0, 25.0
"""CPU time of an operation that `records` then has, at the server and at the client."""


def samples_of(
    counts: Mapping[Arm, Mapping[str, int]], session: int, block: int, order: str, *, kernel: bool = True
) -> Iterator[ProfileSlice]:
    """A block's samples, the same in both slices of an arm; half of its counts are in each."""
    frames = list(dict.fromkeys(frame for stack in STACKS.values() for frame in stack))
    for position, arm in enumerate(Block(block, order).arms):  # type: ignore[arg-type]
        if position:
            stacks = [
                Stack(count, "server", "nginx", [frames.index(frame) for frame in STACKS[part]])
                for part, count in counts[arm].items()
                if count
            ]
            yield ProfileSlice(0, session, block, order, position, arm, 1e6, frames, stacks, kernel)


class Run:
    """A simulated cell: slices that count, profiled slices, and their samples."""

    def __init__(self, void: Sequence[int] = ()) -> None:
        self.void = void
        self.estimator = CellEstimator(void)
        self.slices: list[SliceRecord] = []
        self.samples: list[ProfileSlice] = []

    def session(
        self,
        number: int,
        drawn: np.random.Generator,
        counted: int,
        profiled: Sequence[Mapping[Arm, Mapping[str, int]]],
        effect: float = 0.0,
    ) -> None:
        """`effect`: of this session on the log of the encrypted arm's rate."""
        signs = np.where(drawn.random(counted) < 0.5, 1.0, -1.0)
        rates = drawn.normal(0, 0.01, (counted, 4))
        outside = np.array([True, False, False, True])
        encrypted = np.where((signs > 0)[:, None], ~outside, outside)
        for record in records(rates + (SLOWER + effect) * encrypted, signs, session=number):
            self.estimator.add(record)
        self.estimator._close_block()
        for block, counts in enumerate(profiled):
            sign = np.ones(1) if drawn.random() < 0.5 else -np.ones(1)
            slices = list(records(np.zeros((1, 4)), sign, session=number, first=block, phase="profile"))
            self.slices += slices
            self.samples += samples_of(counts, number, block, slices[0].order)

    def profile(self, mode: Mode) -> Profile | None:
        arms = self.estimator.main()[0]
        return profile_estimates.profile(self.samples, self.slices, arms, self.added(mode), mode, self.void)

    def added(self, mode: Mode) -> dict[str, Added]:
        return {"server_cpu": added(self.estimator.main()[0], mode)["server_cpu"]}

    def server(self, mode: Mode) -> EndProfile:
        profile = self.profile(mode)
        assert profile is not None
        return profile.ends[0]


def quick(
    drawn: np.random.Generator, shares: Mapping[Arm, Mapping[str, float]], blocks: int = 10, samples: int = 400
) -> Run:
    run = Run()
    run.session(1, drawn, 30, [drawn_counts(drawn, shares, samples) for _ in range(blocks)])
    return run


def drawn_counts(
    drawn: np.random.Generator, shares: Mapping[Arm, Mapping[str, float]], samples: int, effect: float = 0.0
) -> dict[Arm, dict[str, int]]:
    """Counts of a slice's samples. `effect`: of this session on the log of the cipher's weight."""
    counts: dict[Arm, dict[str, int]] = {}
    for arm in ARMS:
        weights = {part: share * (math.exp(effect) if part == "cipher" else 1.0) for part, share in shares[arm].items()}
        counts[arm] = {part: int(drawn.poisson(samples * weight)) for part, weight in weights.items()}
    return counts


SHARES: dict[Arm, dict[str, float]] = {
    "plain": {"system-calls": 0.75, "rest": 0.25},
    "encrypted": {"cipher": 0.16, "record": 0.04, "system-calls": 0.6, "rest": 0.2},
}
"""With 20 and 25 µs: cipher +4 µs, records +1 µs, system calls and the rest unchanged."""
TRUTH = {"cipher": 4.0, "record": 1.0, "system-calls": 0.0, "rest": 0.0}

COUNTS = st.fixed_dictionaries({part: st.integers(0, 500) for part in STACKS})
BLOCKS = st.lists(st.fixed_dictionaries(dict.fromkeys(ARMS, COUNTS)), min_size=2, max_size=5)


@given(BLOCKS, st.integers(0, 2**32), st.sampled_from(["quick", "full"]))
def test_the_parts_sum_exactly_to_the_added_cpu_time(
    blocks: list[dict[Arm, dict[str, int]]], seed: int, mode: Mode
) -> None:
    run = Run()
    for session in (1, 2, 3) if mode == "full" else (1,):
        run.session(session, np.random.default_rng(seed + session), 4, blocks)
    profile = run.profile(mode)
    assert profile is not None
    for end in profile.ends:
        assert end.added_us == run.added(mode)["server_cpu"].mean
        for partition in (end.parts, end.processes):
            assert sum(item.added_us for item in partition) == pytest.approx(end.added_us, abs=1e-9)
        levels = {arm: sum(getattr(part, f"{arm}_us") for part in end.parts) for arm in ARMS}
        assert levels["encrypted"] - levels["plain"] == pytest.approx(end.added_us, abs=1e-9)
        assert all(part.low_us <= part.added_us <= part.high_us for part in end.parts)
        assert all(math.isfinite(part.high_us) for part in end.parts)
        roots = [frame for frame in end.frames if frame.parent < 0]
        assert sum(frame.encrypted_us for frame in roots) == pytest.approx(levels["encrypted"])
    if not profile.ends:  # too few samples of one arm
        assert (
            min(sum(sum(counts[arm].values()) for counts in blocks) for arm in ARMS) * 2
            < 3 * profile_estimates.FEWEST_SAMPLES
        )


def test_known_shares_are_found() -> None:
    end = quick(np.random.default_rng(1), SHARES, blocks=20, samples=4000).server("quick")
    assert {part.name: round(part.added_us) for part in end.parts} == TRUTH
    assert [part.name for part in end.parts] == ["cipher", "record", "system-calls", "rest"]
    assert end.symbols[0].name == "libcrypto.so.3`?"
    assert end.symbols[0].added_us == pytest.approx(4, abs=0.3)


@pytest.mark.parametrize("mode", ["quick", "full"])
def test_intervals_cover_the_truth(mode: Mode) -> None:
    """Sampling noise, noise of the CPU time, and in full mode effects of the session on both."""
    runs, hits, all_ = 150, 0, 0
    for seed in range(runs):
        drawn = np.random.default_rng(seed)
        if mode == "quick":
            run = quick(drawn, SHARES)
        else:
            run = Run()
            for session in range(1, 9):
                session_effect = drawn.normal(0, 0.05)
                run.session(
                    session, drawn, 4, [drawn_counts(drawn, SHARES, 300, session_effect)], effect=-session_effect / 5
                )
        for part in run.server(mode).parts:
            hits += part.low_us <= TRUTH[part.name] <= part.high_us
            all_ += 1
    # 95 % nominal; of 600 correlated intervals fewer than 92 % would be a fault.
    assert hits / all_ >= 0.92
    assert hits / all_ < 1.0


def test_a_kernel_that_can_not_be_sampled_is_what_the_samples_leave() -> None:
    """`records` has 80 ms of CPU time in a slice, which is 80 samples of 1 ms."""
    run = Run()
    counts: dict[Arm, dict[str, int]] = {"plain": {"rest": 20}, "encrypted": {"rest": 20, "cipher": 20}}
    run.session(1, np.random.default_rng(3), 30, [counts] * 5)
    run.samples = [msgspec.structs.replace(sample, kernel=False) for sample in run.samples]
    end = run.server("quick")
    assert not end.kernel
    shares = {part.name: (part.plain_us / PLAIN_US, part.encrypted_us / ENCRYPTED_US) for part in end.parts}
    assert shares["hidden"] == pytest.approx((0.75, 0.5), abs=0.01)
    assert shares["cipher"] == pytest.approx((0, 0.25), abs=0.01)
    assert sum(part.added_us for part in end.parts) == pytest.approx(end.added_us)


def test_only_complete_blocks_of_sessions_that_count_are_used() -> None:
    good: dict[Arm, dict[str, int]] = {"plain": {"rest": 100}, "encrypted": {"rest": 100, "cipher": 100}}
    wild: dict[Arm, dict[str, int]] = {"plain": {"unresolved": 999}, "encrypted": {"unresolved": 999}}
    run = Run(void=(4,))
    for session in (1, 2, 3, 4):
        run.session(session, np.random.default_rng(session), 4, [wild if session == 4 else good, wild])
    failed = [record for record in run.slices if record.block == 1 and record.position == 2]
    run.slices = [
        msgspec.structs.replace(record, error="broken", agent=None) if record in failed else record
        for record in run.slices
    ]
    profile = run.profile("full")
    assert profile is not None
    assert (profile.blocks, profile.n) == (3, 3)
    assert "unresolved" not in {part.name for part in profile.ends[0].parts}


def test_one_block_has_no_interval_and_so_no_profile() -> None:
    run = Run()
    run.session(1, np.random.default_rng(1), 4, [{"plain": {"rest": 500}, "encrypted": {"rest": 500}}])
    assert run.profile("quick") is None


# ── the tree ──────────────────────────────────────────────────────────────────────────────────────────────────────────

TREES = st.dictionaries(
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=5).map(tuple),
    st.tuples(st.floats(0, 100), st.floats(0, 100)),
    max_size=12,
)


@given(TREES)
def test_a_frame_has_at_least_the_time_of_what_it_calls(stacks: dict[tuple[str, ...], tuple[float, float]]) -> None:
    frames = profile_tree.tree(stacks)
    below = [[0.0, 0.0] for _ in frames]
    for place, frame in enumerate(frames):
        assert frame.parent < place
        if frame.parent >= 0:
            below[frame.parent][0] += frame.plain_us
            below[frame.parent][1] += frame.encrypted_us
    for frame, (plain, encrypted) in zip(frames, below, strict=True):
        assert frame.plain_us >= plain - 1e-9
        assert frame.encrypted_us >= encrypted - 1e-9


def test_small_frames_count_to_their_caller() -> None:
    frames = profile_tree.tree({("a", "b"): (99.5, 0.0), ("a", "c"): (0.5, 0.0)})
    assert [(frame.name, frame.plain_us) for frame in frames] == [("a", 100.0), ("b", 99.5)]
