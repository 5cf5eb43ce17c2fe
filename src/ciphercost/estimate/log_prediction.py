"""What encryption in transit adds to the traffic of a log, in all and hour by hour. Pure.

The CPU time that encryption adds at the server is `parts`' model, with what the log counts:

    new connections × handshake + operations × request + bytes × byte

Each stretch of the log is one such sum. It differs from what a run of it would show by the errors of the three costs and by that of the model
(`model_error`), so its interval is that of `prediction`. The sum over the log is not the sum of the hours' intervals: their errors are the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from ciphercost.estimate import least_squares, parts, plausible, prediction
from ciphercost.estimate.notation import number
from ciphercost.model.errors import UsageError
from ciphercost.model.log_prediction import LogCounts, LogPrediction, LogStretch, Replayed
from ciphercost.model.result import Cell, Part, Parts, Result

LONG = 600.0
"""Seconds of an hour that a log must cover for the hour to be the busiest one, if it covers any hour for so long."""
ALIKE = 0.02
"""Share by which a replay's connections or bytes may differ from the log's before a report mentions it."""
PARSED = (
    "the costs are those of statements as that run sent them, prepared unless it had --protocol: those sent as text and parsed each time can "
    "cost more (--split --protocol simple measures them)"
)
"""Said of the log of a database."""


class Known(msgspec.Struct, frozen=True):
    """What the log does not tell and the user did. None: not told."""

    cpu_us: float | None = None
    """CPU time of an operation without encryption."""
    cores: float | None = None
    bytes_per_operation: float | None = None
    """On the wire, where the log has no sizes."""


NOTHING = Known()


def predict(
    result: Result, whole: LogCounts, hours: Sequence[LogCounts], known: Known = NOTHING, *, operation: str = "request"
) -> list[LogPrediction]:
    """A prediction for each server and mechanism of the run whose parts are known. Raises UsageError if there is none.

    `hours`: those in which the log has operations, in order; `operation`: what one is called.
    """
    split = measured(result)
    return [_one(of, result, whole, hours, known, operation) for of in split]


def measured(result: Result) -> list[Parts]:
    """What handshake, request and byte cost the servers of a run. Raises UsageError if it tells that of none."""
    if split := [of for of in result.parts if of.end == "server"]:
        return split
    raise UsageError(
        f"run {result.id} did not measure what a handshake, a request and a byte cost in transit, which a log is predicted from; "
        f"{prediction.HOW}"
    )


def replays(of: Parts | LogPrediction, measured: Result) -> list[Cell]:
    """The cells that measured what encryption adds to the same server. Raises UsageError if there is none."""
    cells = [
        cell
        for cell in measured.cells
        if _who(cell) == _who(of) and cell.pair is None and plausible.tells_cost(cell) and "server_cpu" in cell.added
    ]
    if not cells:
        raise UsageError(
            f"--against {measured.id}: it has no cell of {of.engine} with {of.mechanism} that tells what encryption adds at the server; "
            f"replay the log with `ciphercost run {of.engine}:{of.mechanism} --workload FILE.toml`"
        )
    return cells


def _one(
    of: Parts, result: Result, whole: LogCounts, hours: Sequence[LogCounts], known: Known, operation: str
) -> LogPrediction:
    cells = [result.cells[place] for place in of.cells]
    wire = _Wire(cells, known)
    plain = None if known.cpu_us is not None else parts.plain_costs(cells)
    stretches = [_stretch(counts, of, wire, plain, known) for counts in hours]
    log = _stretch(whole, of, wire, plain, known)
    busiest = _busiest(stretches)
    return LogPrediction(
        engine=of.engine,
        mechanism=of.mechanism,
        run=result.id,
        cpu=str(result.machine.get("cpu") or ""),
        whole=log,
        hours=stretches,
        busiest=busiest,
        added_us=_scaled(log.cpu_seconds, 1e6 / whole.operations),
        operation=operation,
        plain_us=None if log.plain_cpu_seconds is None else log.plain_cpu_seconds / whole.operations * 1e6,
        plain_from="--cpu" if known.cpu_us is not None else "run" if log.plain_cpu_seconds is not None else "",
        cores=known.cores,
        model_error=least_squares.model_share(of.error, of.scatter),
        notes=list(_notes(of, wire, stretches[busiest], log, known, operation)),
    )


class _Wire:
    """Bytes of operations on the wire, as the costs of a byte were measured: with headers, and in both directions."""

    def __init__(self, cells: Sequence[Cell], known: Known) -> None:
        wires = [_sent(cell) for cell in cells]
        self.least, self.most = min(wires), max(wires)
        self.given = known.bytes_per_operation
        sizes = [cell.factors.get("size", "") for cell in cells]
        with_size = [sent - float(size) for sent, size in zip(wires, sizes, strict=True) if size.isdigit()]
        self.headers = max(0.0, min(with_size)) if with_size else 0.0
        """Bytes of a request and of its answer's head."""

    def kilobytes(self, counts: LogCounts) -> float:
        """For each operation."""
        if counts.bytes is not None:
            return (self.headers + counts.bytes / counts.operations) / 1e3
        return (self.given if self.given is not None else self.least) / 1e3


def _sent(cell: Cell) -> float:
    return float(cell.arms["plain"]["wire_bytes_per_op"])


def _stretch(
    counts: LogCounts, of: Parts, wire: _Wire, plain: tuple[float, float, float] | None, known: Known
) -> LogStretch:
    per, kilobytes = counts.connections / counts.operations, wire.kilobytes(counts)
    added = _scaled(parts.together(of, per, 1.0, kilobytes), counts.operations / 1e6)
    cores = _scaled(added, 1 / counts.seconds)
    busy = None
    if known.cpu_us is not None:
        busy = known.cpu_us * counts.operations / 1e6
    elif plain is not None:
        sum_ = plain[0] * per + plain[1] + plain[2] * kilobytes
        busy = sum_ * counts.operations / 1e6 if sum_ > 0 else None
    ratio = None if busy is None else Part(*(1 + value / busy for value in _values(added)))
    share = whole = None
    if known.cores is not None and busy is not None:
        share = busy / counts.seconds / known.cores
        whole = Part(*(share + value / known.cores for value in _values(cores)))
    return LogStretch(
        counts=counts,
        cpu_seconds=added,
        cores=cores,
        handshakes_s=of.handshake_us.value * counts.connections / 1e6,
        requests_s=of.request_us.value * counts.operations / 1e6,
        bytes_s=of.byte_ns.value * kilobytes * counts.operations / 1e6,
        plain_cpu_seconds=busy,
        ratio=ratio,
        utilisation=share,
        utilisation_encrypted=whole,
    )


def _values(of: Part) -> tuple[float, float, float]:
    return of.value, of.low, of.high


def _half(of: Part) -> float:
    return (of.high - of.low) / 2


def _scaled(of: Part, by: float) -> Part:
    return Part(of.value * by, of.low * by, of.high * by)


def _busiest(hours: Sequence[LogStretch]) -> int:
    """The hour in which encryption keeps most cores busy. Of the first and the last, a log may cover a minute only, which is no hour."""
    long = [place for place, hour in enumerate(hours) if hour.counts.seconds >= LONG]
    return max(long or range(len(hours)), key=lambda place: hours[place].cores.value)


def _notes(of: Parts, wire: _Wire, busiest: LogStretch, log: LogStretch, known: Known, operation: str) -> list[str]:
    notes = []
    sent = wire.kilobytes(log.counts) * 1e3
    if log.counts.bytes is not None:
        if wire.headers:
            notes.append(
                f"a {operation} is taken to have {number(wire.headers)} bytes of headers besides what the log has, as measured"
            )
        if sent > prediction.BEYOND * wire.most:
            notes.append(
                f"no operation with more than {number(wire.most)} bytes was measured, so the part of the bytes is a guess"
            )
    elif known.bytes_per_operation is None:
        notes.append(
            f"the log has no sizes of answers: a {operation} is taken to have {number(sent)} bytes on the wire, as the smallest that was "
            "measured; --response changes that"
        )
    if operation == "statement":
        notes.append(PARSED)
    if of.worst > least_squares.DOUBTFUL:
        notes.append(prediction.OFF.format(of.worst, "the three parts"))
    if (whole := busiest.utilisation_encrypted) is not None and whole.high > 1:
        notes.append(
            "in the busiest hour that is more than these cores can do: the server would be saturated, and requests would wait"
        )
    return notes


# ── beside a measured replay ──────────────────────────────────────────────────────────────────────────────────────────


def beside(of: LogPrediction, split: Parts, measured: Result, from_run: Result) -> LogPrediction:
    """The prediction with each cell of a measured replay of the same log beside it. Raises UsageError if the run has none of this server.

    `split`: what it was predicted from; `from_run`: the run that has it.
    """
    further = [_replayed(of, split, cell, measured, from_run) for cell in replays(of, measured)]
    return msgspec.structs.replace(of, replays=[*of.replays, *further])


def _who(of: Parts | Cell | LogPrediction) -> tuple[str, str]:
    return of.engine, of.mechanism


def _replayed(of: LogPrediction, split: Parts, cell: Cell, measured: Result, from_run: Result) -> Replayed:
    fitted = [from_run.cells[place] for place in split.cells]
    wire = _Wire(fitted, NOTHING)
    counts, arm = of.whole.counts, cell.arms["plain"]
    trips = parts.round_trips(cell)
    logged = (counts.connections / counts.operations, wire.kilobytes(counts) * 1e3)
    sent = (arm.get("connects", 0) / max(1, arm["operations"]) / trips, _sent(cell) / trips)
    added = cell.added["server_cpu"]
    measured_us = _scaled(Part(added.mean, added.low, added.high), 1 / trips)
    apart = abs(measured_us.value - of.added_us.value)
    return Replayed(
        run=measured.id,
        workload=cell.workload,
        measured_us=measured_us,
        predicted_us=of.added_us,
        replayed_us=parts.together(split, sent[0], 1.0, sent[1] / 1e3),
        off=measured_us.value / of.added_us.value - 1 if of.added_us.value else math.inf,
        agree=apart <= math.hypot(_half(measured_us), _half(of.added_us)),
        plain_us=float(arm["server_cpu_us_per_op"]) / trips,
        log_connections=logged[0],
        replay_connections=sent[0],
        log_bytes=logged[1],
        replay_bytes=sent[1],
        notes=list(_differs(cell, fitted[0], measured, from_run)),
    )


def _differs(cell: Cell, fitted: Cell, measured: Result, from_run: Result) -> list[str]:
    """What else differs between both runs, and changes what encryption costs."""
    pairs = {
        "CPU": (from_run.machine.get("cpu"), measured.machine.get("cpu")),
        "version": (fitted.version, cell.version),
        "protocol": (fitted.encryption.get("protocol"), cell.encryption.get("protocol")),
        "cipher": (fitted.encryption.get("cipher"), cell.encryption.get("cipher")),
        "regime": (fitted.regime, cell.regime),
    }
    return [
        f"{name} differs: {one or 'unknown'} in the run of the costs, {other or 'unknown'} in the replay"
        for name, (one, other) in pairs.items()
        if one != other
    ]
