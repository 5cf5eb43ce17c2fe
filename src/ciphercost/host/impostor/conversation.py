"""conversation: one client of the impostor: what a protocol's impostor must be able to do with it."""

from __future__ import annotations

import contextlib
import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar, Literal

from ciphercost.host import deadlines

Did = Literal["statement", "password", "clear", "refused", "left", "ended", "unclear"]
"""What a client did: went on after the login; gave its password away; logged in unencrypted; refused the certificate in
the handshake; ended the connection at the login; or none of these.
"""
Proof = Literal["", "channel binding", "password"]
Way = Literal["relayed", "unbound", "let in", "asked", "sha2", "dialog", "no TLS"]
"""How the impostor behaves, as an attacker would; `WORDS` describes each."""
WORDS: dict[Way, str] = {
    "relayed": "which relays the login to the server",
    "unbound": "which relays the login without channel binding",
    "let in": "which lets it in without asking for the password",
    "asked": "which asks for it",
    "sha2": "which asks for it by caching_sha2_password",
    "dialog": "which asks for it by dialog",
    "no TLS": "which denies that the server has TLS",
}
SECONDS = 10.0
HANDSHAKE = b"\x16"
"""Type of the first record of TLS."""


class Ended(OSError):
    """The client ended the connection, or the real server did."""


class Conversation(ABC):
    """One client, which believes that this is the server."""

    ways: ClassVar[tuple[Way, ...]]
    """All that an attacker could try with clients of this protocol that don't insist on the certificate."""
    proof: ClassVar[Proof] = ""
    """What tells a client at the login that the server has another certificate."""
    self_signed: ClassVar[bool] = False
    """Whether the impostor's certificate is signed by itself, because clients leave such a one to the login."""
    alpn: ClassVar[tuple[str, ...]] = ()

    def __init__(self, client: socket.socket, target: tuple[str, int], way: Way) -> None:
        self.client = client
        self.way = way
        self.logs_in = False
        """Whether the client has sent part of a login since TLS began."""
        self._target = target
        self._stack = contextlib.ExitStack()

    def close(self) -> None:
        self._stack.close()

    @abstractmethod
    def greet(self) -> bool:
        """Begin as the real server does. Returns whether the client then begins TLS."""

    @abstractmethod
    def log_in(self) -> Did:
        """Go through the login in the conversation's way, on a connection that is now as encrypted as it will be.

        A password in clear goes no further than this. Raises Ended, OSError, ValueError.
        """

    def connect(self) -> socket.socket:
        """Open a connection to the real server."""
        return self._stack.enter_context(socket.create_connection(self._target, timeout=SECONDS))

    def encrypted(self, server: socket.socket) -> socket.socket:
        """Begin TLS with the real server. Whoever that is gets no more than the client itself would send it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return self._stack.enter_context(context.wrap_socket(server))

    def receive(self, count: int) -> bytes:
        """Read this many bytes of the client. Raises Ended."""
        data = receive(self.client, count)
        self.logs_in = True
        return data

    def send(self, data: bytes) -> None:
        """Send to the client. Raises Ended."""
        with _ending():
            self.client.sendall(data)


Receive = Callable[[int], bytes]
"""`receive(count)`: exactly this many bytes of one side."""


def receive(connection: socket.socket, count: int) -> bytes:
    """Read exactly this many bytes. Raises Ended if the connection ends, TimeoutError."""
    with _ending():
        return deadlines.receive(connection, count, SECONDS)


@contextlib.contextmanager
def _ending() -> Iterator[None]:
    """A peer that has gone is Ended, with or without an alert or a reset."""
    try:
        yield
    except TimeoutError:
        raise
    except (ConnectionError, ssl.SSLError) as error:
        raise Ended(str(error)) from None
