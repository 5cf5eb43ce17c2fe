"""impostor: a man in the middle with a certificate that no trusted authority has signed. A client that goes on does not verify.

It ends the client's TLS and, as an attacker would, goes on to the login: it relays that to the real server over a TLS connection
of its own, or asks for less. It ends a connection as soon as the client has sent a statement or its password, and forwards
neither.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from pathlib import Path
from typing import Literal, Self

from ciphercost.host.impostor.conversation import SECONDS, Conversation, Did, Ended, Way
from ciphercost.host.impostor.direct import Direct
from ciphercost.host.impostor.mysql import Mysql
from ciphercost.host.impostor.postgres import Postgres
from ciphercost.host.pki import UNBOUND, Pki
from ciphercost.host.ports import listening_at

Speech = Literal["mysql", "postgres", "tls"]
"""How a connection begins; `tls`: with TLS, at once."""
CONVERSATIONS: dict[Speech, type[Conversation]] = {"mysql": Mysql, "postgres": Postgres, "tls": Direct}
CERTIFICATE = ("CERTIFICATE", "UNKNOWN_CA")
"""Words in the name of a TLS alert with which a client rejects the certificate."""


class Impostor:
    """Listens on an address of this machine. `met`: what each client did."""

    def __init__(
        self,
        speech: Speech,
        host: str,
        port: int,
        directory: Path,
        *,
        certificate: str,
        name: str = "",
        way: Way = "relayed",
        signed: bool = False,
        listen: str = "127.0.0.1",
    ) -> None:
        """`host`, `port`: the real server; `certificate`: its kind, because a client may request suites of that kind;
        `name`: the server's; `directory`: where its certificate is, or will be; `signed`: by an authority, whose certificate is `ca`, in any protocol.
        """
        self._conversation = CONVERSATIONS[speech]
        self._target = (host, port)
        self._way = way
        # No server uses these files: they stay this process's own.
        kind = UNBOUND if way == "unbound" else certificate
        self_signed = self._conversation.self_signed and not signed
        subdirectory = directory / f"{kind}{'-self-signed' if self_signed else ''}"
        pki = Pki(subdirectory, kind, name=name, self_signed=self_signed, reuse=True)
        self.ca = pki.ca
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._context.load_cert_chain(pki.certificate, pki.key)
        if self._conversation.alpn:
            self._context.set_alpn_protocols(list(self._conversation.alpn))
        self.met: list[Did] = []
        self._listener = listening_at(listen)
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(timeout=SECONDS)
        for thread in self._threads:
            thread.join(timeout=SECONDS)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._meet, args=(client,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _meet(self, client: socket.socket) -> None:
        client.settimeout(SECONDS)
        conversation = self._conversation(client, self._target, self._way)
        try:
            with contextlib.closing(conversation), client:
                self.met.append(self._hear(conversation))
        except Ended:
            self.met.append("ended")
        except (OSError, ValueError):
            self.met.append("unclear")

    def _hear(self, conversation: Conversation) -> Did:
        if not conversation.greet():
            did = conversation.log_in()
            return "clear" if did == "statement" else did
        try:
            encrypted = self._context.wrap_socket(conversation.client, server_side=True)
        except (ssl.SSLEOFError, ConnectionError):
            return "left"  # in the handshake and without an alert: only the client knows why
        except ssl.SSLError as error:
            return "refused" if any(word in str(error.reason) for word in CERTIFICATE) else "unclear"
        with encrypted:
            conversation.client, conversation.logs_in = encrypted, False
            try:
                return conversation.log_in()
            except Ended:
                # Some clients complete the handshake before they look at the certificate.
                return "ended" if conversation.logs_in else "refused"
