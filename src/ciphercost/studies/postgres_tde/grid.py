"""The study's points: rows of the largest table × clients, TPC-B-like or SELECT-only. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ciphercost.model.errors import UsageError
from ciphercost.model.study import StudyRecord, StudyRun
from ciphercost.studies.pgbench import ROWS_A_SCALE as ROWS_A_SCALE

TPCB, SELECT = "tpcb", "select"
TITLES = {TPCB: "TPC-B-like", SELECT: "SELECT-only"}
STUDYS_CLIENTS = (10, 50)
"""The study's low and high load."""
MOST_ROWS = 10_000_000_000
"""About 1.5 TB in each arm."""
LEAST_FIO, MOST_FIO, BYTES_A_ROW = 16 << 20, 1 << 30, 150
"""Bytes of fio's file; bytes of a row of accounts with its index."""


class Point(NamedTuple):
    """One size under one load."""

    rows: int
    clients: int
    operation: str = TPCB

    @property
    def scale(self) -> int:
        """Scale for `pgbench -i -s`: the smallest that creates enough accounts."""
        return -(-self.rows // ROWS_A_SCALE)

    @property
    def cut(self) -> bool:
        """Whether pgbench creates more accounts than wanted."""
        return self.rows != self.scale * ROWS_A_SCALE

    @property
    def title(self) -> str:
        return TITLES[self.operation]

    @property
    def load(self) -> dict[str, float]:
        """The point as a record stores it."""
        stored: dict[str, float] = {
            "rows": self.rows,
            "scale": self.scale,
            "clients": self.clients,
            "threads": self.clients,
        }
        return stored | ({"select_only": 1.0} if self.operation == SELECT else {})


def numbers(given: str | int | Sequence[int], option: str, most: int = MOST_ROWS) -> tuple[int, ...]:
    """Distinct numbers in `50,500`, each at most `most`. Raises UsageError naming the option."""
    if isinstance(given, int):
        given = (given,)
    parsed = []
    for item in given.split(",") if isinstance(given, str) else given:
        text = str(item).strip().replace("_", "")
        if not text.isascii() or not text.lstrip("-").isdigit():
            raise UsageError(f"{option} {given}: '{text}' is not a whole number; write {option} 10,50")
        if int(text) < 1:
            raise UsageError(f"{option} {text}: must be at least 1")
        if int(text) > most:
            raise UsageError(f"{option} {text}: must be at most {most:,}")
        parsed.append(int(text))
    return tuple(dict.fromkeys(parsed))


def points(rows: Iterable[int], clients: Sequence[int], operations: Sequence[str]) -> list[Point]:
    """All sizes, each under every load."""
    return [Point(size, load, operation) for size in rows for operation in operations for load in clients]


def of_load(load: Mapping[str, float]) -> Point:
    """The point of a run in a record; records of earlier versions have the scale only."""
    rows = load.get("rows") or load["scale"] * ROWS_A_SCALE
    return Point(int(rows), int(load["clients"]), SELECT if load.get("select_only") else TPCB)


def of_record(record: StudyRecord) -> list[Point]:
    """The planned points of a record."""
    return [of_load(load) for load in record.grid or [record.settings]]


def of_run(run: StudyRun, record: StudyRecord) -> Point:
    return of_load(record.settings | run.load)


def studys(grid: Sequence[Point], clients: float) -> Point:
    """The point that is compared with the published figures: TPC-B-like, the load nearest to the study's, the largest size."""
    candidates = [point for point in grid if point.operation == TPCB] or list(grid)
    return min(candidates, key=lambda point: (abs(point.clients - clients), -point.rows))


def fio_bytes(rows: int) -> int:
    """Bytes of fio's file: as large as the table and its index, within limits."""
    return min(MOST_FIO, max(LEAST_FIO, rows * BYTES_A_ROW))
