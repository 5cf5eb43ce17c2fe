"""server_host: samples the host of a server that runs on another node of the cluster, in the same windows in which agents count."""

from __future__ import annotations

from ciphercost.host import ports, procfs
from ciphercost.load.fleet.clock import now
from ciphercost.load.fleet.messages import Failure, SampleOrder, ServerPlace
from ciphercost.load.fleet.remote_agent import boot_id, wait_until
from ciphercost.model.slices import Counters

LOOPBACK = "127.0.0.1"


class ServerHost:
    """Sampler on the server's node. As with `RemoteAgent`, every method returns data or a `Failure`."""

    def __init__(self) -> None:
        self._samplers: dict[ServerPlace, procfs.Sampler] = {}

    def find(self, place: ServerPlace) -> str | Failure:
        """Find the server's process by its port. Returns the boot id of its machine."""
        sampler = self._sampler(place)
        return sampler if isinstance(sampler, Failure) else boot_id()

    def _sampler(self, place: ServerPlace) -> procfs.Sampler | Failure:
        if place not in self._samplers:
            pid = ports.listener(LOOPBACK, place.port, place.programs)
            if not pid:
                return Failure(
                    f"no process of the server that listens on port {place.port} can be seen there", "server"
                )
            self._samplers[place] = procfs.Sampler(pid)
        return self._samplers[place]

    def clock(self) -> float:
        return now()

    def ping(self) -> float:
        return now()

    def sample(self, order: SampleOrder) -> Counters | Failure:
        """What the server's processes and the host do between two moments of this machine's clock."""
        sampler = self._sampler(order.place)
        if isinstance(sampler, Failure):
            return sampler
        sampler.refresh(every=order.refresh)
        wait_until(order.begins)
        sampler.begin()
        wait_until(order.ends)
        sampler.stop()
        return sampler.end()
