"""listeners: the kernel's two ways to report what listens agree."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from ciphercost.host import listeners, ports
from conftest import Require


def made(family: int, address: str, port: int = 0) -> socket.socket:
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    found.bind((address, port))
    found.listen()
    return found


def has_ipv6() -> bool:
    try:
        made(socket.AF_INET6, "::1").close()
    except OSError:
        return False
    return True


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
    with made(family, address) as first, made(family, address, first.getsockname()[1]) as second:
        port = first.getsockname()[1]
        found = listeners.listening(port)
        assert found == listeners.tabled(port)
        assert {each.inode for each in found} == {str(os.fstat(each.fileno()).st_ino) for each in (first, second)}
        assert {each.uid for each in found} == {os.geteuid()}


def test_of_many_sockets_none_is_missed() -> None:
    many = [socket.create_server(("127.0.0.1", 0)) for _ in range(300)]
    try:
        for each in many[::17]:
            (found,) = listeners.listening(each.getsockname()[1])
            assert found.inode == str(os.fstat(each.fileno()).st_ino)
    finally:
        for each in many:
            each.close()


def test_a_connection_or_a_bound_socket_does_not_listen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert listeners.listening(client.getsockname()[1]) == []
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert listeners.listening(bound.getsockname()[1]) == []


def test_where_the_kernel_answers_no_such_request_its_table_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_: int) -> None:
        raise OSError(errno.EAFNOSUPPORT, "no netlink here")

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(listeners, "_messages", refuses)
        assert ports.port_owner(port, os.getpid(), os.geteuid()) == ports.PortOwner(ours=True)
