"""fio: measures what encryption costs storage itself: fio on both arms' directories, without a server, in the mirrored
order of the load.

A slice is one run of fio on one arm: its jobs one after the other, none longer than `SECONDS`. Reads and writes go
through the page cache, because encrypted ext4 and FUSE have no direct I/O. Before each job, the file's pages are
dropped (fio's `invalidate`). Each block is read at most once per job. A writing job ends with fsync, which counts in
its time. What lies below the arm's file system (a loop image's file, gocryptfs' own files) may still be cached, in both
arms alike: then a read costs decryption but no disk access.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ciphercost.host.run_ownership import hand_over, server_user
from ciphercost.model.errors import RunError
from ciphercost.model.slices import StorageSlice
from ciphercost.model.spec import Arm
from ciphercost.model.storage_jobs import JOBS
from ciphercost.plan import schedule

if TYPE_CHECKING:
    from ciphercost.host.supervisor import Supervisor

SECONDS = 0.3
"""Maximum length of a job. It ends earlier when it has processed the whole file."""
SIZE = 128 * 1024 * 1024
"""Bytes of the file in each arm's directory."""
LEAST_CELL_SECONDS = 60.0
"""Seconds of load of a cell from which fio runs without being asked for."""
LIMIT = 120.0
"""Seconds after which a run of fio is abandoned: an fsync may have to wait for other writers."""
FOLDER = "ciphercost-fio"


def find() -> str:
    """The path of fio. Empty: it isn't installed."""
    return shutil.which("fio") or ""


# ── measuring ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def measure(
    directories: Mapping[Arm, Path],
    session: int,
    seed: int,
    supervisor: Supervisor,
    *,
    cell: int = 0,
    blocks: int = 1,
    size: int = SIZE,
    seconds: float = SECONDS,
) -> Iterator[StorageSlice]:
    """Measure the blocks of one session on existing directories that the servers' user can write to. Their files are
    removed afterwards.

    A failed run of fio becomes a slice with an error. Raises RunError if fio can't create its files at all (a full
    disk).
    """
    program = find()
    if not program:
        raise RunError("fio is not installed; install it (apt-get install fio), or skip the storage measurement")
    with contextlib.ExitStack() as stack:
        files = {
            arm: stack.enter_context(_file(program, directory, size, supervisor))
            for arm, directory in directories.items()
        }
        for block in itertools.islice(schedule.blocks(seed, cell, session), blocks):
            for position, arm in enumerate(block.arms):
                draft = StorageSlice(cell, session, block.number, block.order, position, arm, "")
                length = schedule.lead_in_seconds(seconds) if position == 0 else seconds
                random_seed = schedule.slice_seed(seed, cell, session, block.number, 2000 + position) % 2**31
                try:
                    output = _run(program, files[arm], size, length, random_seed, supervisor)
                    yield from parse(output, draft)
                except RunError as error:
                    yield from (msgspec.structs.replace(draft, job=job.name, error=str(error)) for job in JOBS)


@contextlib.contextmanager
def _file(program: str, directory: Path, size: int, supervisor: Supervisor) -> Iterator[Path]:
    """The file that fio works on, written once and flushed to disk."""
    folder = directory / FOLDER
    supervisor.remove(folder)
    folder.mkdir(mode=0o700)
    try:
        hand_over(folder)
        path = folder / "file"
        script = folder / "lay-out.fio"
        script.write_text(
            f"[{FOLDER}]\nfilename={path}\nsize={size}\nrw=write\nbs=1m\nioengine=psync\nend_fsync=1\nthread=1\n"
        )
        hand_over(script)
        supervisor.run([program, "--clocksource=clock_gettime", script], user=server_user(), cwd=folder, timeout=LIMIT)
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def script(path: Path, size: int, seconds: float, seed: int) -> str:
    """An fio job file: one section per job, each waiting for the one before. Pure."""
    common = (
        f"filename={path}", f"size={size}", f"runtime={round(seconds * 1000)}ms", f"randseed={seed}",
        "ioengine=psync", "thread=1", "invalidate=1", "overwrite=1", "stonewall=1",
    )  # fmt: skip
    sections = [("global", common), *((job.name, job.options) for job in JOBS)]
    return "\n".join("\n".join((f"[{name}]", *options, "")) for name, options in sections)


def _run(program: str, path: Path, size: int, seconds: float, seed: int, supervisor: Supervisor) -> str:
    jobs = path.with_name("jobs.fio")
    jobs.write_text(script(path, size, seconds, seed))
    hand_over(jobs)
    # Skip fio's own calibration of the CPU clock, which takes longer than most jobs.
    command: list[str | Path] = [program, "--clocksource=clock_gettime", "--output-format=json", jobs]
    return supervisor.run(command, user=server_user(), cwd=path.parent, timeout=LIMIT)


def parse(output: str, draft: StorageSlice) -> list[StorageSlice]:
    """Turn fio's JSON into one slice per job, with the fields of `draft`. Unreadable output becomes slices with an
    error. Pure.
    """
    try:
        results = {
            result["jobname"]: result for result in msgspec.json.decode(output[max(output.find("{"), 0) :])["jobs"]
        }
        return [_slice(results[job.name], msgspec.structs.replace(draft, job=job.name)) for job in JOBS]
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as error:
        text = f"fio's output can't be read: {error!r}"
        return [msgspec.structs.replace(draft, job=job.name, error=text) for job in JOBS]


def _slice(result: Mapping[str, object], draft: StorageSlice) -> StorageSlice:
    if result["error"]:
        return msgspec.structs.replace(draft, error=f"fio's job {draft.job} ended with error {result['error']}")
    sides = [side for side in (result["read"], result["write"]) if isinstance(side, dict) and side["io_bytes"]]
    if len(sides) != 1:
        return msgspec.structs.replace(draft, error=f"fio's job {draft.job} moved no bytes")
    (side,) = sides
    seconds = float(side["runtime"]) / 1e3
    if "read" in draft.job:
        # fio's run time is in whole milliseconds, off by per cents for a small file; a read takes no longer than its
        # calls.
        seconds = float(side["lat_ns"]["mean"]) * int(side["total_ios"]) / 1e9
    if seconds <= 0:
        return msgspec.structs.replace(draft, error=f"fio's job {draft.job} took no measurable time; use a larger file")
    return msgspec.structs.replace(
        draft, seconds=seconds, operations=int(side["total_ios"]), bytes=int(side["io_bytes"])
    )
