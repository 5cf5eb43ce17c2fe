"""The study's published figures and the levels in its authors' spreadsheets. Pure.

The levels come from the final spreadsheets in the public repository that the publication names. Each row of `time.csv`, `cpu.csv` and
`memory.csv` names its archive, file, cells and commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from ciphercost.studies import Study
from ciphercost.studies.column_functions.names import CPU, MEMORY, TIME

REPOSITORY = "LabRedesCefetNF/Rosa_2023"
GB = 1024**3 / 1e6
"""MB in a GB as atop prints it."""


class Columns(NamedTuple):
    """The file and columns that hold a figure's levels."""

    file: str
    prefix: str
    """Prefix of its columns `…_mean` and `…_stddev`."""
    scale: float
    """Factor to the unit of our own figures."""
    source: str
    """Name of the figure's source."""


FILES = {
    TIME: Columns("time.csv", "seconds", 1.0, "Spreadsheets, time"),
    CPU: Columns("cpu.csv", "cpu_percent", 1.0, "Spreadsheets, CPU"),
    MEMORY: Columns("memory.csv", "memory_gb", GB, "Spreadsheets, RAM"),
}

TABLE = "Table 1"
SOURCES = {
    TABLE: "cost in time of each server's functions: mean and standard deviation over the four operations",
    **{
        FILES[
            figure
        ].source: f"{what} of each operation, load, server and arm: mean and standard deviation over ten runs, in the authors' "
        f"repository {REPOSITORY}"
        for figure, what in ((TIME, "time in s"), (CPU, "sys + user CPU in %"), (MEMORY, "RAM in use in GB"))
    },
}


class Server(msgspec.Struct, frozen=True):
    """One server's mean cost in time over the four operations, as ratios to the plain arm's."""

    version: str
    algorithm: str
    """`AES-128`."""
    mode: str
    """`ECB`."""
    ratio: float
    sd: float
    """Standard deviation over the four operations."""

    @property
    def cipher(self) -> str:
        return f"{self.algorithm}-{self.mode}"


def servers(study: Study) -> dict[str, Server]:
    """By engine."""
    return {
        row["server"]: Server(
            version=row["version"],
            algorithm=row["algorithm"],
            mode=row["mode"],
            ratio=1 + float(row["cost_percent_mean"]) / 100,
            sd=float(row["cost_percent_stddev"]) / 100,
        )
        for row in study.rows("cost.csv")
    }


# ── levels: mean and standard deviation over ten runs ─────────────────────────────────────────────────────────────────


class Level(NamedTuple):
    """Mean over ten runs, and their standard deviation."""

    mean: float
    sd: float


Key = tuple[str, float]
"""Operation and records."""
Levels = Mapping[Key, Mapping[str, Level]]
"""By operation and records, then by arm."""


def levels(study: Study, figure: str, engine: str) -> dict[Key, dict[str, Level]]:
    """One server's levels of TIME in s, CPU in % or MEMORY in MB."""
    file, prefix, scale, _ = FILES[figure]
    by_key: dict[Key, dict[str, Level]] = {}
    for row in study.rows(file):
        if row["server"] == engine:
            level = Level(float(row[f"{prefix}_mean"]) * scale, float(row[f"{prefix}_stddev"]) * scale)
            by_key.setdefault((row["operation"], float(row["records"])), {})[row["arm"]] = level
    return by_key


def source(study: Study, figure: str) -> str:
    """Where a figure's levels were published."""
    rows = list(study.rows(FILES[figure].file))
    commits = ", ".join(sorted({row["commit"] for row in rows}))
    archives = " and ".join(f"`{archive}`" for archive in dict.fromkeys(row["archive"] for row in rows))
    return f"the authors' repository {REPOSITORY}, commit {commits}, {archives}"
