"""What a server's own counters told at two moments, and what was taken from where. No logic."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciphercost.model.result import Unit

Figure = Literal[
    "operations",
    "transactions",
    "connections",
    "bytes",
    "cpu_seconds",
    "encrypted_connections",
    "pages_read",
    "pages_written",
    "log_bytes",
]
"""What a counter counts, from the server's start on: bytes in both directions; CPU time of its processes; transactions where
statements are the operations, for when the server has lost count of these."""


class Count(msgspec.Struct, frozen=True):
    """One counter at one moment, without what our own reads added to it."""

    figure: Figure
    value: float
    source: str
    """The server's name for it, as reports write it."""


class Snapshot(msgspec.Struct, frozen=True):
    """All counters of a server at one moment."""

    at: float
    """Seconds on this machine's clock: the middle of the request."""
    within: float
    """Half of the seconds that the answer took: how far `at` may be off."""
    marks: tuple[str, ...]
    """What changes if the server starts again or somebody resets its counters."""
    counts: tuple[Count, ...]
    lost: str = ""
    """What changes if the server forgets operations that it has counted."""
    notes: tuple[str, ...] = ()
    """What else must be said of these counters, as sentences."""


class Busy(msgspec.Struct, frozen=True):
    """The CPU time that the server's processes took between the two moments."""

    cores: float
    """CPU seconds per second."""
    source: str


class Reading(msgspec.Struct, frozen=True):
    """The counters of one server, twice."""

    server: str
    """As people write it: `PostgreSQL at localhost:5432`."""
    operation: str
    """What counts as one operation: statement, transaction, request or command."""
    before: Snapshot
    after: Snapshot
    busy: Busy | None = None
    """From /proc. None: the server's processes can't be seen here, or the server counts its CPU time itself."""
    no_cpu: str = ""
    """Why there is no CPU time, as a clause; empty: there is one."""
    cores: int | None = None
    """CPUs that its processes may use. None: unknown."""
    notes: tuple[str, ...] = ()


class GivenLoad(msgspec.Struct, frozen=True):
    """What a user said about the load of a server. None: not said."""

    rate: float | None = None
    cpu_us: float | None = None
    bytes_per_operation: float | None = None
    connections: float | None = None
    cores: float | None = None
    round_trips: float | None = None
    units: dict[Unit, float] = {}
    """As in `Load`; only what was said."""


UNITS: dict[Figure, tuple[Unit, float]] = {
    "pages_read": ("page read", 1.0),
    "pages_written": ("page written", 1.0),
    "log_bytes": ("kilobyte of log", 1e-3),
}
"""By counter: the unit of a load that it counts, and how many one count is."""
OPTIONS = {
    "rate": "--rate",
    "cpu_us": "--cpu",
    "bytes_per_operation": "--response",
    "connections": "--connections",
    "cores": "--cores",
    "round_trips": "--round-trips",
}
"""By field of a load: the option that gives it."""
NO_CPU = (
    "--cpu is needed: {}; give the CPU time that the server takes for one operation, e.g. --cpu 300us (its busy cores, as `top` shows "
    "them there, ÷ operations per second)"
)
"""The error for a server whose CPU time can't be read, with the reason."""
TRANSACTIONS = (
    "{}, so an operation is a transaction. Each of its statements is sent and answered, so encryption adds more than this; let "
    "pg_stat_statements count them, or give --round-trips, the statements of a transaction"
)
"""What is said where statements are not counted, with the reason."""
FORGOT = "pg_stat_statements was full and forgot statements between the reads"
"""Such a reason."""
