"""sock_diag: asks the kernel for its TCP sockets, by netlink (sock_diag(7))."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
REQUEST, DUMP = 0x1, 0x300
ERROR, DONE = 2, 3
ESTABLISHED, LISTEN = 1, 10
"""States of a socket, as the kernel numbers them."""
HEADER = struct.Struct("=IHHII")
"""nlmsghdr: length, type, flags, sequence, port."""
ASKED = struct.Struct("=BBBBI48x")
"""inet_diag_req_v2: family, protocol, extensions, padding, states, and an empty inet_diag_sockid."""
LARGEST = 1 << 16
"""Bytes of a datagram from the kernel; it sends 32 KiB at most."""


def tcp_sockets(family: int, state: int, extension: int = 0) -> Iterator[bytes]:
    """An inet_diag_msg, with its attributes, of each socket of one address family in this state. Raises OSError if the kernel does not answer.

    `extension`: the attribute that the kernel is to add, such as INET_DIAG_SKMEMINFO; 0: none.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG) as kernel:
        extensions = 1 << (extension - 1) if extension else 0
        asked = ASKED.pack(family, socket.IPPROTO_TCP, extensions, 0, 1 << state)
        kernel.sendto(HEADER.pack(HEADER.size + len(asked), SOCK_DIAG_BY_FAMILY, REQUEST | DUMP, 1, 0) + asked, (0, 0))
        while True:
            data, (sender, _) = kernel.recvfrom(LARGEST)
            while data and sender == 0:
                length, kind, *_ = HEADER.unpack_from(data)
                if kind == DONE:
                    return
                if kind == ERROR:
                    number = -struct.unpack_from("=i", data, HEADER.size)[0]
                    raise OSError(number, os.strerror(number))
                yield data[HEADER.size : length]
                data = data[(length + 3) & ~3 :]
