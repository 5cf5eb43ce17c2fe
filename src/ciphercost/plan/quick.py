"""quick: the spec of `ciphercost quick`: SQLite inside the agent, which every machine has, and PostgreSQL where it can be had."""

from __future__ import annotations

from ciphercost import engines
from ciphercost.load.units import duration
from ciphercost.model.errors import CiphercostError, UsageError
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import schedule
from ciphercost.plan.specs import check

POSTGRESQL = (
    CellSpec("postgresql", "tls", workload="point-select", regime="one-core"),
    CellSpec("postgresql", "tls", workload="bulk-read", regime="one-core"),
    CellSpec("postgresql", "tls", workload="connect", regime="one-core"),
)
"""A request, bytes, a handshake."""
EMBEDDED = (
    CellSpec("sqlite", "sqlcipher", workload="point-select", regime="one-core"),
    CellSpec("sqlite", "sqlcipher", workload="insert", regime="one-core"),
)
"""Pages read, pages written."""
CELLS = POSTGRESQL + EMBEDDED
MORE = (
    "PostgreSQL was left out: none was found or could be fetched. For its {} cells install it (Debian: apt-get install postgresql); "
    "`ciphercost install postgresql` shows why it could not be fetched."
)


def cells() -> tuple[list[CellSpec], str]:
    """What this machine can measure, and a line on what to install for more (empty: it has all). PostgreSQL is fetched if need be."""
    try:
        engines.get("postgresql").find()
    except CiphercostError:
        return list(EMBEDDED), MORE.format(len(POSTGRESQL))
    return list(CELLS), ""


def spec(seed: int = 0, time: str | None = None, cells: list[CellSpec] | None = None) -> Spec:
    """One session a cell, on one core, for a minute altogether (or `time`). Raises UsageError for a time that is none. Pure."""
    chosen = list(CELLS) if cells is None else cells
    whole = duration(time) if time else 60.0
    made = check(Spec(cells=chosen, seed=seed, mode="quick", sessions=1, time=whole / len(chosen), latency=False))
    least = max(schedule.least_seconds(made, cell) for cell in chosen) * len(chosen)
    if time and whole < least:
        raise UsageError(
            f"--time {time}: too short for the {len(chosen)} cells of `quick`; give it --time {least:.0f}s or more"
        )
    return made
