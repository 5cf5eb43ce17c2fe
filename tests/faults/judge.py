"""judge: what is left of a run after a fault."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import processes
import resting
from ciphercost.host import namespaces, run_ownership
from ciphercost.model import run_directory
from ciphercost.model.errors import CiphercostError
from ciphercost.model.result import Cell
from ciphercost.runs import conclude
from faults.world import World

SETTLING = 30.0
"""Seconds that a supervisor may take to undo what its run had started."""


class Record(NamedTuple):
    state: str
    """intact, absent (the run had not begun one), or what is wrong with it."""
    whole_blocks: int
    """Blocks whose four counted slices all succeeded."""


def record(directory: Path) -> Record:
    """Read everything that a run has written, as `report` and `resume` do."""
    if not (directory / "plan.json").exists():
        return Record("absent", 0)
    try:
        run_directory.read_facts(directory)
        run_directory.read_proofs(directory)
        counted: dict[tuple[int, int, str, int], int] = defaultdict(int)
        for slice_ in run_directory.read_slices(directory):
            if slice_.position and slice_.phase == "capacity" and slice_.agent is not None and not slice_.error:
                counted[slice_.cell, slice_.session, slice_.phase, slice_.block] += 1
    except (CiphercostError, OSError, ValueError) as error:
        return Record(f"damaged: {error}", 0)
    return Record("intact", sum(count == 4 for count in counted.values()))


def cell(directory: Path) -> Cell | None:
    """The run's only cell, re-estimated from its slices; None if there is nothing to estimate."""
    try:
        (estimated,) = conclude.result_of(directory).cells
    except CiphercostError:
        return None
    return estimated


def left(world: World, run_id: str) -> list[str]:
    """What the run has left on the machine, once its supervisor has had time to remove it."""
    with contextlib.suppress(AssertionError):  # what is left is what this returns
        processes.wait_for("the supervisor to finish", lambda: not _left(world, run_id), SETTLING)
    return _left(world, run_id)


def _left(world: World, run_id: str) -> list[str]:
    if not run_id:
        return []
    also = [item for look in world.also_left for item in look()]
    base = Path(world.environment.get("CIPHERCOST_SCRATCH", "") or run_ownership.scratch_base())
    remains = also + [f"process {pid}" for pid in processes.marked(run_id)]
    remains += [str(base / run_id)] if (base / run_id).exists() else []
    remains += resting.left_of(run_id)
    groups = (
        path
        for parent in run_ownership.cgroup_parents()
        for path in parent.glob(f"{run_ownership.CGROUP_PREFIX}{run_id}*")
    )
    remains += [str(path) for path in groups]
    remains += [str(path) for path in namespaces.NAMESPACES.glob(f"*{run_id}*")]
    return remains
