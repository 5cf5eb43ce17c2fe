"""socket_memory: memory that the kernel holds in the buffers of TCP sockets, as `ss -m` prints it.

Counted are bytes received and not yet read, sent and not yet acknowledged, and reserved for either. The fixed part of a socket, about 3 kB for
each end, is not in it; it is the same for encrypted connections and others.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Collection

from ciphercost.host import sock_diag

INET_DIAG_SKMEMINFO = 7
MESSAGE_BYTES = 72
"""Size of inet_diag_msg, which the attributes follow. Its ports are at 4 and 6, in network order."""
ATTRIBUTE = struct.Struct("=HH")
RMEM, FORWARD, WQUEUED, OPTIONS, BACKLOG = 0, 4, 5, 6, 7
"""Places in the array of INET_DIAG_SKMEMINFO (linux/sock_diag.h)."""
HELD = (RMEM, FORWARD, WQUEUED, OPTIONS, BACKLOG)


def tcp_bytes(ports: Collection[int]) -> int:
    """Bytes in the buffers of all established TCP sockets with one of these ports at either end. Raises OSError if the kernel does not say."""
    return sum(
        held
        for family in (socket.AF_INET, socket.AF_INET6)
        for near, far, held in map(_one, sock_diag.tcp_sockets(family, sock_diag.ESTABLISHED, INET_DIAG_SKMEMINFO))
        if near in ports or far in ports
    )


def _one(message: bytes) -> tuple[int, int, int]:
    """Ports and bytes of one socket. Pure."""
    near, far = struct.unpack_from("!HH", message, 4)
    at, held = MESSAGE_BYTES, 0
    while at + ATTRIBUTE.size <= len(message):
        length, kind = ATTRIBUTE.unpack_from(message, at)
        if length < ATTRIBUTE.size:
            break
        if kind == INET_DIAG_SKMEMINFO:
            words = struct.unpack_from(f"={(length - ATTRIBUTE.size) // 4}I", message, at + ATTRIBUTE.size)
            held = sum(words[place] for place in HELD if place < len(words))
        at += (length + 3) & ~3
    return near, far, held
