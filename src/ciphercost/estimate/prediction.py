"""What encryption adds on a server with another load than the measured one. Pure.

In transit, the CPU time that encryption adds at the server is `parts`' model:

    new connections × handshake + round trips × request + bytes × byte

and at rest and in columns that of `unit_costs`, with the pages or values that the server handles. It does not depend on what the operations
themselves cost. Utilisation law (Denning and Buzen, 1978): busy cores = operations per second × CPU seconds per operation. Without such costs,
what one workload's operation has more stands for every operation, whatever its bytes and connections.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from ciphercost.estimate import least_squares, parts, plausible, unit_prediction
from ciphercost.estimate.notation import number
from ciphercost.model.constrained_types import BY_SOCKET
from ciphercost.model.errors import UsageError
from ciphercost.model.prediction import UNIT_OPTIONS, Load, Prediction
from ciphercost.model.result import Cell, Part, Parts, Result, Unit
from ciphercost.model.server_counters import OPTIONS

BEYOND = 2.0
"""Times the most bytes per operation that were measured, from which the model is stretched."""
OFF = "a cell is {:.1f} standard errors off the fit, so {} do not explain all of the cost; the interval contains that"
WIRE = ("bytes_per_operation", "connections", "round_trips")
"""Fields of a load that only the parts in transit use."""
HOW_UNITS = "at rest measure `ciphercost run ENGINE:MECHANISM --matrix workload=point-select,insert --cache small`, in columns --split"
MORE_MIXES = (
    "measure workloads with other mixes beside them, such as --matrix workload=point-select,insert --cache small"
)
HOW = "measure the parts with `ciphercost quick`, or `ciphercost run ENGINE:tls --split`"


def measured(result: Result, like: Collection[str], server: str) -> None:
    """Check that the run measured a server like this one. `like`: names of such engines. Raises UsageError. Pure."""
    known = dict.fromkeys(cell.engine for cell in result.cells)
    if not set(known) & set(like):
        raise UsageError(
            f"--url names {server}, and run {result.id} measured {', '.join(known) or 'nothing'}: what encryption adds differs; measure it "
            f"with `ciphercost run {next(iter(like))}:tls --split`"
        )


FROM_SOCKET = "run {} compared a Unix socket with TCP and TLS, so this holds the cost of TCP too; a run without socket= has that of TLS alone"


def predict(result: Result, load: Load, *, like: Collection[str] = (), read: Collection[str] = ()) -> list[Prediction]:
    """A prediction for each mechanism of the run that can be predicted. Raises UsageError if there is none, or if the load can't be.

    `like`: engines to predict for; empty: all of the run. `read`: fields of the load that come from a server's counters. A run
    that did not measure their parts leaves them out, and refuses only what a user gave.
    """
    if load.cores is not None and load.rate * load.cpu_us / 1e6 > load.cores:
        raise UsageError(
            f"--rate {number(load.rate)}/s with --cpu {number(load.cpu_us)}us keeps {number(load.rate * load.cpu_us / 1e6)} cores busy, "
            f"and --cores is {number(load.cores)}; give the CPU time of one operation, and the cores of all servers that share this rate"
        )
    wanted = like or {cell.engine for cell in result.cells}
    asked = [unit for unit in load.units if unit not in read]
    by_wire = [name for name in WIRE if _given(load, name) and name not in read]
    split = [parts for parts in result.parts if parts.end == "server" and parts.engine in wanted]
    fits = [fit for fit in unit_prediction.fits(result.costs) if fit.first.engine in wanted]
    # Who asks about pages means the mechanisms that are paid for by pages.
    predictions = [_by_parts(parts, result, load, read) for parts in split if by_wire or not asked]
    missing: dict[str, list[Unit]] = {}
    for fit in fits if load.units else ():
        if lacking := [unit for unit in unit_prediction.unmeasured(fit, load) if unit in asked]:
            missing[f"{fit.first.engine} {fit.first.mechanism}"] = lacking
        elif any(cost.unit in load.units or cost.unit in unit_prediction.WHOLE for cost in fit.costs):
            predictions.append(_by_units(fit, result, load))
    if asked and not any(prediction.basis == "units" for prediction in predictions):
        raise UsageError(_unmeasured(asked, missing, result))
    if predictions:
        return [*predictions[:-1], _beside(predictions[-1], predictions, result, wanted, asked, missing)]
    alone = [cell for cell in result.cells if cell.engine in wanted and _has_cost(cell)]
    if not alone:
        if any(cell.pair for cell in result.cells):
            raise UsageError(
                f"run {result.id} compares two encrypted settings, and not encryption with none, so it does not tell what encryption adds; {HOW}"
            )
        if any(cell.of_link for cell in result.cells):
            raise UsageError(
                f"run {result.id} measured the link between two servers, so it does not tell what encryption of clients' connections adds; {HOW}"
            )
        raise UsageError(f"run {result.id} has no CPU time that encryption adds at a server; {HOW}")
    if by_wire:
        raise UsageError(
            f"{' and '.join(OPTIONS[name] for name in by_wire)}: run {result.id} did not measure what a byte and a connection cost; {HOW}, "
            f"or leave {'it' if len(by_wire) == 1 else 'them'} out"
        )
    return [_by_operation(cell, result, load) for cell in alone]


def _given(load: Load, name: str) -> bool:
    return bool(getattr(load, name)) and not (name == "round_trips" and load.round_trips == 1)


def _unmeasured(asked: Sequence[Unit], missing: Mapping[str, Sequence[Unit]], result: Result) -> str:
    """Why what the user gave can't be used."""
    options = " and ".join(UNIT_OPTIONS[unit] for unit in asked)
    for who, units in missing.items():
        return (
            f"{options}: the cells of {who} in run {result.id} do not tell what a {' or a '.join(units)} costs; {MORE_MIXES}, "
            f"or leave {UNIT_OPTIONS[units[0]]} out"
        )
    return f"{options}: run {result.id} did not measure what a {' or a '.join(asked)} costs; {HOW_UNITS}"


def _beside(
    last: Prediction,
    predictions: Sequence[Prediction],
    result: Result,
    wanted: Collection[str],
    asked: Collection[str],
    missing: Mapping[str, Sequence[Unit]],
) -> Prediction:
    """The last prediction, with a note on mechanisms of the run that none of them is of."""
    predicted = {(prediction.engine, prediction.mechanism) for prediction in predictions}
    others = [
        cell
        for cell in result.cells
        if cell.engine in wanted and _has_cost(cell) and (cell.engine, cell.mechanism) not in predicted
    ]
    notes = [
        f"not predicted: {who}, whose cells do not tell what a {' or '.join(units)} costs"
        for who, units in missing.items()
    ]
    named = dict.fromkeys(f"{cell.engine} {cell.mechanism}" for cell in others)
    if (left := ", ".join(name for name in named if name not in missing)) and not asked:
        # At rest and in columns the costs are known, but not how much of such work this server does.
        options = dict.fromkeys(
            option
            for cost in result.costs
            if f"{cost.engine} {cost.mechanism}" in named
            for option in unit_prediction.asks(cost.unit)
        )
        why = (
            f"; give {' and '.join(options)}"
            if options
            else ", of which this run has only what one workload's operation costs"
        )
        notes.append(f"not predicted: {left}{why}")
    return msgspec.structs.replace(last, notes=[*last.notes, *notes])


def _has_cost(cell: Cell) -> bool:
    known = ("client_cpu" if cell.embedded else "server_cpu") in cell.added
    return known and plausible.tells_cost(cell) and cell.mechanism != "none" and not cell.of_link


def _by_parts(of: Parts, result: Result, load: Load, read: Collection[str]) -> Prediction:
    wires = [result.cells[number].arms["plain"]["wire_bytes_per_op"] for number in of.cells]
    notes = []
    sent = load.bytes_per_operation
    if sent is None:
        of_each = " for each round trip" if load.round_trips > 1 else ""
        sent = min(wires) * max(1.0, load.round_trips)
        notes.append(
            f"an operation is taken to have {number(sent)} bytes on the wire, as the smallest that was measured{of_each}; --response changes that"
        )
    elif sent > BEYOND * max(wires):
        notes.append(
            f"no operation with more than {number(max(wires))} bytes was measured, so the part of the bytes is a guess"
        )
    if not load.connections and "connections" not in read:
        notes.append("connections are taken to stay open; --connections changes that")
    if of.worst > least_squares.DOUBTFUL:
        notes.append(OFF.format(of.worst, "the three parts"))
    per = load.connections / load.rate
    added = parts.together(of, per, load.round_trips, sent / 1e3)
    pieces = (of.request_us.value * load.round_trips, of.byte_ns.value * sent / 1e3, of.handshake_us.value * per)
    prediction = _made(of.engine, of.mechanism, "parts", added, pieces, result, load, notes)
    return msgspec.structs.replace(prediction, model_error=least_squares.model_share(of.error, of.scatter))


def _by_units(fit: unit_prediction.Fit, result: Result, load: Load) -> Prediction:
    added = unit_prediction.of(fit, result, load)
    lost = " and ".join(
        f"{number(load.units[unit])} a second of: {unit}" for unit in unit_prediction.unmeasured(fit, load)
    )
    notes = [*added.notes, *([f"left out, as run {result.id} did not measure their cost: {lost}"] if lost else [])]
    if (worst := max(cost.worst for cost in fit.costs)) > least_squares.DOUBTFUL:
        notes.append(OFF.format(worst, "these costs"))
    first = fit.first
    prediction = _made(first.engine, first.mechanism, "units", added.whole, (0.0, 0.0, 0.0), result, load, notes)
    share = least_squares.model_share(first.error, first.scatter)
    return msgspec.structs.replace(prediction, units_us=added.by_unit, model_error=share)


def _by_operation(cell: Cell, result: Result, load: Load) -> Prediction:
    measured = cell.added["client_cpu" if cell.embedded else "server_cpu"]
    added = Part(measured.mean, measured.low, measured.high)
    other = (
        f"others have other bytes and connections; {HOW}"
        if cell.layer == "transit"
        else "others have other pages or values"
    )
    notes = [f"as for operations like those of {cell.workload}: {other}"]
    return _made(cell.engine, cell.mechanism, "operation", added, (added.value, 0.0, 0.0), result, load, notes)


def _made(
    engine: str,
    mechanism: str,
    basis: str,
    added: Part,
    pieces: Sequence[float],
    result: Result,
    load: Load,
    notes: list[str],
) -> Prediction:
    busy = load.rate * load.cpu_us / 1e6
    cores = Part(*(value * load.rate / 1e6 for value in (added.value, added.low, added.high)))
    ratio = Part(*(1 + value / load.cpu_us for value in (added.value, added.low, added.high)))
    whole = None
    if load.cores is not None:
        whole = Part(*((busy + value) / load.cores for value in (cores.value, cores.low, cores.high)))
        if whole.high > 1:
            notes.append("that is more than these cores can do: the server would be saturated, and its rate would fall")
    if any(warning.code == BY_SOCKET for cell in result.cells if cell.engine == engine for warning in cell.warnings):
        notes.append(FROM_SOCKET.format(result.id))
    request, by_bytes, by_connections = pieces
    return Prediction(
        engine=engine,
        mechanism=mechanism,
        load=load,
        basis=basis,
        added_us=added,
        request_us=request,
        bytes_us=by_bytes,
        connections_us=by_connections,
        busy=busy,
        added_cores=cores,
        ratio=ratio,
        utilisation=None if load.cores is None else busy / load.cores,
        utilisation_encrypted=whole,
        cpu=str(result.machine.get("cpu") or ""),
        run=result.id,
        notes=notes,
    )
