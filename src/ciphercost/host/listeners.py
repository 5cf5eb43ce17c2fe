"""listeners: the TCP sockets that listen on this machine, as the kernel reports them.

The kernel answers a request for listening sockets alone (sock_diag(7)) in a tenth of a millisecond. It writes /proc/net/tcp by going through
its table of all connections, which is sized by the machine's memory and takes milliseconds of CPU time: we read that only where sock_diag is
not available.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ciphercost.host import sock_diag

SOCKET = struct.Struct("=4x2s2x16s16x12xIIII")
"""inet_diag_msg: the local port, the local address, expires, queues (two), uid. The inode follows."""
INODE = struct.Struct("=I")


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
    for message in sock_diag.tcp_sockets(family, sock_diag.LISTEN):
        number, address, _, _, _, uid = SOCKET.unpack_from(message)
        if number == wanted:
            words = struct.unpack_from("=I" if family == socket.AF_INET else "=4I", address)
            (inode,) = INODE.unpack_from(message, SOCKET.size)
            yield ListeningSocket("".join(f"{word:08X}" for word in words), uid, str(inode))


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
