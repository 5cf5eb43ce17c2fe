"""mysql: an impostor of MySQL and MariaDB. It relays the login, skips it, or asks for the password in each of their ways."""

from __future__ import annotations

import functools
from typing import ClassVar

from ciphercost.host.impostor.conversation import Conversation, Did, Ended, Proof, Receive, Way, receive

CLIENT_SSL = 0x0800
HEADER_BYTES = 4
TLS_REQUEST_BYTES = HEADER_BYTES + 32
MOST_BYTES = 1 << 16
"""Largest packet of a login."""
OK, MORE, SWITCH, ERROR = 0x00, 0x01, 0xFE, 0xFF
"""The first byte of what a server says in a login."""
FAST, FULL = b"\x03", b"\x04"
"""What caching_sha2_password says next: the account is remembered, or: send the whole password."""
QUIT = b"\x01\0\0\0\x01"
COMPRESSED_QUIT_BYTES = 7 + len(QUIT)
SHA2 = "caching_sha2_password"
WHOLE = ("mysql_clear_password", "sha256_password", "dialog")
"""Plugins whose client sends the password itself over TLS."""
REQUESTS = {
    "asked": ("mysql_clear_password", b""),
    "dialog": ("dialog", b"\x04Password: "),
    "sha2": (SHA2, b"n" * 20 + b"\0"),
}
"""Switches to a plugin that asks for it, with their data."""
LET_IN = b"\0\0\0\2\0\0\0"
"""The packet OK, without anything that proves the certificate."""


class Mysql(Conversation):
    ways: ClassVar[tuple[Way, ...]] = ("relayed", "let in", "asked", "sha2", "dialog", "no TLS")
    proof: ClassVar[Proof] = "password"
    self_signed: ClassVar[bool] = True

    def greet(self) -> bool:
        """Forward the real server's greeting. Returns whether the client then requests TLS."""
        self._server = self.connect()
        greeting = packet(functools.partial(receive, self._server))
        self._plugin = plugin_of(greeting)
        self.send(without_tls(greeting) if self.way == "no TLS" else greeting)
        self._first = packet(self.receive)
        return asks_for_tls(self._first)

    def log_in(self) -> Did:
        encrypted = asks_for_tls(self._first)
        login = packet(self.receive) if encrypted else self._first
        if encrypted and self._plugin in WHOLE:
            return "password"
        if self.way in ("let in", "no TLS"):
            self._say(login[3] + 1, LET_IN)
            return self._what_next()
        if self.way != "relayed":
            return self._ask(login[3] + 1)
        if encrypted:
            self._server.sendall(self._first)
            self._server = self.encrypted(self._server)
        self._server.sendall(login)
        return self._relay()

    def _relay(self) -> Did:
        while True:
            message = packet(functools.partial(receive, self._server))
            kind, rest = message[4], message[5:]
            self.send(message)
            if kind == ERROR:
                raise Ended("the server refused the login")
            if kind == OK:
                return self._what_next()
            if kind == MORE and rest == FAST and self._plugin == SHA2:
                continue
            if kind == SWITCH:
                self._plugin = rest.partition(b"\0")[0].decode(errors="replace")
            answer = packet(self.receive)
            if self._plugin in WHOLE or (kind == MORE and rest == FULL and self._plugin == SHA2):
                return "password"
            self._server.sendall(answer)

    def _ask(self, number: int) -> Did:
        plugin, data = REQUESTS[self.way]
        self._say(number, bytes([SWITCH]) + plugin.encode() + b"\0" + data)
        answer = packet(self.receive)
        if plugin == SHA2 and len(answer) > HEADER_BYTES:  # without a password there is nothing more to ask for
            self._say(answer[3] + 1, bytes([MORE]) + FULL)
            packet(self.receive)
        return "password"

    def _say(self, number: int, body: bytes) -> None:
        self.send(len(body).to_bytes(3, "little") + bytes([number & 0xFF]) + body)

    def _what_next(self) -> Did:
        self.receive(1)
        rest = self.client.recv(MOST_BYTES)
        quits = rest.endswith(QUIT[1:]) and len(rest) + 1 in (len(QUIT), COMPRESSED_QUIT_BYTES)
        return "ended" if quits else "statement"


def packet(receive: Receive) -> bytes:
    """The next packet, with its header. Raises Ended, OSError."""
    head = receive(4)
    size = int.from_bytes(head[:3], "little")
    if size > MOST_BYTES:
        raise OSError(f"a packet of {size} bytes")
    return head + receive(size)


def asks_for_tls(login: bytes) -> bool:
    """Whether this is a request for TLS: the first 32 bytes of a login, with a flag. Pure."""
    return len(login) == TLS_REQUEST_BYTES and bool(int.from_bytes(login[4:6], "little") & CLIENT_SSL)


def _flags_at(greeting: bytes) -> int:
    """Where the flags are: after the version, the connection's number, half of the nonce and a zero byte."""
    return greeting.index(0, 5) + 1 + 4 + 8 + 1


def without_tls(greeting: bytes) -> bytes:
    """The greeting of a server that has no TLS. Pure."""
    changed = bytearray(greeting)
    changed[_flags_at(greeting) + 1] &= ~(CLIENT_SSL >> 8)
    return bytes(changed)


def plugin_of(greeting: bytes) -> str:
    """The login plugin that a greeting names, or "". Pure."""
    return greeting.rstrip(b"\0").rpartition(b"\0")[2].decode(errors="replace")
