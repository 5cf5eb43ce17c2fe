"""Finds which requests of a log shared a connection: from the connection's number, where it is logged, else from client, gap and protocol."""

from __future__ import annotations

from ciphercost.importers.distinct import Distinct
from ciphercost.importers.quantised import Histogram
from ciphercost.model.traffic import Connections

KEEP_ALIVE = 75
"""Seconds after which an idle connection counts as closed, where the log does not tell: nginx's default."""
MOST_REQUESTS = 1000
"""Requests after which nginx closes a connection by default."""
HELD = 1 << 17
"""Clients or connections that are held; more are closed, the longest idle first."""
ONE_REQUEST = frozenset((b"HTTP/1.0", b"HTTP/0.9"))
"""Protocols whose connections usually carry one request."""


class ConnectionLengths:
    """Counts how many requests each connection carried. `held` has, of each client or connection, its last request's time and its number."""

    def __init__(self, keep_alive: int) -> None:
        """`keep_alive`: seconds after which an idle connection counts as closed."""
        self.held: dict[bytes, list[int]] = {}
        self.clients = Distinct()
        self.keep_alive = keep_alive
        self.logged = self.numbered = False
        self.resumed = self.known_resumed = 0
        self.lengths: dict[int, int] = {}
        """Closed connections by their number of requests."""
        self.gaps: dict[int, int] = {}
        """Seconds between two requests of a connection."""

    def request(self, client: bytes, at: int, protocol: bytes) -> int:
        """A request whose connection is not logged. Returns how many connections it opened."""
        held = self.held.get(client)
        if held is None:
            self._open(client, client, at, 1)
            return 1
        gap = at - held[0]
        if 0 <= gap <= self.keep_alive and protocol not in ONE_REQUEST and held[1] < MOST_REQUESTS:
            held[0] = at
            held[1] += 1
            self.gaps[gap] = self.gaps.get(gap, 0) + 1
            return 0
        self._end(held[1])
        held[0], held[1] = at, 1
        return 1

    def on(self, connection: bytes, at: int, nth: int, *, client: bytes, resumed: bool | None) -> int:
        """A request on a connection with this number. `nth`: which of its requests; 0: not logged. Returns how many connections it opened."""
        self.logged = True
        self.numbered |= nth > 0
        held = self.held.get(connection)
        if held is not None and (nth > held[1] if nth else at - held[0] <= self.keep_alive):
            gap = max(0, at - held[0])
            self.gaps[gap] = self.gaps.get(gap, 0) + 1
            held[0], held[1] = at, nth or held[1] + 1
            return 0
        if held is not None:
            self._end(held[1])
        if resumed is not None:
            self.known_resumed += 1
            self.resumed += resumed
        self._open(connection, client, at, max(1, nth))
        return 1

    def _open(self, key: bytes, client: bytes, at: int, length: int) -> None:
        if (hashed := hash(client)) < self.clients.limit:
            self.clients.add(hashed)
        self.held[key] = [at, length]
        if len(self.held) > HELD:
            self.forget(at)

    def _end(self, length: int) -> None:
        self.lengths[length] = self.lengths.get(length, 0) + 1

    def forget(self, now: int) -> None:
        """End connections that are idle for too long, and in any case half of them."""
        middle = sorted(at for at, _ in self.held.values())[len(self.held) // 2]
        limit = max(middle, now - self.keep_alive)
        over = [key for key, (at, _) in self.held.items() if at < limit]
        for key in over or list(self.held)[: HELD // 2]:
            self._end(self.held.pop(key)[1])

    def found(self) -> Connections:
        """What was found, once all requests are counted. Ends every open connection."""
        for _, length in self.held.values():
            self._end(length)
        self.held.clear()
        how = (
            "the log numbers connections and their requests"
            if self.numbered
            else "the log tells connections apart by number or port"
            if self.logged
            else f"estimated: requests of one address at most {self.keep_alive} s apart share a connection, and HTTP/1.0 keeps none; browsers that "
            "open several at once are not seen"
        )
        return Connections(
            basis="logged" if self.logged else "estimate",
            how=how,
            lengths=Histogram.of(self.lengths).bins(),
            resumed=self.resumed / self.known_resumed if self.known_resumed else None,
            idle=Histogram.of(self.gaps).bins(),
        )
