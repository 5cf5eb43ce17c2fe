"""What encryption would cost the traffic of a log. No logic."""

from __future__ import annotations

import msgspec

from ciphercost.model.result import Part, Price


class LogCounts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a log counts in a stretch of time."""

    start: float
    """Unix time."""
    seconds: float
    """Of it that lie between the log's first and last line; above 0."""
    operations: float
    """Requests or statements."""
    connections: float
    """New ones."""
    bytes: float | None = None
    """Sent in answers. None: the log has no sizes."""


class LogStretch(msgspec.Struct, frozen=True, omit_defaults=True):
    """What encryption adds in a stretch of a log, with 95 % intervals."""

    counts: LogCounts
    cpu_seconds: Part
    """CPU time that encryption adds at the server."""
    cores: Part
    """Cores that it keeps busy on average."""
    handshakes_s: float
    requests_s: float
    bytes_s: float
    """What `cpu_seconds` consists of."""
    plain_cpu_seconds: float | None = None
    """CPU time of the same operations without encryption. None: unknown."""
    ratio: Part | None = None
    """Encrypted ÷ plain CPU time."""
    utilisation: float | None = None
    """Share of the cores that is busy without encryption. None: the number of cores was not given."""
    utilisation_encrypted: Part | None = None
    per_month: Part | None = None
    """Price of the added cores, kept for a month."""


class Replayed(msgspec.Struct, frozen=True, omit_defaults=True):
    """A measured replay of the log beside the prediction. Times are those that encryption adds to a request or statement at the server.

    A replay's transaction of several statements counts as so many.
    """

    run: str
    workload: str
    measured_us: Part
    predicted_us: Part
    """For the log's counts."""
    replayed_us: Part
    """For the connections and bytes of the replay itself."""
    off: float
    """Measured ÷ predicted − 1."""
    agree: bool
    """Whether the two differ by no more than both half-widths together, as independent errors add."""
    plain_us: float
    """Server CPU time of an operation of the replay without encryption."""
    log_connections: float
    replay_connections: float
    """For each operation."""
    log_bytes: float
    replay_bytes: float
    """On the wire, for each operation."""
    notes: list[str] = []


class LogPrediction(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a mechanism adds to the traffic of a log."""

    engine: str
    mechanism: str
    run: str
    """That measured what a handshake, a request and a byte cost."""
    cpu: str
    """The CPU on which it was."""
    whole: LogStretch
    hours: list[LogStretch]
    """Those in which the log has operations, in order."""
    busiest: int
    """Place of the hour in which encryption adds most, among hours that the log covers for long enough."""
    added_us: Part
    """CPU time for each operation of the whole log."""
    operation: str = "request"
    """What the log has lines of: request or statement."""
    busiest_second: int = 0
    """Operations in the log's busiest second. 0: unknown."""
    plain_us: float | None = None
    """CPU time of an operation without encryption. None: unknown."""
    plain_from: str = ""
    """Where it comes from: `--cpu`, or `run`: what the run's server takes for such requests."""
    cores: float | None = None
    price: Price | None = None
    model_error: float = 0.0
    """As in `Prediction`."""
    replays: list[Replayed] = []
    notes: list[str] = []
