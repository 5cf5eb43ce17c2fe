"""What encryption would cost on a server with another load than the measured one. No logic."""

from __future__ import annotations

import msgspec

from ciphercost.model.result import Part, Price, Unit


class Load(msgspec.Struct, frozen=True):
    """What a user's server does, without encryption."""

    rate: float
    """Operations per second."""
    cpu_us: float
    """The server's CPU time per operation."""
    bytes_per_operation: float | None = None
    """On the wire. None: unknown."""
    connections: float = 0.0
    """New connections per second."""
    cores: float | None = None
    """CPUs of all its servers together. None: unknown."""
    round_trips: float = 1.0
    """Requests of an operation that are sent and answered one by one."""
    units: dict[Unit, float] = {}
    """At rest and in columns, per second: pages, kilobytes of log, values. Empty: unknown."""


UNIT_OPTIONS: dict[Unit, str] = {
    "page read": "--pages-read",
    "page written": "--pages-written",
    "kilobyte of log": "--log",
    "value sealed": "--sealed",
    "value opened": "--opened",
    "value searched": "--searched",
}
"""By unit of a load: the option that gives it."""


class Source(msgspec.Struct, frozen=True):
    """Where a figure of the load comes from."""

    figure: str
    """A field of `Load`, or a unit of its `units`; `seconds`: how far apart the counters were read."""
    value: float
    source: str
    """The server's name for its counter, /proc, or the option that gave the figure."""


class Prediction(msgspec.Struct, frozen=True, omit_defaults=True):
    """What encryption adds to a load on a server, with 95 % intervals."""

    engine: str
    mechanism: str
    load: Load
    basis: str
    """parts: from handshake, request and byte. units: from pages, log or values. operation: from what one workload's operation has more."""
    added_us: Part
    """CPU time per operation, with the operation's share of new connections."""
    request_us: float
    bytes_us: float
    connections_us: float
    """What it consists of, by `parts`."""
    busy: float
    """Cores that the load keeps busy without encryption."""
    added_cores: Part
    ratio: Part
    """Encrypted ÷ plain CPU time for the same load; a CPU-bound server's capacity falls by this factor."""
    utilisation: float | None = None
    """Share of the cores that is busy without encryption."""
    utilisation_encrypted: Part | None = None
    per_month: Part | None = None
    """Price of the added cores for a month."""
    price: Price | None = None
    cpu: str = ""
    """The CPU on which the parts were measured."""
    run: str = ""
    notes: list[str] = []
    operation: str = ""
    """What the server counts as an operation, if its counters were read: statement, transaction, request or command. Empty
    also if the rate and the CPU time of an operation were given.
    """
    sources: list[Source] = []
    """Where the load comes from, if the server's counters were read."""
    units_us: dict[str, float] = {}
    """What it consists of, by `units`."""
    model_error: float = 0.0
    """Standard deviation of operations around what their causes add up to, as a share of it. The intervals contain it. 0: not by causes."""
