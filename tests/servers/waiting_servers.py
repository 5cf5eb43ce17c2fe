"""waiting_servers: a small web server as users write them, on two ports. It may send the header and the body of an answer apart, without TCP_NODELAY,
so that each answer waits for the delayed acknowledgement of the client's kernel.
"""

from __future__ import annotations

import socket
import ssl
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

BODY = b"x" * 200
HEADER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nContent-Type: text/plain\r\n\r\n" % len(BODY)


def answer(connection: socket.socket, apart: bool, pause: float) -> None:
    with connection, connection.makefile("rb") as lines:
        while lines.readline():
            while lines.readline().strip():
                pass
            time.sleep(pause)
            if apart:
                connection.sendall(HEADER)
                connection.sendall(BODY)
            else:
                connection.sendall(HEADER + BODY)


def accept(listening: socket.socket, context: ssl.SSLContext | None, apart: bool, pause: float) -> None:
    def serve(connection: socket.socket) -> None:
        try:
            answer(context.wrap_socket(connection, server_side=True) if context else connection, apart, pause)
        except OSError:
            connection.close()

    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        Thread(target=serve, args=(connection,), daemon=True).start()


@contextmanager
def waiting(certificate: Path, key: Path, apart: Collection[str], pause: float = 0.0) -> Iterator[tuple[str, str]]:
    """The two URLs of a server that sends an answer in two parts on the ports of these arms. `pause`: seconds of sleep before each answer."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    ports = {arm: socket.create_server(("127.0.0.1", 0), backlog=64) for arm in ("plain", "encrypted")}
    for arm, listening in ports.items():
        wrapping = context if arm == "encrypted" else None
        Thread(target=accept, args=(listening, wrapping, arm in apart, pause), daemon=True).start()
    try:
        plain, encrypted = (each.getsockname()[1] for each in ports.values())
        yield f"http://localhost:{plain}/", f"https://localhost:{encrypted}/"
    finally:
        for listening in ports.values():
            listening.shutdown(socket.SHUT_RDWR)
            listening.close()


if __name__ == "__main__":
    # A process of its own, so that its threads are not the test's: CERTIFICATE KEY ARMS PAUSE; it ends with its input.
    with waiting(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3].split(","), float(sys.argv[4])) as urls:
        print(*urls, flush=True)
        sys.stdin.read()
