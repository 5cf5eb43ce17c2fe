"""delay: the relay forwards every byte, in order, in both directions, later; and nothing of it stays."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ciphercost.host import run_ownership
from ciphercost.host.supervisor import Supervisor
from ciphercost.model import run_directory
from ciphercost.model.connection import Connection
from ciphercost.model.errors import RunError
from ciphercost.provision import delay
from ciphercost.provision.delay import DelayRelay
from listening import Listener
from processes import wait_for

ROUND_TRIP = 0.004


def receive_all(connection: socket.socket) -> bytes:
    parts = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


class Turner(Listener):
    """A server that sends back each byte inverted as it arrives, and closes after the client has."""

    def serve(self, connection: socket.socket) -> None:
        while data := connection.recv(1 << 16):
            connection.sendall(data.translate(TURNED))


TURNED = bytes(255 - value for value in range(256))


@pytest.fixture(scope="module")
def run_supervisor() -> Iterator[Supervisor]:
    with Supervisor(run_directory.new_id()) as run_supervisor:
        yield run_supervisor
    assert run_supervisor.problems == []


@pytest.fixture(scope="module")
def relayed(run_supervisor: Supervisor) -> Iterator[int]:
    """The port of a relay in front of a `Turner`."""
    server = Turner()
    relay = DelayRelay(run_supervisor, [("127.0.0.1", server.port)], ROUND_TRIP)
    yield relay.ports["127.0.0.1", server.port]
    relay.stop()
    server.stop()


def exchange(port: int, pieces: list[bytes]) -> bytes:
    """Send pieces on one connection while reading, close it, and return what came back."""
    with socket.create_connection(("127.0.0.1", port)) as connection, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(receive_all, connection)
        for piece in pieces:
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)
        return answer.result(timeout=60)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 300_000), st.integers(0, 2**32)), max_size=6))
def test_every_byte_arrives_in_order_and_so_does_the_end(relayed: int, shapes: list[tuple[int, int]]) -> None:
    pieces = [random.Random(seed).randbytes(size) for size, seed in shapes]
    assert exchange(relayed, pieces) == b"".join(pieces).translate(TURNED)


def test_many_connections_do_not_mix(relayed: int) -> None:
    with ThreadPoolExecutor(40) as pool:
        sent = [[random.Random(number).randbytes(20_000)] * 3 for number in range(120)]
        answers = list(pool.map(lambda pieces: exchange(relayed, pieces), sent))
    assert answers == [b"".join(pieces).translate(TURNED) for pieces in sent]


def test_more_than_its_window_passes_through_bounded_memory(run_supervisor: Supervisor) -> None:
    size = 96 << 20
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def send() -> None:
            peer, _ = listener.accept()
            with peer:
                for _ in range(size >> 20):
                    peer.sendall(b"x" * (1 << 20))

        threading.Thread(target=send, daemon=True).start()
        # Half of this round trip is longer than the whole transfer takes, so all of it would be in flight.
        relay = DelayRelay(run_supervisor, [("127.0.0.1", listener.getsockname()[1])], 2.0)
        with socket.create_connection(("127.0.0.1", next(iter(relay.ports.values())))) as connection:
            assert len(receive_all(connection)) == size
        peak = Path(f"/proc/{relay.pid}/status").read_text().partition("VmHWM:")[2].split()[0]
        assert int(peak) < 64 << 10  # KiB: a window and little more
        relay.stop()


def test_a_round_trip_takes_at_least_the_delay_and_opening_takes_one_more(run_supervisor: Supervisor) -> None:
    server, asked = Turner(), 0.05
    relay = DelayRelay(run_supervisor, [("127.0.0.1", server.port)], asked)
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", relay.ports["127.0.0.1", server.port])) as connection:
        connection.sendall(b"a")
        assert connection.recv(1)
        opened = time.monotonic()
        connection.sendall(b"b")
        assert connection.recv(1)
        # Lower bounds only: a machine may always be slower, a delay never shorter.
        assert opened - began >= 2 * asked
        assert time.monotonic() - opened >= asked
    relay.stop()
    server.stop()


def test_a_server_that_is_gone_ends_the_connection(run_supervisor: Supervisor) -> None:
    bound = socket.socket()  # it holds the port, but does not listen on it, like a server that is gone
    bound.bind(("127.0.0.1", 0))
    port = bound.getsockname()[1]
    relay = DelayRelay(run_supervisor, [("127.0.0.1", port)], ROUND_TRIP)
    with socket.create_connection(("127.0.0.1", relay.ports["127.0.0.1", port])) as connection:
        connection.settimeout(30)
        assert connection.recv(1) == b""
    relay.stop()
    bound.close()


def test_a_relay_that_does_not_start_reports_why(run_supervisor: Supervisor) -> None:
    with pytest.raises(RunError, match=r"(?s)relay for --delay did not start: .*usage"):
        DelayRelay(run_supervisor, [("no address", 1)], ROUND_TRIP)


def test_the_relay_dies_with_the_run() -> None:
    with Supervisor(run_directory.new_id()) as supervisor:
        relay = DelayRelay(supervisor, [("127.0.0.1", 1)], ROUND_TRIP)
        assert run_ownership.start_time(relay.pid)
    wait_for("the relay to end", lambda: not run_ownership.start_time(relay.pid))


def test_the_certificates_name_stays_the_servers() -> None:
    ports = {("192.0.2.7", 5432): 40001}
    server = Connection(driver="postgres", host="192.0.2.7", port=5432)
    # Unencrypted too: this name shows the agent that a password would leave the machine.
    fields = delay.through(server | {"tls": "off"}, ports)
    assert fields == server | {"host": "127.0.0.1", "port": 40001, "tls": "off", "tls_server_name": "192.0.2.7"}
    named = delay.through(server | {"tls": "require", "tls_server_name": "db"}, ports)
    assert named.tls_server_name == "db"
    # Firebird has no certificate, and its driver takes no name.
    assert delay.through(server | {"wire_crypt": "off"}, ports).tls_server_name is None
    assert delay.spelled(("::1", 5432)) == "[::1]:5432"
