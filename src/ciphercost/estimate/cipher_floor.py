"""The CPU time that ciphers alone need for what a cell's operation encrypts and decrypts, from floors measured in the run. Pure.

With TLS an operation's bytes on the wire pass the cipher once at each end. At rest the server's own counters tell how many bytes of
which files it read and wrote. If it has none, only the speed is known.
"""

from __future__ import annotations

from typing import NamedTuple

from ciphercost.estimate import parts
from ciphercost.model.cipher_work import CipherWork
from ciphercost.model.result import Cell


class StreamFloor(NamedTuple):
    """One kind of file at rest, per operation."""

    kind: str
    work: CipherWork
    pieces: bool
    """The server's own units are of any length, and may be shorter than that of `work`."""
    open_ns: float
    seal_ns: float
    """Cost of the cipher alone for each encrypted byte."""
    opened: float
    sealed: float
    """Bytes decrypted and encrypted by an operation; 0 if nothing was counted."""

    @property
    def us(self) -> float:
        return (self.opened * self.open_ns + self.sealed * self.seal_ns) / 1e3


class WireFloor(NamedTuple):
    """TLS at one end."""

    cost_ns: float
    """Of a byte."""
    sent: float
    """Bytes on the wire per operation."""

    @property
    def us(self) -> float:
        return self.cost_ns * self.sent / 1e3


class RestFloor(NamedTuple):
    """Encryption at rest by a server, or by the process that the database is part of."""

    streams: list[StreamFloor]
    operations: int
    """In which bytes were counted; 0: none were."""

    @property
    def us(self) -> float:
        return sum(stream.us for stream in self.streams)


def of(cell: Cell, end: str) -> WireFloor | RestFloor | None:
    """The floor of a cell's cipher at one end of it. None: this end has no cipher of the mechanism, or its floor is unknown."""
    if cell.enciphered is not None:
        return _at_rest(cell) if end == ("client" if cell.embedded else "server") else None
    cost = parts.floor(cell, end) if end in ("server", "client") else None
    sent = cell.arms.get("encrypted", {}).get("wire_bytes_per_op", 0.0)
    return WireFloor(cost, sent) if cost is not None and sent else None


def _at_rest(cell: Cell) -> RestFloor | None:
    assert cell.enciphered is not None
    streams, operations = [], cell.enciphered.operations
    for kind, stream in cell.enciphered.streams.items():
        open_ns, seal_ns = cell.floor.get(stream.work.key("open")), cell.floor.get(stream.work.key("seal"))
        if open_ns is None or seal_ns is None:
            return None
        read, written = (
            amount * stream.share / operations if operations else 0.0 for amount in (stream.read, stream.written)
        )
        streams.append(StreamFloor(kind, stream.work, stream.pieces, open_ns, seal_ns, read, written))
    return RestFloor(streams, operations) if streams else None
