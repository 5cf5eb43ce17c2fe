"""ports: which addresses are this machine's own, and whose a port is on one of them."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ciphercost.host import ports
from ciphercost.model.errors import RunError

TRIES = 5
"""Ports that are tried, since another test may listen on the same one of another address, or take one that was just free."""
TABLE = """\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 127.0.0.0/8 2 0 2
        +-- 127.0.0.0/31 1 0 0
           |-- 127.0.0.0
              /8 host LOCAL
           |-- 127.0.0.1
              /32 host LOCAL
        |-- 127.255.255.255
           /32 link BROADCAST
     +-- 192.168.7.0/24 2 0 2
        +-- 192.168.7.0/29 2 0 2
           |-- 192.168.7.0
              /24 link UNICAST
              /32 link BROADCAST
           |-- 192.168.7.5
              /32 host LOCAL
        |-- 192.168.7.255
           /32 link BROADCAST
"""
"""/proc/net/fib_trie of a machine with the address 192.168.7.5/24."""


@pytest.mark.parametrize(
    ("address", "ours"),
    [
        ("127.0.0.1", True),
        ("127.0.0.2", True),
        ("127.255.255.254", True),
        ("127.255.255.255", False),
        ("192.168.7.5", True),
        ("192.168.7.6", False),
        ("192.168.7.0", False),
        ("192.168.7.255", False),
        ("10.0.0.1", False),
        ("224.0.0.1", False),
    ],
)
def test_an_address_is_the_machines_own_if_its_routes_say_so(tmp_path: Path, address: str, ours: bool) -> None:
    table = tmp_path / "fib_trie"
    table.write_text(TABLE)
    assert ports.is_own(address, table) == ours


@pytest.mark.parametrize("table", [ports.ROUTES, Path("/nonexistent")])
def test_the_real_machine_has_loopback_and_no_address_of_documentation(table: Path) -> None:
    assert ports.is_own("127.0.0.1", table)
    assert ports.is_own("127.0.0.2", table)
    assert not ports.is_own("203.0.113.9", table)


@pytest.mark.parametrize(
    ("host", "owned"),
    [("127.0.0.2", {"127.0.0.2"}), ("127.0.0.1", {"127.0.0.1"}), ("0.0.0.0", {"127.0.0.1", "127.0.0.2"})],
)
def test_a_port_belongs_to_whoever_listens_on_that_address(host: str, owned: set[str]) -> None:
    for _ in range(TRIES):
        with socket.create_server((host, 0)) as listener:
            port = listener.getsockname()[1]
            owners = {
                address: ports.port_owner(port, os.getpid(), os.geteuid(), address)
                for address in ("127.0.0.1", "127.0.0.2")
            }
        if not any(owner.others for owner in owners.values()):
            break
    assert {address for address, owner in owners.items() if owner.ours} == owned
    assert not [owner for owner in owners.values() if owner.others]


def test_a_free_port_is_one_of_its_address() -> None:
    for left in reversed(range(TRIES)):
        with contextlib.suppress(OSError) if left else contextlib.nullcontext():
            socket.create_server(("127.0.0.2", ports.free_port("127.0.0.2"))).close()
            break


def test_an_address_that_the_machine_has_lost_is_an_error_in_words() -> None:
    with pytest.raises(RunError, match=r"listen on 203\.0\.113\.9: Cannot assign"):
        ports.free_port("203.0.113.9")


def test_a_library_that_is_replaced_is_read_again(tmp_path: Path) -> None:
    library = tmp_path / "libcrypto.so.3"
    for version in ("OpenSSL 3.0.17 1 Jul 2025", "LibreSSL 4.1.0 30 Apr 2025"):
        library.write_bytes(b"\0OpenSSL is not a version\0" + version.encode() + b"\0OpenSSL 9.9.9 1 Jan 2030")
        assert ports.library_version(library) == version
    library.write_bytes(b"\0OpenSSL\0")
    assert ports.library_version(library) == ""


ANY = "0.0.0.0"
LISTENS = """
import socket, sys
with socket.create_server((sys.argv[1], int(sys.argv[2])), family=int(sys.argv[3])):
    print("listens", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def another(address: str, port: int) -> Iterator[tuple[int, int]]:
    """(process id, port) of a process that listens there; 0: the port is taken."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    argv = [sys.executable, "-c", LISTENS, address, str(port), str(int(family))]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.pid if process.stdout.readline() else 0, port
        process.communicate()


@pytest.mark.parametrize(
    ("ours", "its"),
    [("127.0.0.1", "127.0.0.2"), ("127.0.0.1", "::1"), ("::1", "127.0.0.1"), ("::1", ANY), ("127.0.0.1", "::")],
)
def test_a_listener_is_the_one_of_its_address(ours: str, its: str) -> None:
    """Also where another server has the same port on another address."""
    for _ in range(TRIES):
        with ports.listening_at(ours) as listener, another(its, listener.getsockname()[1]) as (pid, port):
            if not pid:
                continue
            assert ports.listener(ours, port, ("",)) == os.getpid()
            if its not in (ANY, "::"):
                assert ports.listener(its, port, ("",)) == pid
            assert ports.sole_listener([(ours, port)]) == os.getpid()
            return
    pytest.fail(f"no port was free at both {ours} and {its}")


def test_a_listener_is_found_by_its_programs_name_only() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port, name = listener.getsockname()[1], Path("/proc/self/comm").read_text().strip()
        assert ports.listener("127.0.0.1", port, ("nothing", name)) == os.getpid()
        assert ports.listener("127.0.0.1", port, ("",)) == os.getpid()
        assert ports.listener("127.0.0.1", port, ("nothing",)) == 0
    assert ports.listener("127.0.0.1", port, ("",)) == 0
