"""The drivers and the operations that the study compares. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

DRIVERS: Mapping[str, str] = MappingProxyType({"psycopg": "Python", "pgx": "Go", "node-postgres": "Node.js"})
"""By their names as clients: their language."""
PROGRAMS: Mapping[str, str] = MappingProxyType({"pgx": "go", "node-postgres": "node"})
"""What a driver that is not Python's needs on PATH, to be built or to run."""


class Operation(NamedTuple):
    """One workload, and what stands beside it as published."""

    workload: str
    figure: str
    beside: str
    """Test of PyMongo's, or when the proxy was measured."""


def name_of(driver: str, workload: str) -> str:
    """Name of a pair of arms in the record and of a cell: `pgx, connect`."""
    return f"{driver}, {workload}"


CONNECT = Operation("connect", "connections/s", "after")
ROW = Operation("point-select", "rows/s", "FindOneByID")
BULK = Operation("bulk-read", "results of 1 MB/s", "GridFsDownload")
OPERATIONS = (BULK, ROW, CONNECT)
