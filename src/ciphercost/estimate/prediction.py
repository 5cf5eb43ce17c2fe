"""What encryption adds on a server with another load than the measured one. Pure.

In transit, the CPU time that encryption adds at the server is `parts`' model:

    new connections × handshake + operations × request + bytes × byte

which does not depend on what the operations themselves cost. Utilisation law (Denning and Buzen, 1978): busy cores = operations per second ×
CPU seconds per operation. Without parts, what one workload's operation has more stands for every operation, whatever its bytes and connections.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from ciphercost.estimate import least_squares, parts, plausible
from ciphercost.estimate.notation import number
from ciphercost.model.errors import UsageError
from ciphercost.model.prediction import Load, Prediction
from ciphercost.model.result import Cell, Part, Parts, Result
from ciphercost.model.server_counters import OPTIONS

BEYOND = 2.0
"""Times the most bytes per operation that were measured, from which the model is stretched."""
HOW = "measure the parts with `ciphercost quick`, or `ciphercost run ENGINE:tls --split`"


def measured(result: Result, like: Collection[str], server: str) -> None:
    """Check that the run measured a server like this one. `like`: names of such engines. Raises UsageError. Pure."""
    known = dict.fromkeys(cell.engine for cell in result.cells)
    if not set(known) & set(like):
        raise UsageError(
            f"--url names {server}, and run {result.id} measured {', '.join(known) or 'nothing'}: what encryption adds differs; measure it "
            f"with `ciphercost run {next(iter(like))}:tls --split`"
        )


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
    split = [each for each in result.parts if each.end == "server" and each.engine in wanted]
    found = [_by_parts(each, result, load, read) for each in split]
    fitted = {number for each in result.parts for number in each.cells}
    others = [cell for number, cell in enumerate(result.cells) if number not in fitted and cell.engine in wanted]
    alone = list(filter(_has_cost, others))
    refused = [
        OPTIONS[name] for name in ("bytes_per_operation", "connections") if getattr(load, name) and name not in read
    ]
    if not found and not alone:
        raise UsageError(f"run {result.id} has no CPU time that encryption adds at a server; {HOW}")
    if not found and refused:
        raise UsageError(
            f"{' and '.join(refused)}: run {result.id} did not measure what a byte and a connection cost; {HOW}, or leave "
            f"{'it' if len(refused) == 1 else 'them'} out"
        )
    if not found:
        return [_by_operation(cell, result, load) for cell in alone]
    if alone:
        named = ", ".join(dict.fromkeys(f"{cell.engine} {cell.mechanism}" for cell in alone))
        note = f"not predicted: {named}, of which this run has no parts, only what one workload's operation costs"
        found[-1] = msgspec.structs.replace(found[-1], notes=[*found[-1].notes, note])
    return found


def _has_cost(cell: Cell) -> bool:
    known = ("client_cpu" if cell.embedded else "server_cpu") in cell.added
    return known and cell.status == "ok" and not plausible.is_no_cost(cell) and cell.mechanism != "none"


def _by_parts(of: Parts, result: Result, load: Load, read: Collection[str]) -> Prediction:
    wires = [result.cells[number].arms["plain"]["wire_bytes_per_op"] for number in of.cells]
    notes = []
    sent = load.bytes_per_operation
    if sent is None:
        sent = min(wires)
        notes.append(
            f"an operation is taken to have {number(sent)} bytes on the wire, as the smallest that was measured; --response changes that"
        )
    elif sent > BEYOND * max(wires):
        notes.append(
            f"no operation with more than {number(max(wires))} bytes was measured, so the part of the bytes is a guess"
        )
    if not load.connections and "connections" not in read:
        notes.append("connections are taken to stay open; --connections changes that")
    if of.worst > least_squares.DOUBTFUL:
        notes.append(
            f"a cell is {of.worst:.1f} standard errors off the fit, so the three parts do not explain all of the cost; the interval contains that"
        )
    per = load.connections / load.rate
    added = parts.together(of, per, 1.0, sent / 1e3)
    pieces = (of.request_us.value, of.byte_ns.value * sent / 1e3, of.handshake_us.value * per)
    return _made(of.engine, of.mechanism, "parts", added, pieces, result, load, notes)


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
    cores = Part(*(each * load.rate / 1e6 for each in (added.value, added.low, added.high)))
    ratio = Part(*(1 + each / load.cpu_us for each in (added.value, added.low, added.high)))
    whole = None
    if load.cores is not None:
        whole = Part(*((busy + each) / load.cores for each in (cores.value, cores.low, cores.high)))
        if whole.high > 1:
            notes.append("that is more than these cores can do: the server would be saturated, and its rate would fall")
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
