"""The plan of `ciphercost quick`: SQLite, which is part of the agent, and PostgreSQL if it is available."""

from __future__ import annotations

from ciphercost import engines
from ciphercost.load.units import duration
from ciphercost.model.errors import CiphercostError, UsageError
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import schedule, specs
from ciphercost.plan.planned import Plan

POSTGRESQL = (
    CellSpec("postgresql", "tls", workload="point-select", regime="one-core"),
    CellSpec("postgresql", "tls", workload="bulk-read", regime="one-core"),
    CellSpec("postgresql", "tls", workload="connect", regime="one-core"),
)
"""They show the cost of a request, of bytes and of a handshake."""
EMBEDDED = (
    CellSpec("sqlite", "sqlcipher", workload="point-select", regime="one-core"),
    CellSpec("sqlite", "sqlcipher", workload="insert", regime="one-core"),
)
"""They show the cost of reading and of writing pages."""
CELLS = POSTGRESQL + EMBEDDED
MORE = (
    "skipped the {} cells of PostgreSQL, which is neither installed nor could be fetched. Install it (Debian: apt-get install postgresql), "
    "or run `ciphercost install postgresql` to see why it could not be fetched."
)


def cells() -> tuple[list[CellSpec], str]:
    """(cells that this machine can measure, advice on what to install for the others or ""). Fetches PostgreSQL if necessary."""
    try:
        engines.get("postgresql").find()
    except CiphercostError:
        return list(EMBEDDED), MORE.format(len(POSTGRESQL))
    return list(CELLS), ""


def plan(seed: int = 0, time: str | None = None, cells: list[CellSpec] | None = None) -> Plan:
    """One session of each cell on one core, one minute in total (or `time`). Raises UsageError for an invalid or too short time. Pure."""
    return specs.plan(spec(seed, time, cells))


def spec(seed: int = 0, time: str | None = None, cells: list[CellSpec] | None = None) -> Spec:
    """The spec that `plan` plans: its length and seed are checked, its cells are not. Raises UsageError. Pure."""
    chosen = list(CELLS) if cells is None else cells
    whole = duration(time) if time else 60.0
    quick_spec = Spec(cells=chosen, seed=seed, mode="quick", sessions=1, time=whole / len(chosen), latency=False)
    specs.check_length(quick_spec)
    least = max(schedule.least_seconds(quick_spec, cell) for cell in chosen) * len(chosen)
    if time and whole < least:
        raise UsageError(
            f"--time {time}: too short for the {len(chosen)} cells of `quick`; use --time {least:.0f}s or more"
        )
    return quick_spec
