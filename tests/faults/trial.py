"""trial: one fault in one run, from the start of the command to the resumed run."""

from __future__ import annotations

import contextlib
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import msgspec

import steady
from ciphercost.model.result import Cell
from faults import judge
from faults.world import TIME, Fault, Going, World

LONGEST = 300.0
"""Seconds after which a run counts as hanging."""
REFERENCE_TIME = "30s"
"""Load of an undisturbed run that trials are compared with."""


class Interval(msgspec.Struct, frozen=True):
    """The encrypted arm's throughput over the plain one's, as a run found it."""

    ratio: float
    low: float
    high: float


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One row of benchmarks/faults.json."""

    target: str
    fault: str
    seed: int
    moment: float
    """Share of the undisturbed run's time."""
    stage: str
    """How far the run was, by its record."""
    struck: bool
    """False: at this moment there was nothing to break, or the run had ended."""
    status: int | None
    """The command's exit status; None: it had to be killed."""
    traceback: bool
    record: str
    left_before: list[str]
    left_after: list[str]
    """After `ciphercost clean`."""
    number: str
    """none, whole (all its blocks are whole), or damaged."""
    resumed: str
    """not needed, refused, failed, busy (no steady state), or done."""
    found: Interval | None
    """Of the run that was resumed, or did not need to be."""
    undisturbed: Interval
    """Of a run without a fault."""
    said: str
    """Last line of what the command printed."""

    @property
    def good(self) -> bool:
        """Nothing lost, nothing left behind, no number from damaged data.

        Says nothing about what the run found. A quick run has one server pair, and its interval covers that pair only
        (METHODOLOGY.md); the undisturbed run has another pair. `contains` and `apart` are counted over all trials instead.
        """
        return (
            self.status is not None
            and not self.traceback
            and self.record in ("intact", "absent")
            and not self.left_after
            and self.number != "damaged"
            and self.resumed not in ("failed", "busy")
        )

    @property
    def contains(self) -> bool | None:
        """Whether its interval contains the undisturbed ratio; None: there was nothing to resume."""
        if self.resumed in ("not needed", "refused"):
            return None
        return self.found is not None and self.found.low <= self.undisturbed.ratio <= self.found.high

    @property
    def apart(self) -> bool:
        """Whether its interval and the undisturbed one have no value in common: another server pair, or a wrong number."""
        interval, undisturbed = self.found, self.undisturbed
        return interval is not None and (interval.low > undisturbed.high or undisturbed.low > interval.high)


def reference(target: str, base: Path, prepare: Callable[[World], None], together: int) -> Interval:
    """What a target costs without a fault, from a longer run, so that its own error adds little to that of the trials.

    As many runs go on at the same time as trials do, because company can change a ratio.
    """
    with ThreadPoolExecutor(together) as pool:
        several = [pool.submit(undisturbed, target, base, prepare, REFERENCE_TIME) for _ in range(together)]
        return several[0].result()[1]


def undisturbed(target: str, base: Path, prepare: Callable[[World], None], load: str = TIME) -> tuple[float, Interval]:
    """Run a target without a fault, in what `prepare` makes: how many seconds the command took, and what it found. A run that finds no
    steady state is tried again.
    """
    for _ in range(steady.TRIES):
        took, cell = _without_a_fault(target, base, prepare, load)
        if cell.status != "no-steady-state":
            break
    return took, interval(cell)


def _without_a_fault(target: str, base: Path, prepare: Callable[[World], None], load: str) -> tuple[float, Cell]:
    with world_of(target, base, random.Random(0)) as world:
        prepare(world)
        world.load = load
        began = time.monotonic()
        going = Going(world)
        going.process.wait(LONGEST)
        took = time.monotonic() - began
        cell = judge.cell(world.run)
        assert cell is not None, going.text()
        assert going.process.returncode == 0 or cell.status == "no-steady-state", going.text()
        return took, cell


def interval(cell: Cell) -> Interval:
    estimate = cell.overhead["throughput"]
    return Interval(estimate.ratio, estimate.low, estimate.high)


def attempt(target: str, fault: Fault, seed: int, seconds: float, undisturbed: Interval, base: Path) -> Outcome:
    """One trial, in a run that takes so many seconds without a fault. Everything random comes from the seed."""
    rng = random.Random(f"{seed} {target} {fault.name}")
    moment = rng.random()
    with world_of(target, base, rng) as world:
        fault.prepare(world)
        going = Going(world)
        with contextlib.suppress(subprocess.TimeoutExpired):
            going.process.wait(moment * seconds)
        stage = going.stage()
        struck = False
        for _ in range(fault.times):
            if going.process.poll() is None:
                struck = fault.strike(going) or struck
            if fault.times > 1:
                time.sleep(0.5)
        status: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = going.process.wait(LONGEST)
        if status is None:
            going.end()
        run_id, text = going.run_id(), going.text()
        left_before = judge.left(world, run_id)
        fault.mend(world)
        for more in ([], *world.cleaning):
            world.ciphercost("clean", *more)
        left_after = judge.left(world, run_id) if left_before else []
        kept = judge.record(world.run)
        cell = judge.cell(world.run) if kept.state == "intact" else None
        how, again = resumed(world, kept, cell)
        lines = [line for line in text.splitlines() if line.strip()]
        return Outcome(
            target=target,
            fault=fault.name,
            seed=seed,
            moment=round(moment, 4),
            stage=stage,
            struck=struck,
            status=status,
            traceback="Traceback (most recent call last)" in text,
            record=kept.state,
            left_before=left_before,
            left_after=left_after,
            number=number(cell, kept),
            resumed=how,
            found=again,
            undisturbed=undisturbed,
            said=lines[-1] if lines else "",
        )


def number(cell: Cell | None, kept: judge.Record) -> str:
    """Whether the record gives a number, and whether each of its blocks is whole."""
    if cell is None or not cell.overhead:
        return "none"
    return "whole" if cell.blocks <= kept.whole_blocks else "damaged"


def resumed(world: World, kept: judge.Record, before: Cell | None) -> tuple[str, Interval | None]:
    """Resume the run; how that went, and what it found."""
    if kept.state != "intact":
        return "not needed", None
    if before is None or before.status != "ok":
        done = world.ciphercost("resume", str(world.run), "--no-progress", timeout=LONGEST)
        if "Traceback" in done.stdout + done.stderr:
            return "failed", None
        if done.returncode not in (0, 1):
            return "refused", None
    cell = judge.cell(world.run)
    if cell is not None and cell.status == "no-steady-state":
        return "busy", None
    if cell is None or "throughput" not in cell.overhead or cell.status != "ok":
        return "failed", None
    return "done", interval(cell)


@contextlib.contextmanager
def world_of(target: str, base: Path, rng: random.Random) -> Iterator[World]:
    """A trial's surroundings below `base`, removed afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="fault-", dir=base))
    directory.chmod(0o711)
    try:
        with ExitStack() as stack:
            world = World(target, directory, rng, stack)
            world.scratch_in(directory / "scratch")
            yield world
    finally:
        shutil.rmtree(directory, ignore_errors=True)
