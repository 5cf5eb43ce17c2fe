"""faulty_relay: a relay to a server, which drops or stalls the encrypted connections, and leaves the plain ones alone.

A process of its own: PORT TRIGGER DROP STALL EVERY. It prints its own port, and ends with its input. There are faults while the file TRIGGER exists.
DROP: seconds after which an encrypted connection is closed; STALL: seconds for which all encrypted connections stand still, EVERY so many
seconds on average. 0: never.
"""

from __future__ import annotations

import contextlib
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock, Thread

SSL_REQUEST = bytes.fromhex("0000000804d2162f")
"""How a client of PostgreSQL asks for TLS."""
HELLO = b"\x16\x03"
"""How TLS begins."""


class Faults:
    def __init__(self, trigger: Path, drop: float, stall: float, every: float) -> None:
        self.trigger, self.drop, self.stall, self.every = trigger, drop, stall, every
        self._open: list[tuple[float, socket.socket]] = []
        self._lock = Lock()
        self.free = Event()
        """Whether encrypted connections are not standing still."""
        self.free.set()

    def watch(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.append((time.monotonic(), connection))

    def run(self) -> None:
        began, chance = 0.0, random.Random(1)
        while True:
            while not self.trigger.exists():
                time.sleep(0.01)
                began = time.monotonic()
            if self.stall:
                time.sleep(chance.expovariate(1 / self.every))
                self.free.clear()
                time.sleep(self.stall)
                self.free.set()
            else:
                time.sleep(0.02)
            if not self.drop:
                continue
            with self._lock:
                for each in list(self._open):
                    if time.monotonic() - max(each[0], began) > self.drop:
                        self._open.remove(each)
                        with contextlib.suppress(OSError):
                            each[1].shutdown(socket.SHUT_RDWR)


def pump(source: socket.socket, sink: socket.socket, free: Event | None) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            if free is not None:
                free.wait()
            sink.sendall(data)
    for each in (source, sink):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def serve(client: socket.socket, port: int, faults: Faults) -> None:
    try:
        first = client.recv(8)
        server = socket.create_connection(("127.0.0.1", port))
    except OSError:
        client.close()
        return
    encrypted = first == SSL_REQUEST or first.startswith(HELLO)
    for each in (client, server):
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with contextlib.suppress(OSError):
        server.sendall(first)
    if encrypted:
        faults.watch(client)
    back = Thread(target=pump, args=(server, client, None), daemon=True)
    back.start()
    pump(client, server, faults.free if encrypted else None)
    back.join()
    client.close()
    server.close()


def main(port: int, faults: Faults) -> None:
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(listening.getsockname()[1], flush=True)

    def accept() -> None:
        while True:
            client, _ = listening.accept()
            Thread(target=serve, args=(client, port, faults), daemon=True).start()

    for loop in (accept, faults.run):
        Thread(target=loop, daemon=True).start()
    sys.stdin.read()


@contextmanager
def relayed(port: int, trigger: Path, *, drop: float = 0.0, stall: float = 0.0, every: float = 0.0) -> Iterator[int]:
    """The port of a relay to this one."""
    argv = [sys.executable, __file__, *map(str, (port, trigger, drop, stall, every))]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


if __name__ == "__main__":
    main(int(sys.argv[1]), Faults(Path(sys.argv[2]), *map(float, sys.argv[3:6])))
