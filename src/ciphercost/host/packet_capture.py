"""packet_capture: captures the TCP connections of this machine that begin while it runs. Needs the right to open packet sockets
(CAP_NET_RAW). Linux only (packet(7)).
"""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
import threading
import time
from typing import NamedTuple, Self

from ciphercost.host.ports import written
from ciphercost.host.wire_streams import Stream

ETH_P_ALL, ETH_P_IP, ETH_P_IPV6 = 0x0003, 0x0800, 0x86DD
SOL_PACKET, PACKET_STATISTICS = 263, 6
OUTGOING = 4
TCP = 6
BUFFER = 32 << 20
BUFFER_FORCE, ATTACH_FILTER = 33, 26
"""Options of sockets that Python does not name: SO_RCVBUFFORCE, for more than the kernel's usual limit, and SO_ATTACH_FILTER."""
NOTHING = struct.pack("HBBI", 0x06, 0, 0, 0)
"""A filter of one instruction that takes no packet: BPF_RET, 0 bytes."""
LONGEST = 1 << 17
HELD = 256
"""Segments that are kept of a direction while an earlier one is missing."""
SETTLE_SECONDS = 0.05
SYN, ACK = 0x02, 0x10


class Segment(NamedTuple):
    """One TCP segment."""

    source: tuple[str, int]
    target: tuple[str, int]
    sequence: int
    flags: int
    data: bytes


class Flow(NamedTuple):
    """A connection: its two ends."""

    client: tuple[str, int]
    server: tuple[str, int]


def segment(kind: int, packet: bytes) -> Segment | None:
    """The TCP segment in a packet without its link header; None: it has none, or only a fragment of one. Pure."""
    if kind == ETH_P_IP and len(packet) >= 20:
        header, total = (packet[0] & 15) * 4, int.from_bytes(packet[2:4], "big")
        fragment = int.from_bytes(packet[6:8], "big") & 0x3FFF
        if packet[9] != TCP or fragment:
            return None
        source, target = packet[12:16], packet[16:20]
        body = packet[header : total or None]
    elif kind == ETH_P_IPV6 and len(packet) >= 40:
        if packet[6] != TCP:
            return None
        source, target = packet[8:24], packet[24:40]
        size = int.from_bytes(packet[4:6], "big")
        body = packet[40 : 40 + size] if size else packet[40:]
    else:
        return None
    if len(body) < 20:
        return None
    from_port, to_port, sequence = struct.unpack("!HHI", body[:8])
    offset, flags = (body[12] >> 4) * 4, body[13]
    return Segment((written(source), from_port), (written(target), to_port), sequence, flags, body[offset:])


class _Order:
    """Puts the segments of one direction in order."""

    def __init__(self, sequence: int) -> None:
        self._next = (sequence + 1) % (1 << 32)
        self._held: dict[int, bytes] = {}

    def take(self, sequence: int, data: bytes) -> bytes:
        """What this segment adds to the bytes in order; empty while an earlier one is missing."""
        ahead = (sequence - self._next) % (1 << 32)
        if ahead >= 1 << 31:  # sent again
            data, sequence = data[(1 << 32) - ahead :], self._next
            ahead = 0
        if ahead:
            if len(self._held) < HELD:
                self._held[sequence] = data
            return b""
        whole = bytearray(data)
        self._next = (self._next + len(data)) % (1 << 32)
        while (later := self._held.pop(self._next, None)) is not None:
            whole += later
            self._next = (self._next + len(later)) % (1 << 32)
        return bytes(whole)


class Assembly:
    """The connections whose first packet was seen. Pure."""

    def __init__(self, canary: bytes = b"") -> None:
        self.streams: dict[Flow, Stream] = {}
        self._canary = canary
        self._orders: dict[tuple[tuple[str, int], tuple[str, int]], _Order] = {}

    def add(self, taken: Segment) -> None:
        way = taken.source, taken.target
        if taken.flags & SYN:
            self._orders[way] = _Order(taken.sequence)
            if not taken.flags & ACK:
                self.streams[Flow(*way)] = Stream(self._canary)
            return
        order = self._orders.get(way)
        if order is None or not taken.data:
            return
        stream, by_client = self.streams.get(Flow(*way)), True
        if stream is None:
            stream, by_client = self.streams.get(Flow(*reversed(way))), False
        if stream is not None and (data := order.take(taken.sequence, taken.data)):
            stream.add(data, by_client=by_client)


class Capture:
    """Captures until it is left. `flows`: the connections that began meanwhile. Raises PermissionError where it may not."""

    def __init__(self, canary: bytes = b"", *, loopback: bool) -> None:
        """`loopback`: only what stays on this machine."""
        self._loopback = loopback
        self._assembly = Assembly(canary)
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, BUFFER_FORCE, BUFFER)
        except PermissionError:  # without CAP_NET_ADMIN
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        if loopback:
            self._socket.bind(("lo", ETH_P_ALL))
        self._socket.settimeout(SETTLE_SECONDS)
        self._ending = threading.Event()
        self.lost = 0
        """Packets that came faster than they were read, known once the capture has been left."""
        self._thread = threading.Thread(target=self._take, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        time.sleep(SETTLE_SECONDS)
        # No further packets, so that those that wait can all be read, however busy this machine is.
        nothing = ctypes.create_string_buffer(NOTHING, len(NOTHING))
        self._socket.setsockopt(socket.SOL_SOCKET, ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(nothing)))
        self._ending.set()
        self._thread.join()
        with contextlib.suppress(OSError):
            self.lost = struct.unpack("II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
        self._socket.close()

    @property
    def flows(self) -> dict[Flow, Stream]:
        return self._assembly.streams

    def _take(self) -> None:
        piece = bytearray(LONGEST)
        while True:
            try:
                size, address = self._socket.recvfrom_into(piece)
            except TimeoutError:
                if self._ending.is_set():
                    return
                continue
            if self._loopback and address[2] == OUTGOING:  # it comes in again
                continue
            if (taken := segment(address[1], bytes(piece[:size]))) is not None:
                self._assembly.add(taken)
