"""local_socket: Unix-domain sockets: their addresses, and which process is at the other end."""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from typing import NamedTuple

from ciphercost.model.errors import RunError


class Peer(NamedTuple):
    """The process at the other end of a connection; a server's is the one that began to listen."""

    pid: int
    """0: it is in a container from which this process can't be seen, or the other way round."""
    user: int


def local_address(path: str) -> str:
    """What a Python socket takes for this path of a Unix-domain socket; after an `@` it is an abstract name. Pure."""
    return f"\0{path[1:]}" if path.startswith("@") else path


def peer_of(connection: socket.socket) -> Peer:
    """Which process is at the other end. Raises OSError."""
    pid, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return Peer(pid, user)


def connected(path: str, seconds: float) -> socket.socket:
    """A connection to the server at this path. Raises OSError."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(seconds)
    try:
        connection.connect(local_address(path))
    except OSError:
        connection.close()
        raise
    return connection


def listening(file: Path) -> socket.socket:
    """A socket of this name that listens, for processes of this user. Raises RunError if the path is too long for one."""
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(file))
    except OSError as error:
        listener.close()
        raise RunError(f"no Unix socket can be made at {file}: {error.strerror or error}") from None
    file.chmod(0o600)
    listener.listen()
    return listener
