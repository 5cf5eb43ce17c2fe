"""listeners: the kernel's two ways to report what listens agree."""

from __future__ import annotations

import errno
import os
import socket
import sys

import pytest

from ciphercost.host import listeners, ports, sock_diag
from conftest import Require

LOOPBACK = f"{int.from_bytes(socket.inet_aton('127.0.0.1'), sys.byteorder):08X}"
"""As the kernel writes it."""


def listening_socket(family: int, address: str, port: int = 0) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind((address, port))
    listener.listen()
    return listener


def has_ipv6() -> bool:
    try:
        listening_socket(socket.AF_INET6, "::1").close()
    except OSError:
        return False
    return True


def at(address: str, sockets: list[listeners.ListeningSocket]) -> list[listeners.ListeningSocket]:
    """Those at this address: another test may listen on the same port of another one."""
    return [each for each in sockets if each.address == address]


@pytest.mark.parametrize(
    ("family", "address"),
    [
        (socket.AF_INET, "127.0.0.1"),
        (socket.AF_INET, "127.200.3.4"),
        (socket.AF_INET, "0.0.0.0"),
        (socket.AF_INET6, "::"),
        (socket.AF_INET6, "::1"),
        (socket.AF_INET6, "::ffff:127.0.0.1"),
    ],
)
def test_both_ways_name_the_same_sockets(family: int, address: str, require: Require) -> None:
    require(family == socket.AF_INET or has_ipv6(), "no IPv6 here: the kernel has no ::1")
    with (
        listening_socket(family, address) as first,
        listening_socket(family, address, first.getsockname()[1]) as second,
    ):
        port = first.getsockname()[1]
        inodes = {str(os.fstat(opened.fileno()).st_ino) for opened in (first, second)}
        (where,) = {each.address for each in listeners.listening(port) if each.inode in inodes}
        listed = at(where, listeners.listening(port))
        assert listed == at(where, listeners.tabled(port))
        assert {listener.inode for listener in listed} == inodes
        assert {listener.uid for listener in listed} == {os.geteuid()}


def test_of_many_sockets_none_is_missed() -> None:
    many = [socket.create_server(("127.0.0.1", 0)) for _ in range(300)]
    try:
        for listener in many[::17]:
            (listed,) = at(LOOPBACK, listeners.listening(listener.getsockname()[1]))
            assert listed.inode == str(os.fstat(listener.fileno()).st_ino)
    finally:
        for listener in many:
            listener.close()


def test_a_connection_or_a_bound_socket_does_not_listen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert at(LOOPBACK, listeners.listening(client.getsockname()[1])) == []
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert at(LOOPBACK, listeners.listening(bound.getsockname()[1])) == []


def test_where_the_kernel_answers_no_such_request_its_table_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: int) -> None:
        raise OSError(errno.EAFNOSUPPORT, "no netlink here")

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(sock_diag, "tcp_sockets", refuses)
        assert ports.port_owner(port, os.getpid(), os.geteuid()) == ports.PortOwner(ours=True)
