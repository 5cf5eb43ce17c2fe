"""fio: what encryption costs storage itself: fio on both arms' directories, without a server, in the mirrored order of the load.

A slice is one run of fio on one arm: its jobs one after the other, none longer than `SECONDS`. Reads and writes go through the page
cache, since encrypted ext4 and FUSE have no direct I/O: before each job the file's pages are given up (fio's `invalidate`), each
block is read at most once a job, and a writing job ends with fsync, which is in its time. What lies below the arm's file system (a loop
image's file, gocryptfs' own files) may still be cached, in both arms alike: then a read costs decryption but no disk.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from ciphercost import plan, statistics
from ciphercost.errors import RunError
from ciphercost.estimate import around, stated
from ciphercost.guard import hand_over, server_user
from ciphercost.model import ARMS, Arm, Estimate, Mode, StorageSlice
from ciphercost.statistics import Floats

if TYPE_CHECKING:
    from ciphercost.guard import Guard

SECONDS = 0.3
"""Of a job, at most: it ends when it has been through the whole file."""
SIZE = 128 * 1024 * 1024
"""Bytes of the file in each arm's directory."""
LIMIT = 120.0
"""Seconds that one run of fio may take before it is given up: an fsync may have to wait for what others write."""
FOLDER = "ciphercost-fio"


class Job(NamedTuple):
    """One way to use storage."""

    name: str
    options: tuple[str, ...]
    latency: bool = False
    """What is told is the time of an operation, not bytes a second."""


JOBS = (
    Job("sequential_read", ("rw=read", "bs=128k")),
    Job("random_read", ("rw=randread", "bs=8k")),
    Job("sequential_write", ("rw=write", "bs=128k", "end_fsync=1")),
    Job("random_write", ("rw=randwrite", "bs=8k", "end_fsync=1")),
    Job("fsync_latency", ("rw=write", "bs=4k", "fsync=1"), latency=True),
)
LATENCIES = frozenset(job.name for job in JOBS if job.latency)


def find() -> str:
    """Where fio is; empty: it isn't installed."""
    return shutil.which("fio") or ""


# ── measuring ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def measure(
    directories: Mapping[Arm, Path],
    session: int,
    seed: int,
    guard: Guard,
    *,
    cell: int = 0,
    blocks: int = 1,
    size: int = SIZE,
    seconds: float = SECONDS,
) -> Iterator[StorageSlice]:
    """Blocks of one session on directories that are there and that the servers' user can write; their files are removed afterwards.

    A run of fio that fails is a slice with an error. Raises RunError where fio can't make its files at all (a full disk).
    """
    program = find()
    if not program:
        raise RunError("fio is not installed; install it (apt-get install fio), or leave storage unmeasured")
    with contextlib.ExitStack() as stack:
        files = {
            arm: stack.enter_context(_file(program, directory, size, guard)) for arm, directory in directories.items()
        }
        for block in itertools.islice(plan.blocks(seed, cell, session), blocks):
            for position, arm in enumerate(block.arms):
                draft = StorageSlice(cell, session, block.number, block.order, position, arm, "")
                length = plan.lead_in_seconds(seconds) if position == 0 else seconds
                random_seed = plan.slice_seed(seed, cell, session, block.number, 2000 + position) % 2**31
                try:
                    output = _run(program, files[arm], size, length, random_seed, guard)
                    yield from parse(output, draft)
                except RunError as error:
                    yield from (msgspec.structs.replace(draft, job=job.name, error=str(error)) for job in JOBS)


@contextlib.contextmanager
def _file(program: str, directory: Path, size: int, guard: Guard) -> Iterator[Path]:
    """The file that fio works on, written once and on the disk."""
    folder = directory / FOLDER
    guard.remove(folder)
    folder.mkdir(mode=0o700)
    try:
        hand_over(folder)
        path = folder / "file"
        script = folder / "lay-out.fio"
        script.write_text(
            f"[{FOLDER}]\nfilename={path}\nsize={size}\nrw=write\nbs=1m\nioengine=psync\nend_fsync=1\nthread=1\n"
        )
        hand_over(script)
        guard.run([program, "--clocksource=clock_gettime", script], user=server_user(), cwd=folder, timeout=LIMIT)
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def script(path: Path, size: int, seconds: float, seed: int) -> str:
    """A job file: one section a job, each waiting for the one before. Pure."""
    common = (
        f"filename={path}", f"size={size}", f"runtime={round(seconds * 1000)}ms", f"randseed={seed}",
        "ioengine=psync", "thread=1", "invalidate=1", "overwrite=1", "stonewall=1",
    )  # fmt: skip
    sections = [("global", common), *((job.name, job.options) for job in JOBS)]
    return "\n".join("\n".join((f"[{name}]", *options, "")) for name, options in sections)


def _run(program: str, path: Path, size: int, seconds: float, seed: int, guard: Guard) -> str:
    jobs = path.with_name("jobs.fio")
    jobs.write_text(script(path, size, seconds, seed))
    hand_over(jobs)
    # Without its own calibration of the CPU's clock, which takes longer than most jobs.
    command: list[str | Path] = [program, "--clocksource=clock_gettime", "--output-format=json", jobs]
    return guard.run(command, user=server_user(), cwd=path.parent, timeout=LIMIT)


def parse(output: str, draft: StorageSlice) -> list[StorageSlice]:
    """fio's JSON -> a slice for each job, the fields of `draft` in it. What is no such JSON is slices with an error. Pure."""
    try:
        found = {each["jobname"]: each for each in msgspec.json.decode(output[max(output.find("{"), 0) :])["jobs"]}
        return [_slice(found[job.name], msgspec.structs.replace(draft, job=job.name)) for job in JOBS]
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as error:
        text = f"fio's output can't be read: {error!r}"
        return [msgspec.structs.replace(draft, job=job.name, error=text) for job in JOBS]


def _slice(found: Mapping[str, object], draft: StorageSlice) -> StorageSlice:
    if found["error"]:
        return msgspec.structs.replace(draft, error=f"fio's job {draft.job} ended with error {found['error']}")
    sides = [side for side in (found["read"], found["write"]) if isinstance(side, dict) and side["io_bytes"]]
    if len(sides) != 1:
        return msgspec.structs.replace(draft, error=f"fio's job {draft.job} moved no bytes")
    (side,) = sides
    seconds = float(side["runtime"]) / 1e3
    if "read" in draft.job:
        # Told in milliseconds, a pass over a small file would be off by per cents; a read is no longer than its calls.
        seconds = float(side["lat_ns"]["mean"]) * int(side["total_ios"]) / 1e9
    if seconds <= 0:
        return msgspec.structs.replace(draft, error=f"fio's job {draft.job} was over in no time; give it a larger file")
    return msgspec.structs.replace(
        draft, seconds=seconds, operations=int(side["total_ios"]), bytes=int(side["io_bytes"])
    )


# ── estimating ────────────────────────────────────────────────────────────────────────────────────────────────────────


def estimate(slices: Iterable[StorageSlice], mode: Mode) -> dict[str, Estimate]:
    """Encrypted ÷ plain of each job with its interval, by the load's own method: complete blocks, then sessions where there are two.

    Of bytes a second, or of `fsync_latency`: the time of a write with its fsync. A job without two complete blocks has none.
    """
    found: dict[str, Estimate] = {}
    for job, sessions in _values(slices).items():
        unit = "latency" if job in LATENCIES else "bytes/s"
        ratios = [own[:, 1] for own in sessions]
        if mode == "full" and len(ratios) >= 2:
            centres = np.array([statistics.hodges_lehmann(own) for own in ratios])
            found[job] = stated(statistics.session_interval(centres), mode, unit)
        elif sum(map(len, ratios)) >= 2:
            found[job] = stated(statistics.block_interval(np.concatenate(ratios)), mode, unit)
    return found


def levels(slices: Sequence[StorageSlice], mode: Mode) -> dict[Arm, dict[str, float]]:
    """What each arm did: bytes a second, and µs of a write with its fsync; encrypted ÷ plain is the ratio of `estimate`."""
    found: dict[Arm, dict[str, float]] = {arm: {} for arm in ARMS}
    for job, sessions in _values(slices).items():
        groups = sessions if mode == "full" else [np.concatenate(sessions)]
        level, ratio = (
            float(np.mean([statistics.hodges_lehmann(own[:, column]) for own in groups])) for column in (0, 1)
        )
        done = [each for (_, _, name), four in _blocks(slices).items() if name == job for each in four]
        scale = 1e6 if job in LATENCIES else sum(each.bytes for each in done) / sum(each.operations for each in done)
        for arm, value in around(level, ratio).items():
            found[arm][job] = value * scale
    return found


def _values(slices: Iterable[StorageSlice]) -> dict[str, list[Floats]]:
    """By job, of each session its blocks: log of both arms' level together (operations a second; of a latency seconds) and log ratio."""
    values: defaultdict[str, defaultdict[int, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for (session, _, job), four in _blocks(slices).items():
        turn = -1 if job in LATENCIES else 1
        rates = [turn * math.log(each.operations / each.seconds) for each in four]
        sign = 1 if four[0].arm == "plain" else -1
        ratio = sign * (rates[1] + rates[2] - rates[0] - rates[3]) / 2
        values[job][session].append((sum(rates) / 4, ratio))
    return {job.name: [np.array(own) for own in values[job.name].values()] for job in JOBS if values[job.name]}


def _blocks(slices: Iterable[StorageSlice]) -> dict[tuple[int, int, str], list[StorageSlice]]:
    """Complete blocks, (session, block, job) -> four good slices in mirrored order; with a lead-in that went wrong there is none."""
    grouped: defaultdict[tuple[int, int, str], dict[int, StorageSlice]] = defaultdict(dict)
    spoilt: set[tuple[int, int, str]] = set()
    for each in slices:
        here = each.session, each.block, each.job
        if each.error or each.operations <= 0 or each.seconds <= 0:
            spoilt.add(here)
        elif each.position:
            grouped[here][each.position] = each
    found = {}
    for here, positions in grouped.items():
        if here in spoilt or sorted(positions) != [1, 2, 3, 4]:
            continue
        four = [positions[number] for number in (1, 2, 3, 4)]
        first, second = four[0].arm, four[1].arm
        if first != second and [each.arm for each in four] == [first, second, second, first]:
            found[here] = four
    return found
