"""listeners: the TCP sockets that listen on this machine, as the kernel reports them.

The kernel answers a request for listening sockets alone (sock_diag(7)) in a tenth of a millisecond. It writes /proc/net/tcp by going through
its table of all connections, which is sized by the machine's memory and takes milliseconds of CPU time: we read that only where sock_diag is
not available.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
REQUEST, DUMP = 0x1, 0x300
ERROR, DONE = 2, 3
LISTEN = 10
"""State of a socket, as the kernel numbers it."""
HEADER = struct.Struct("=IHHII")
"""nlmsghdr: length, type, flags, sequence, port."""
ASKED = struct.Struct("=BBBBI48x")
"""inet_diag_req_v2: family, protocol, extensions, padding, states, and an empty inet_diag_sockid."""
SOCKET = struct.Struct("=4x2s2x16s16x12xIIII")
"""inet_diag_msg: the local port, the local address, expires, queues (two), uid. The inode follows."""
INODE = struct.Struct("=I")
LARGEST = 1 << 16
"""Bytes of a datagram from the kernel; it sends 32 KiB at most."""


class ListeningSocket(msgspec.Struct, frozen=True):
    """A listening socket."""

    address: str
    """In hexadecimal digits, as the kernel writes it in /proc/net/tcp."""
    uid: int
    inode: str


def available() -> bool:
    """Whether the kernel lists sockets at all."""
    return Path("/proc/net/tcp").exists()


def listening(port: int) -> list[ListeningSocket]:
    """The sockets that listen on a port of any address of this machine, IPv4 first."""
    try:
        return [*_reported(socket.AF_INET, port), *_reported(socket.AF_INET6, port)]
    except OSError:
        return tabled(port)


def _reported(family: int, port: int) -> Iterator[ListeningSocket]:
    """Those of one address family. Raises OSError if the kernel does not answer such requests."""
    wanted = port.to_bytes(2, "big")
    for message in _messages(family):
        number, address, _, _, _, uid = SOCKET.unpack_from(message)
        if number == wanted:
            words = struct.unpack_from("=I" if family == socket.AF_INET else "=4I", address)
            (inode,) = INODE.unpack_from(message, SOCKET.size)
            yield ListeningSocket("".join(f"{word:08X}" for word in words), uid, str(inode))


def _messages(family: int) -> Iterator[bytes]:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG) as kernel:
        asked = ASKED.pack(family, socket.IPPROTO_TCP, 0, 0, 1 << LISTEN)
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


def tabled(port: int) -> list[ListeningSocket]:
    """The same, from /proc/net."""
    sockets = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                address, _, number = fields[1].rpartition(":")
                if fields[3] == "0A" and int(number, 16) == port:
                    sockets.append(ListeningSocket(address, int(fields[7]), fields[9]))
    return sockets
