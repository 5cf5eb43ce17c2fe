"""A web server that keeps a known amount of memory for each connection. Run it: `python hoarding_server.py BYTES`; prints its port."""

from __future__ import annotations

import selectors
import socket
import sys

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ROOM = 65536


def main(keep: int) -> None:
    """Serve until killed. Each connection has `keep` bytes that were written to, so that they are resident."""
    kept: dict[int, bytearray] = {}
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    listener.setblocking(False)
    waiting = selectors.EpollSelector()
    waiting.register(listener, selectors.EVENT_READ)
    print(listener.getsockname()[1], flush=True)
    open_ones: dict[int, socket.socket] = {}
    while True:
        for key, _ in waiting.select():
            if key.fileobj is listener:
                connection, _ = listener.accept()
                connection.setblocking(False)
                open_ones[connection.fileno()] = connection
                kept[connection.fileno()] = bytearray(b"x" * keep) if keep else bytearray()
                waiting.register(connection, selectors.EVENT_READ)
                continue
            connection = open_ones[key.fd]
            try:
                asked = connection.recv(ROOM)
                if asked:
                    connection.sendall(ANSWER)
            except OSError:
                asked = b""
            if not asked:
                waiting.unregister(connection)
                del open_ones[key.fd], kept[key.fd]
                connection.close()


if __name__ == "__main__":
    main(int(sys.argv[1]))
