"""datagram_relay: records what the wire witness examines of HTTP/3."""

from __future__ import annotations

import contextlib
import socket
import threading

from hypothesis import given
from hypothesis import strategies as st

from ciphercost.host.datagram_relay import DatagramRelay, QuicSeen, quic_seen, quic_sign

INITIAL = bytes.fromhex("c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11")
"""The beginning of the protected packet in RFC 9001, A.2."""
SHORT = bytes.fromhex("4cfe4189655e5cd55c41f69080575d7999c25a5bfb")
"""The packet in RFC 9001, A.5."""
NEGOTIATION = bytes.fromhex("ea00000000088394c8f03e515708")
VERSION_2 = b"\xd0" + bytes.fromhex("6b3343cf") + INITIAL[5:]


def test_datagrams_are_forwarded_whole_and_recorded_in_both_directions() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))

        def echo() -> None:
            for _ in range(3):
                data, client = server.recvfrom(4096)
                server.sendto(data.upper(), client)

        thread = threading.Thread(target=echo)
        thread.start()
        with DatagramRelay("127.0.0.1", server.getsockname()[1]) as relay:
            sent = [b"one", b"two" * 400, b""]
            for datagram in sent:
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                    client.settimeout(10)
                    client.sendto(datagram, ("127.0.0.1", relay.port))
                    assert client.recv(4096) == datagram.upper()
            thread.join()
        assert relay.datagrams == {"to_server": sent, "to_client": [datagram.upper() for datagram in sent]}
        assert (relay.to_server, relay.to_client) == (b"".join(sent), b"".join(sent).upper())


def test_a_client_hears_nothing_where_nobody_listens_and_the_relay_goes_on() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
    with DatagramRelay("127.0.0.1", port) as relay, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", relay.port))
        client.send(b"nobody")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as late:
            late.bind(("127.0.0.1", port))
            late.settimeout(0.2)
            data = b"nobody"
            # The relay may lose what is sent while it hears that nobody listened.
            for _ in range(300):
                client.send(b"somebody")
                with contextlib.suppress(TimeoutError):
                    data, back = late.recvfrom(100)
                if data == b"somebody":
                    break
            late.sendto(b"yes", back)
            client.settimeout(10)
            assert (data, client.recv(100)) == (b"somebody", b"yes")


def test_packets_of_the_standard_are_recognised_and_others_are_not() -> None:
    assert quic_seen([INITIAL, SHORT, SHORT]) == QuicSeen(1, 2, 0)
    assert quic_seen([NEGOTIATION, VERSION_2, b"", b"GET / HTTP/1.1", b"\x17\x03\x03\x00\x04abcd"]).handshakes == 0
    assert quic_seen([NEGOTIATION, VERSION_2, b"", b"\x17\x03\x03\x00\x04abcd"]) == QuicSeen(0, 0, 4)


def test_both_directions_must_show_a_handshake_and_packets_after_it() -> None:
    whole = [INITIAL, SHORT]
    passed, words = quic_sign(whole, whole)
    assert passed
    assert ", 2 datagrams of the handshake" in words
    assert " 2 after it" in words
    for sent, received in ((whole, [INITIAL]), ([SHORT], whole), (whole, [])):
        assert not quic_sign(sent, received)[0]
    passed, words = quic_sign([*whole, b"\x00clear"], whole)
    assert not passed
    assert words.startswith("1 of 5 datagrams ")


@given(st.lists(st.binary(max_size=60)))
def test_every_datagram_is_counted_once(datagrams: list[bytes]) -> None:
    assert sum(quic_seen(datagrams)) == len(datagrams)
