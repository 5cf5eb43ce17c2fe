"""What encryption would cost on a server with another load than the measured one. No logic."""

from __future__ import annotations

import msgspec

from ciphercost.model.result import Part, Price


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


class Source(msgspec.Struct, frozen=True):
    """Where a figure of the load comes from."""

    figure: str
    """A field of `Load`; `seconds`: how far apart the counters were read."""
    value: float
    source: str
    """The server's name for its counter, /proc, or the option that gave the figure."""


class Prediction(msgspec.Struct, frozen=True, omit_defaults=True):
    """What encryption adds to a load on a server, with 95 % intervals."""

    engine: str
    mechanism: str
    load: Load
    basis: str
    """parts: from handshake, request and byte. operation: from what one workload's operation has more."""
    added_us: Part
    """CPU time per operation, with the operation's share of new connections."""
    request_us: float
    bytes_us: float
    connections_us: float
    """What it consists of."""
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
