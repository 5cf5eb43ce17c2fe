"""What captured connections are: TLS from the handshake to the end, or not. The bytes come from OpenSSL."""

from __future__ import annotations

import socket
import ssl
import struct
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.host import packet_capture, wire_streams
from ciphercost.host.packet_capture import ACK, SYN, Assembly, Segment
from ciphercost.host.pki import Pki
from ciphercost.host.wire_streams import Stream, seen


def stream(sent: bytes, received: bytes, canary: bytes = b"") -> Stream:
    both = Stream(canary)
    both.add(sent, by_client=True)
    both.add(received, by_client=False)
    return both


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("pki"), "ecdsa-p256")


def exchanged(pki: Pki, version: ssl.TLSVersion) -> tuple[bytes, bytes]:
    """What client and server send: a handshake, and some data in both directions."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pki.certificate, pki.key)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.minimum_version = client.maximum_version = version
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sent, received = bytearray(), bytearray()
    from_client, from_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = client.wrap_bio(to_client, from_client), server.wrap_bio(to_server, from_server, server_side=True)

    def carry() -> None:
        data = from_client.read()
        sent.extend(data)
        to_server.write(data)
        data = from_server.read()
        received.extend(data)
        to_client.write(data)

    done = [False, False]
    while not all(done):
        for number, end in enumerate(ends):
            try:
                end.do_handshake()
                done[number] = True
            except ssl.SSLWantReadError:
                pass
            carry()
    ends[0].write(b"a canary" * 3000)
    carry()
    ends[1].read(100)
    ends[1].write(b"an answer")
    carry()
    return bytes(sent), bytes(received)


@pytest.mark.parametrize(
    ("version", "name"), [(ssl.TLSVersion.TLSv1_2, "TLSv1.2"), (ssl.TLSVersion.TLSv1_3, "TLSv1.3")]
)
def test_tls_is_seen_with_protocol_and_cipher(pki: Pki, version: ssl.TLSVersion, name: str) -> None:
    sent, received = exchanged(pki, version)
    look = seen(stream(sent, received, b"a canary"))
    assert look.encrypted, look.words
    assert look.protocol == name
    assert "AES" in look.cipher or "CHACHA20" in look.cipher
    assert stream(sent, received, b"a canary").canaries == 0


def test_tls_after_a_beginning_in_clear_is_seen(pki: Pki) -> None:
    sent, received = exchanged(pki, ssl.TLSVersion.TLSv1_3)
    assert seen(stream(bytes.fromhex("0000000804d2162f") + sent, b"S" + received)).encrypted
    greeting = b"\x4a\0\0\0\x0a8.0.36\0\x16\x03\x01\0\0\x01" + bytes(60)  # as a random salt may look
    assert seen(stream(bytes(36) + sent, greeting + received)).encrypted


@pytest.mark.parametrize("cut", [6, 100, 1000])
def test_a_last_record_may_be_cut(pki: Pki, cut: int) -> None:
    sent, received = exchanged(pki, ssl.TLSVersion.TLSv1_3)
    assert seen(stream(sent[:-cut], received)).encrypted


def test_clear_bytes_after_the_handshake_are_seen(pki: Pki) -> None:
    sent, received = exchanged(pki, ssl.TLSVersion.TLSv1_3)
    look = seen(stream(sent + b"SELECT 1", received))
    assert not look.encrypted
    assert "no TLS records follow the handshake" in look.words


def test_a_handshake_alone_is_no_encrypted_load(pki: Pki) -> None:
    sent, received = exchanged(pki, ssl.TLSVersion.TLSv1_2)
    first = 5 + int.from_bytes(sent[3:5], "big")
    answer = 5 + int.from_bytes(received[3:5], "big")
    assert "without data" in seen(stream(sent[:first], received[:answer])).words


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_no_bytes_without_a_handshake_are_tls(sent: bytes, received: bytes) -> None:
    look = seen(stream(sent, received))
    assert not look.encrypted
    assert look.words


@given(st.binary(max_size=400))
def test_any_answer_of_a_server_is_parsed(data: bytes) -> None:
    wire_streams.server_hello(data)
    wire_streams.server_hello(b"\x16\x03\x03" + struct.pack("!H", len(data)) + b"\x02\0" + data)


@given(st.lists(st.binary(min_size=1, max_size=9), max_size=20))
def test_a_canary_is_found_wherever_pieces_are_cut(pieces: list[bytes]) -> None:
    one = Stream(b"\x01\x02\x03")
    for piece in pieces:
        one.add(piece, by_client=True)
    assert (one.canaries > 0) == (b"\x01\x02\x03" in b"".join(pieces))


# ── packets ───────────────────────────────────────────────────────────────────────────────────────────────────────────

CLIENT, SERVER = ("127.0.0.1", 40000), ("127.0.0.1", 5432)


@given(
    st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=12),
    st.integers(0, 2**32 - 1),
    st.randoms(use_true_random=False),
)
def test_segments_are_put_in_order_whatever_comes_twice_or_late(
    pieces: list[bytes], start: int, random: object
) -> None:
    seen_ = Assembly()
    seen_.add(Segment(CLIENT, SERVER, start, SYN, b""))
    seen_.add(Segment(SERVER, CLIENT, 7, SYN | ACK, b""))
    at = (start + 1) % 2**32
    segments = []
    for piece in pieces:
        segments.append(Segment(CLIENT, SERVER, at, ACK, piece))
        at = (at + len(piece)) % 2**32
    segments += segments[:3]
    random.shuffle(segments)  # type: ignore[attr-defined]
    for one in segments:
        seen_.add(one)
    (found,) = seen_.streams.values()
    assert bytes(found.to_server.kept) == b"".join(pieces)
    assert not found.to_client.kept


def test_what_began_before_the_capture_is_left_out() -> None:
    seen_ = Assembly()
    seen_.add(Segment(CLIENT, SERVER, 5, ACK, b"data"))
    assert not seen_.streams


@given(st.sampled_from([packet_capture.ETH_P_IP, packet_capture.ETH_P_IPV6, 0x0806]), st.binary(max_size=120))
def test_any_packet_is_parsed(kind: int, packet: bytes) -> None:
    packet_capture.segment(kind, packet)


@pytest.mark.usefixtures("require_capture")
def test_a_connection_is_captured_as_it_was_sent() -> None:
    capture = packet_capture.Capture(b"a canary", loopback=True)
    with capture, socket.create_server(("127.0.0.1", 0)) as listener:
        with socket.create_connection(listener.getsockname()) as client, listener.accept()[0] as server:
            client.sendall(b"a canary " * 50_000)
            received = 0
            while received < 450_000:
                received += len(server.recv(1 << 16))
            server.sendall(b"bye")
            assert client.recv(10) == b"bye"
        port = listener.getsockname()[1]
    (found,) = [one for flow, one in capture.flows.items() if flow.server[1] == port]
    assert bytes(found.to_server.kept) == b"a canary " * 50_000
    assert bytes(found.to_client.kept) == b"bye"
    assert found.to_server.canaries == 50_000


@pytest.mark.usefixtures("require_capture")
def test_what_waits_to_be_read_when_the_capture_ends_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where other processes take the cores."""
    parsed = packet_capture.segment

    def late(kind: int, packet: bytes) -> packet_capture.Segment | None:
        time.sleep(0.01)
        return parsed(kind, packet)

    monkeypatch.setattr(packet_capture, "segment", late)
    with packet_capture.Capture(loopback=True) as capture, socket.create_server(("127.0.0.1", 0)) as listener:
        with socket.create_connection(listener.getsockname()) as client, listener.accept()[0] as server:
            for _ in range(20):
                client.sendall(b"one")
                server.sendall(server.recv(10))
                assert client.recv(10) == b"one"
        port = listener.getsockname()[1]
    (found,) = [one for flow, one in capture.flows.items() if flow.server[1] == port]
    assert bytes(found.to_server.kept) == bytes(found.to_client.kept) == b"one" * 20
