"""delay: a relay between agent and server that lengthens each round trip. It is a separate process, so its CPU time
counts for neither arm.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from ciphercost.host.relay import moved
from ciphercost.host.supervisor import Process, Supervisor
from ciphercost.load.agent import find
from ciphercost.model.connection import Connection
from ciphercost.model.errors import RunError
from ciphercost.model.spec import Arm

START_SECONDS = 20.0
Address = tuple[str, int]


class DelayRelay:
    """Forwards connections to each address and delays each byte by half of `round_trip_s`. Runs until `stop`."""

    def __init__(
        self, supervisor: Supervisor, addresses: Sequence[Address], round_trip_s: float, *, cpus: set[int] | None = None
    ) -> None:
        command = [find(), "relay", str(round(round_trip_s * 1e6)), *map(spelled, addresses)]
        self._process = supervisor.spawn(command, cpus=cpus or None)
        self.ports = dict(zip(addresses, ports_of(self._process), strict=True))
        """The relay's port on 127.0.0.1 for each address."""

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        self._process.stop()


def ports_of(process: Process) -> list[int]:
    """The ports that the relay reports. Raises RunError with the relay's own message if it doesn't start."""
    printed = first_line(process, "the relay for --delay")
    try:
        return [int(port) for port in json.loads(printed.splitlines()[0])["ports"].split()]
    except (ValueError, KeyError, TypeError):
        process.stop()
        raise RunError(f"the relay for --delay did not start: {printed.strip()}") from None


def first_line(process: Process, what: str) -> str:
    """What a process printed by the end of its first line. Raises RunError with its own message if it ends or prints none."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if "\n" in (printed := process.output()):
            return printed
        time.sleep(0.005)
    printed = process.output().strip()
    process.stop()
    raise RunError(f"{what} did not start: {printed or 'it printed nothing'}")


def spelled(address: Address) -> str:
    """`127.0.0.1:5432`, `[::1]:5432`. Pure."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def through(connection: Connection, ports: Mapping[Address, int]) -> Connection:
    """The connection to the same server through the relay. Pure."""
    return moved(connection, "127.0.0.1", ports[connection.address])


@contextmanager
def delayed(
    supervisor: Supervisor,
    connect: Mapping[Arm, Connection],
    round_trip_s: float,
    cpus: set[int] | None = None,
) -> Iterator[tuple[dict[Arm, Connection], int]]:
    """(connections of each arm through one shared relay, process id of the relay)."""
    addresses = sorted({connection.address for connection in connect.values()})
    relay = DelayRelay(supervisor, addresses, round_trip_s, cpus=cpus)
    try:
        yield {arm: through(connection, relay.ports) for arm, connection in connect.items()}, relay.pid
    finally:
        relay.stop()
