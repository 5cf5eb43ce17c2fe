"""direct: an impostor of a server whose connections begin with TLS. Its login has nothing that knows a certificate, so a client
that completes the handshake has accepted the impostor.
"""

from __future__ import annotations

import socket
from typing import ClassVar

from ciphercost.host.impostor.conversation import HANDSHAKE, Conversation, Did, Way


class Direct(Conversation):
    ways: ClassVar[tuple[Way, ...]] = ("relayed",)

    def greet(self) -> bool:
        return self.client.recv(1, socket.MSG_PEEK) == HANDSHAKE

    def log_in(self) -> Did:
        return "statement"
