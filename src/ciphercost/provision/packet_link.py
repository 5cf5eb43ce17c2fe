"""packet_link: a link that delays and loses packets. A separate process carries them between two TUN interfaces, so its CPU time
counts for neither arm.

The relay of `delay` forwards bytes of a connection, so it can't lose any. Here TCP and QUIC see packets: a lost one is sent again
after the round trips that this takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ciphercost.host.link import Link
from ciphercost.host.namespaces import NEAR_END
from ciphercost.host.supervisor import Process, Supervisor
from ciphercost.load.agent import find
from ciphercost.model.errors import RunError
from ciphercost.provision.delay import first_line

QUEUE_PACKETS = 10_000
"""Packets that may wait in an interface: none must be lost because the process was late."""


class Carrier:
    """The process between both interfaces. It makes them, and they end with it."""

    def __init__(self, round_trip_s: float, loss: float, cpus: set[int]) -> None:
        self._round_trip_s, self._loss, self._cpus = round_trip_s, loss, cpus
        self._process: Process | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @contextmanager
    def ends(self, supervisor: Supervisor, link: Link) -> Iterator[None]:
        """Both interfaces of a link. For `link.linked`; raises RunError."""
        near = f"{link.device}n"
        one_way = str(round(self._round_trip_s / 2 * 1e6))
        process = supervisor.spawn(
            [find(), "link", one_way, str(self._loss), near, link.device], cpus=self._cpus or None
        )
        try:
            if first_line(process, "the link for --loss").strip() != '{"type":"link"}':
                raise RunError(f"the link for --loss did not start: {process.output().strip()}")
            self._process = process
            supervisor.run(["ip", "link", "set", "dev", near, "netns", link.namespace, "name", NEAR_END])
            for where, device in ((["-n", link.namespace], NEAR_END), ([], link.device)):
                supervisor.run(["ip", *where, "link", "set", "dev", device, "txqueuelen", str(QUEUE_PACKETS)])
            yield
        finally:
            process.stop()
