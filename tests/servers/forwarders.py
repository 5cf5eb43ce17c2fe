"""forwarders: other places at which a server of this machine answers: an address of another network namespace, or of IPv6."""

from __future__ import annotations

import contextlib
import secrets
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ciphercost.host import confined_start
from ciphercost.host.namespaces import NAMESPACES

NEAR, FAR = "198.51.100.17", "198.51.100.18"
"""Ends of a link; a range for documentation (RFC 5737)."""


def pass_on(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


@contextmanager
def forwarding(listener: socket.socket, port: int) -> Iterator[int]:
    """Forward what connects to this listener to a port of 127.0.0.1. Gives the listener's port."""

    opened: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", port))
            opened.extend((client, server))
            for source, sink in ((client, server), (server, client)):
                threads.append(threading.Thread(target=pass_on, args=(source, sink), daemon=True))
                threads[-1].start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield listener.getsockname()[1]
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join()
        for connection in opened:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
        for connection in opened:
            connection.close()


@contextmanager
def far(port: int) -> Iterator[tuple[str, int]]:
    """The address and port of another host, as far as the network shows: of a namespace that one link leads to."""
    token = secrets.token_hex(3)
    namespace, device = f"far-{token}", f"far{token}"

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    with contextlib.ExitStack() as stack:
        ip("netns", "add", namespace)
        stack.callback(ip, "netns", "del", namespace)
        ip("link", "add", device, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        for inside, name, address in (([], device, NEAR), (["-n", namespace], "eth0", FAR)):
            ip(*inside, "address", "add", f"{address}/30", "dev", name)
            ip(*inside, "link", "set", "dev", name, "up")
        made: list[socket.socket] = []

        def listen() -> None:
            confined_start.enter(str(NAMESPACES / namespace))  # this thread only
            made.append(socket.create_server((FAR, 0)))

        thread = threading.Thread(target=listen)
        thread.start()
        thread.join()
        yield FAR, stack.enter_context(forwarding(made[0], port))
