"""The wire witness of a replication link: each connection is judged by itself, in both directions, and must be able to fail."""

from __future__ import annotations

import pytest

from ciphercost.host.wire_streams import Stream
from ciphercost.prove.replication_witness import judge

CANARY, WORD = "canary-7f3a", "START_REPLICATION"
DATA = b"\x17\x03\x03\x00\x04abcd"
CLIENT_HELLO = b"\x16\x03\x01\x00\x06\x01\x00\x00\x02\x03\x03"
SERVER_HELLO = (
    b"\x16\x03\x03\x00\x36\x02\x00\x00\x32\x03\x03"
    + bytes(32)
    + b"\x00\x13\x02\x00\x00\x06\x00\x2b\x00\x02\x03\x04"
    + bytes(4)
)


def stream(sent: bytes, received: bytes) -> Stream:
    one = Stream(CANARY.encode())
    one.add(sent, by_client=True)
    one.add(received, by_client=False)
    return one


def by_tls(more: bytes = b"") -> Stream:
    return stream(CLIENT_HELLO + DATA, SERVER_HELLO + DATA + more)


CLEAR = f"login {WORD}".encode(), f"row {CANARY}".encode()


def test_a_link_in_clear_shows_the_canary_and_what_the_replica_sends() -> None:
    passed, detail, _ = judge([stream(*CLEAR)], WORD, encrypted=False)
    assert passed, detail


def test_an_encrypted_link_is_tls_on_every_connection() -> None:
    passed, detail, seen = judge([by_tls(), by_tls()], WORD, encrypted=True)
    assert passed, detail
    assert (seen.protocol, seen.cipher) == ("TLSv1.3", "TLS_AES_256_GCM_SHA384")


@pytest.mark.parametrize(
    ("streams", "encrypted", "words"),
    [
        ([stream(*CLEAR)], True, "the canary is visible unencrypted"),
        ([by_tls(), stream(*CLEAR)], True, "the canary is visible unencrypted"),
        ([stream(b"compressed", b"compressed")], True, "without a TLS handshake"),
        ([by_tls(b"GET / HTTP/1.1")], True, "no TLS records follow"),
        ([by_tls()], False, "the canary is not visible"),
        ([stream(b"login", CLEAR[1])], False, "the canary is not visible"),
        ([], False, "examined nothing"),
        ([stream(b"", b"")], True, "examined nothing"),
    ],
)
def test_it_says_no(streams: list[Stream], encrypted: bool, words: str) -> None:
    passed, detail, _ = judge(streams, WORD, encrypted=encrypted)
    assert not passed
    assert words in detail
