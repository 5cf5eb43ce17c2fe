"""How a command's connections begin decides which impostor it meets, or none."""

from __future__ import annotations

import pytest

from ciphercost.host.wire_streams import Stream
from ciphercost.prove.command_verify import speech

HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(32)
ANSWER = bytes.fromhex("160303007a020000760303") + bytes(32)


@pytest.mark.parametrize(
    ("client", "server", "begins"),
    [
        (HELLO, ANSWER, "tls"),
        (bytes.fromhex("0000000804d2162f"), b"S", "postgres"),
        (bytes(36), bytes([74, 0, 0, 0, 10]) + b"8.4.0", "mysql"),
        # NATS's server greets in clear, then the client begins with TLS: no impostor does that.
        (HELLO, b'INFO {"server_id":"A","tls_available":true}\r\n' + ANSWER, None),
        (b"", b"INFO {", None),
    ],
)
def test_a_command_meets_an_impostor_of_its_own_protocol_only(client: bytes, server: bytes, begins: str | None) -> None:
    stream = Stream()
    stream.add(server, by_client=False)
    stream.add(client, by_client=True)
    assert speech([stream]) == begins
