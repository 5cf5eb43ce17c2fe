"""packet_link: packets are lost as asked and delayed one by one; the interfaces count them, and nothing of the link stays."""

from __future__ import annotations

import math
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ciphercost.host import confined_start, link
from ciphercost.host.supervisor import Supervisor
from ciphercost.model import run_directory
from ciphercost.model.errors import RunError
from ciphercost.provision.packet_link import carried
from conftest import RequirePossible
from processes import wait_for

SO_RCVBUFFORCE = 33
"""Python does not name it: a buffer larger than `net.core.rmem_max`, as root."""


@pytest.fixture
def run_supervisor(require_possible: RequirePossible) -> Iterator[Supervisor]:
    require_possible(link.check_rights)
    with Supervisor(run_directory.new_id()) as run_supervisor:
        yield run_supervisor
    assert run_supervisor.problems == []


def within(path: Path, do: Callable[[], None]) -> None:
    """Do this in a thread of the link's namespace."""

    def there() -> None:
        confined_start.enter(str(path))
        do()

    thread = threading.Thread(target=there, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()


def test_each_packet_is_lost_with_the_probability_that_was_asked(run_supervisor: Supervisor) -> None:
    """Datagrams, because nothing sends those again. Every one arrives or is counted as lost."""
    count, loss = 4000, 0.2
    got: list[bytes] = []
    with (
        link.linked(run_supervisor, 0, 0, carried(0.0, loss, set())) as way,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
    ):
        server.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        server.bind(("127.0.0.1", 0))
        server.settimeout(5)

        def send() -> None:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                for number in range(count):
                    client.sendto(number.to_bytes(4, "big"), server.getsockname())

        within(way.path, send)
        wait_for("every packet", lambda: way.packets(run_supervisor).sent == count, 60)
        counted = way.packets(run_supervisor)
        got = [server.recv(100) for _ in range(count - counted.lost)]
    assert len(set(got)) == len(got)
    assert got == sorted(got)
    assert counted.overflowed == 0
    # Six standard deviations of a binomial count: a chance of one in a thousand million.
    assert abs(counted.lost - loss * count) < 6 * math.sqrt(count * loss * (1 - loss))


def test_tcp_delivers_every_byte_over_a_link_that_loses_packets_and_no_answer_comes_before_the_delay(
    run_supervisor: Supervisor,
) -> None:
    round_trip, data = 0.02, os.urandom(300_000)
    got: list[tuple[bytes, float]] = []
    with (
        link.linked(run_supervisor, 0, 1400, carried(round_trip, 0.05, set())) as way,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(1)
                peer.sendall(data)

        def ask() -> None:
            began = time.monotonic()
            with socket.create_connection(listener.getsockname(), timeout=60) as connection:
                connection.sendall(b"x")
                parts = [first := connection.recv(1 << 16)]
                took = time.monotonic() - began
                while part := connection.recv(1 << 16):
                    parts.append(part)
                assert first
                got.append((b"".join(parts), took))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        within(way.path, ask)
        thread.join(60)
        assert way.packets(run_supervisor).lost > 0
    ((received, took),) = got
    assert received == data
    assert took >= 2 * round_trip  # one to connect, one to ask


def test_the_interfaces_end_with_the_process_that_carries_the_packets(run_supervisor: Supervisor) -> None:
    with link.linked(run_supervisor, 0, 0, carried(0.0, 0.01, set())) as way:
        device = Path("/sys/class/net") / way.device
        assert device.exists()
        os.kill(way.carrier, signal.SIGKILL)
        wait_for("the interface to go", lambda: not device.exists(), 30)


def test_a_link_that_does_not_start_says_why(run_supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ciphercost.provision.packet_link.find", lambda: "false")
    with (
        pytest.raises(RunError, match="the link for --loss did not start"),
        link.linked(run_supervisor, 0, 0, carried(0.0, 0.01, set())),
    ):
        pass
