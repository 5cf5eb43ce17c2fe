"""socket_memory: memory that the kernel holds in the buffers of TCP sockets, as `ss -m` prints it. Asks the kernel by netlink (sock_diag(7)).

Counted are bytes received and not yet read, sent and not yet acknowledged, and reserved for either. The fixed part of a socket, about 3 kB for
each end, is not in it; it is the same for encrypted connections and others.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Collection, Iterator

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLM_F_REQUEST, NLM_F_DUMP = 1, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
INET_DIAG_SKMEMINFO = 7
ESTABLISHED = 1 << 1
"""Sockets in TCP_ESTABLISHED, as a mask of states."""
HEADER = struct.Struct("=IHHII")
"""nlmsghdr: length, type, flags, sequence, process."""
REQUEST = struct.Struct("=BBBBI48s")
"""inet_diag_req_v2: family, protocol, extensions, padding, states, socket."""
MESSAGE_BYTES = 72
"""Size of inet_diag_msg, which the attributes follow. Its ports are at 4 and 6, in network order."""
ATTRIBUTE = struct.Struct("=HH")
RMEM, FORWARD, WQUEUED, OPTIONS, BACKLOG = 0, 4, 5, 6, 7
"""Places in the array of INET_DIAG_SKMEMINFO (linux/sock_diag.h)."""
HELD = (RMEM, FORWARD, WQUEUED, OPTIONS, BACKLOG)
PIECE = 1 << 17


def tcp_bytes(ports: Collection[int]) -> int:
    """Bytes in the buffers of all established TCP sockets with one of these ports at either end; 0 if the kernel does not say."""
    try:
        return sum(
            held
            for family in (socket.AF_INET, socket.AF_INET6)
            for near, far, held in _sockets(family)
            if near in ports or far in ports
        )
    except OSError:
        return 0


def _sockets(family: int) -> Iterator[tuple[int, int, int]]:
    """(own port, the other end's, bytes held) of each socket. Raises OSError."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as kernel:
        body = REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (INET_DIAG_SKMEMINFO - 1), 0, ESTABLISHED, bytes(48))
        kernel.send(HEADER.pack(HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 1, 0) + body)
        while True:
            answer = kernel.recv(PIECE)
            at = 0
            while at + HEADER.size <= len(answer):
                length, kind, *_ = HEADER.unpack_from(answer, at)
                if kind == NLMSG_DONE or length < HEADER.size:
                    return
                if kind == NLMSG_ERROR:
                    raise OSError("the kernel does not answer sock_diag")
                yield _one(answer[at + HEADER.size : at + length])
                at += (length + 3) & ~3


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
