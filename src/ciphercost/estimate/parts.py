"""parts: where the cost of a mechanism comes from: handshake, request, byte. A fit across the cells of one run. Pure.

The model of the CPU time that encryption adds to an operation at one end is

    connections opened × handshake  +  round trips × request  +  bytes on the wire × byte

A round trip is a request and its answer, such as a statement: each is a TLS record, or several, in both directions, sealed and opened by itself.
A transaction of seven statements has seven. A record holds at most 16 KB, so its own cost is part of a byte's in long answers.
The model is

fitted to the cells by `least_squares`. Three unknowns need cells that open connections, cells with small requests on open ones, and cells
that read much: `connect`, `point-select`, `bulk-read`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from ciphercost.estimate import least_squares
from ciphercost.estimate.least_squares import Uncertain
from ciphercost.estimate.tally import Floats
from ciphercost.model.result import Added, Cell, Part, Parts

ENDS: tuple[tuple[Literal["server", "client"], str], ...] = (("server", "server_cpu"), ("client", "client_cpu"))
CIPHERS = ("aes128-gcm", "aes256-gcm", "chacha20")

BySession = Mapping[str, Mapping[int, float]]
"""Of one cell: what encryption adds, by end (`server_cpu`) and session, µs."""


def split(cells: Sequence[Cell], sessions: Sequence[BySession] = ()) -> list[Parts]:
    """Parts at both ends for each set of cells that differ only in the operation; none if the cells don't determine them.

    `sessions`: of each cell; empty: unknown, or the run has one session.
    """
    alike: dict[str, list[int]] = {}
    for number, cell in enumerate(cells):
        if cell.of_link:
            continue  # its clients' bytes and connections are not encrypted
        if cell.status == "ok" and cell.added and cell.pair is None and "wire_bytes_per_op" in cell.overhead:
            alike.setdefault(_like(cell), []).append(number)
    parts = []
    for numbers in alike.values():
        for end, key in ENDS:
            of = [number for number in numbers if key in cells[number].added]
            fitted = fit(cells, of, end, key, [sessions[number].get(key, {}) for number in of] if sessions else [])
            if fitted is not None:
                parts.append(fitted)
    return parts


def _like(cell: Cell) -> str:
    """What cells must have in common to be fitted together: everything but the workload and its parameters."""
    factors = {name: value for name, value in cell.factors.items() if name in cell.mechanism_factors}
    return repr(
        (cell.engine, cell.version, cell.mechanism, factors, cell.conditions, cell.regime, cell.cores, cell.encryption)
    )


def fit(
    cells: Sequence[Cell],
    numbers: list[int],
    end: Literal["server", "client"],
    key: str,
    sessions: Sequence[Mapping[int, float]] = (),
) -> Parts | None:
    """The three parts at one end, or None if the cells don't determine all of them. `sessions`: each cell's values, as in `split`."""
    if len(numbers) < 3:
        return None
    of = [cells[number] for number in numbers]
    fitted = least_squares.fit(causes_of(of), [cell.added[key] for cell in of], sessions)
    if fitted is None:
        return None
    handshake, request, byte = fitted.causes
    error = fitted.error
    return Parts(
        engine=cells[numbers[0]].engine,
        mechanism=cells[numbers[0]].mechanism,
        end=end,
        handshake_us=handshake,
        request_us=request,
        byte_ns=byte,  # µs a thousand bytes is ns a byte
        cells=numbers,
        worst=fitted.worst,
        break_even_bytes=break_even(handshake, byte, error),
        floor_ns=floor(cells[numbers[0]], end),
        error=least_squares.recorded(error),
        scatter=fitted.scatter,
    )


def causes_of(cells: Sequence[Cell]) -> Floats:
    """Connections, round trips and thousands of bytes of an operation, of shape (cells, 3)."""
    arms = [cell.arms["plain"] for cell in cells]
    return np.array(
        [
            [arm["connects"] / arm["operations"], round_trips(cell), arm["wire_bytes_per_op"] / 1e3]
            for cell, arm in zip(cells, arms, strict=True)
        ],
        dtype=float,
    )


def plain_costs(cells: Sequence[Cell]) -> tuple[float, float, float] | None:
    """What a connection, a round trip and a thousand bytes cost these cells' server without encryption, µs. None: the cells don't tell.

    They hold for the run's own server and operations, so they have no interval that would mean anything elsewhere.
    """
    each = [float(cell.arms["plain"].get("server_cpu_us_per_op") or 0.0) for cell in cells]
    if not all(each):
        return None
    fitted = least_squares.fit(causes_of(cells), [Added(us, us, us, 0.0, 2) for us in each])
    if fitted is None:
        return None
    connection, request, kilobyte = fitted.causes
    return connection.value, request.value, kilobyte.value


def round_trips(cell: Cell) -> float:
    """Requests of an operation that are sent and answered one by one: as counted on the wire, or else what the workload sends."""
    counted = cell.traffic.get("plain", {}).get("round_trips", 0.0)
    return counted or cell.statements or 1.0


def together(of: Parts, connections: float, trips: float, kilobytes: float) -> Part:
    """What an operation with so many connections, round trips and thousands of bytes adds, µs, with its 95 % interval."""
    return least_squares.together(
        (of.handshake_us, of.request_us, of.byte_ns), (connections, trips, kilobytes), of.error, of.scatter
    )


def break_even(handshake: Part, byte: Part, of: Uncertain) -> Part | None:
    """Bytes that cost as much as a handshake, with the delta method's interval of the log ratio; None unless both are above 0."""
    if handshake.low <= 0 or byte.low <= 0:
        return None
    h, b = handshake.value, byte.value
    value, half = h / b * 1e3, of.half(np.array([1 / h, 0.0, -1 / b]))
    return Part(value, value * math.exp(-half), value * math.exp(half))


def floor(cell: Cell, end: str) -> float | None:
    """The cost of the negotiated cipher alone, in ns per byte. Nearly all bytes go to the client: the server encrypts, the client decrypts.

    It was measured with the agent's library. The server may use another one, which the report mentions.
    """
    used = re.sub("[^a-z0-9]", "", cell.encryption.get("cipher", "").lower())
    cipher = next((name for name in CIPHERS if name.replace("-", "") in used), "")
    return cell.floor.get(f"{cipher}_{'seal' if end == 'server' else 'open'}")
