"""command_verify: whether the encrypted arm's command checks the server's certificate: it meets an impostor once, and must not go on."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from ciphercost.host.impostor import Speech
from ciphercost.host.impostor.postgres import GSS_REQUEST, SSL_REQUEST
from ciphercost.host.ports import LOOPBACK
from ciphercost.host.wire_streams import HANDSHAKE, Stream
from ciphercost.load.command_client import CommandClient, Place
from ciphercost.load.peer_checks import Verdict, refuses_impostor, refuses_other_name
from ciphercost.model.errors import AgentError
from ciphercost.prove.command_witness import here

ENCRYPTION_REQUESTS = tuple(struct.pack(">ii", 8, code) for code in (SSL_REQUEST, GSS_REQUEST))
"""How a client of PostgreSQL asks for encryption."""
MYSQL_GREETING = 10
"""The version of the protocol, the first byte of MySQL's first packet."""
SECONDS = 15.0
"""After which a command that tries again and again is ended."""


def speech(streams: Sequence[Stream]) -> Speech | None:
    """How these connections begin; None: in a way that the impostor does not speak. Pure."""
    first = next((stream for stream in streams if stream.to_server.kept), None)
    if first is None:
        return None
    sent, received = bytes(first.to_server.kept[:16]), bytes(first.to_client.kept[:8])
    if sent[:1] == bytes([HANDSHAKE]):
        # NATS's server greets in clear before the client's handshake, and the impostor does not.
        return "tls" if received[:1] == bytes([HANDSHAKE]) else None
    if sent.startswith(ENCRYPTION_REQUESTS):
        return "postgres"
    if len(received) > 4 and received[3] == 0 and received[4] == MYSQL_GREETING:
        return "mysql"
    return None


def verified(client: CommandClient, streams: Sequence[Stream], place: Path) -> tuple[Verdict, bool] | None:
    """Let the encrypted arm's command meet an impostor in each way that an attacker could try. None: the impostor does not speak its protocol.

    Returns by what it knows the server, and whether it then refuses the real server under another name.
    `streams`: what it sent to the server; `place`: a directory for certificates.
    """
    if not client.uses_port("encrypted") or (begins := speech(streams)) is None:
        return None
    server = client.places["encrypted"]
    name = here(server.host) or LOOPBACK

    def call(port: int, host: str = name) -> str:
        """Run it on this port. Returns why it failed; empty: it did not."""
        try:
            client.once("encrypted", place=Place(host, port, server.ca), limit=SECONDS)
        except AgentError as error:
            return str(error)
        return ""

    verdict = refuses_impostor(
        begins,
        server.host,
        server.port,
        place,
        call,
        name=server.host,
        listen=LOOPBACK if name == "localhost" else name,
    )
    return verdict, verdict.by == "certificate" and refuses_other_name(server.host, server.port, call)[0]
