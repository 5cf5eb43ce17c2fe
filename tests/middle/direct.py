"""direct: protocols without a request for TLS: the first byte of a connection is TLS, or it is not. `http://` and
`https://` share the port here.
"""

from __future__ import annotations

from impostors import Line
from middle.attacks import Attack
from middle.middle import Connect, Met, Upgrade

HANDSHAKE = b"\x16"


class Direct(Upgrade):
    strippable = False

    def __init__(self, answer: bytes) -> None:
        self.answer = answer

    def meet(self, line: Line, attack: Attack, connect: Connect) -> Met:
        if attack.injects == "beside":
            line.send(self.answer)
        first = line.some()
        encrypted = first[:1] == HANDSHAKE
        return Met(connect(encrypted), encrypted, first)

    def greeting(self, heard: bytes) -> int:
        return 0


HTTP = Direct(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
RESP = Direct(b"+OK\r\n")
