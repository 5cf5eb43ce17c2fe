"""packet_link: a link that delays and loses packets. A separate process carries them between two TUN interfaces, so its CPU time
counts for neither arm.

The relay of `delay` forwards bytes of a connection, so it can't lose any. Here TCP and QUIC see packets: a lost one is sent again
after the round trips that this takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ciphercost.host.link import Ends, Link
from ciphercost.host.namespaces import NEAR_END
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.agent import find
from ciphercost.model.errors import RunError
from ciphercost.provision.delay import first_line

QUEUE_PACKETS = 10_000
"""Packets that may wait in an interface: none must be lost because the process was late."""


def carried(round_trip_s: float, loss: float, cpus: set[int]) -> Ends:
    """What makes both interfaces of such a link, for `link.linked`. They end with the process between them, which runs on `cpus`
    (empty: on all). Raises RunError.
    """

    @contextmanager
    def ends(supervisor: Supervisor, link: Link) -> Iterator[int]:
        near = f"{link.device}n"
        one_way = str(round(round_trip_s / 2 * 1e6))
        process = supervisor.spawn([find(), "link", one_way, str(loss), near, link.device], cpus=cpus or None)
        try:
            if first_line(process, "the link for --loss").strip() != '{"type":"link"}':
                raise RunError(f"the link for --loss did not start: {process.output().strip()}")
            supervisor.run(["ip", "link", "set", "dev", near, "netns", link.namespace, "name", NEAR_END])
            for where, device in link.ends:
                supervisor.run(["ip", *where, "link", "set", "dev", device, "txqueuelen", str(QUEUE_PACKETS)])
            yield process.pid
        finally:
            process.stop()

    return ends
