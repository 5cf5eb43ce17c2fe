"""A connection that a web server closes is opened again, and nothing of the old one stays."""

from __future__ import annotations

import socket
from pathlib import Path

from ciphercost.load.agent import Agent
from ciphercost.model.connection import Connection
from listening import Listener
from web_servers import program

CONNECTIONS = 5
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"


class ClosesEachOnce(Listener):
    """Says on the first connections, in their first response, that it closes them; keeps all others."""

    def __init__(self) -> None:
        self.accepted = 0
        super().__init__()

    def serve(self, connection: socket.socket) -> None:
        self.accepted += 1
        closes = self.accepted <= CONNECTIONS
        request = b""
        while received := connection.recv(4096):
            request += received
            if request.endswith(b"\r\n\r\n"):
                request = b""
                connection.sendall(HEAD + (b"Connection: close\r\n" if closes else b"") + b"\r\nok")
                if closes:
                    return


def sockets(pid: int) -> int:
    return sum(str(link.readlink()).startswith("socket:") for link in Path(f"/proc/{pid}/fd").iterdir())


def test_a_connection_that_was_opened_again_has_one_socket() -> None:
    with ClosesEachOnce() as server, Agent() as agent:
        before = sockets(agent.pid)
        program(agent, "GET /")
        agent.connect(
            "plain",
            Connection(driver="http", host="127.0.0.1", port=server.port, authority="x", connections=CONNECTIONS),
        )
        answer = agent.slice("plain", 60, discard=0, operations=200 * CONNECTIONS)
        assert (answer.operations, answer.errors) == (200 * CONNECTIONS, 0), answer.first_error
        assert server.accepted == 2 * CONNECTIONS
        assert sockets(agent.pid) - before == CONNECTIONS
