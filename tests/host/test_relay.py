"""relay: records what the wire witness examines."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.host import local_socket
from ciphercost.host.relay import Relay, tls_records
from ciphercost.model.connection import Connection
from ciphercost.model.errors import RunError
from ciphercost.prove.session_witness import judge_sessions
from ciphercost.prove.wire_witness import judge_wire


def test_bytes_are_forwarded_and_recorded_in_both_directions() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def echo() -> None:
            peer, _ = listener.accept()
            with peer:
                while data := peer.recv(4096):
                    peer.sendall(data.upper())

        thread = threading.Thread(target=echo)
        thread.start()
        with Relay("127.0.0.1", listener.getsockname()[1]) as relay:
            with socket.create_connection(("127.0.0.1", relay.port)) as client:
                client.sendall(b"canary" * 1000)
                got = b""
                while len(got) < 6000:
                    got += client.recv(4096)
            thread.join()
        assert got == b"CANARY" * 1000
        assert bytes(relay.to_server) == b"canary" * 1000
        assert bytes(relay.to_client) == got


RECORD = b"\x17\x03\x03\x00\x04abcd"
HELLO = b"\x16\x03\x01\x00\x02\x01i"


def test_a_relay_before_a_unix_socket_records_what_passes_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "server"
    with local_socket.listening(path) as server:

        def answer() -> None:
            taken, _ = server.accept()
            with taken:
                taken.sendall(taken.recv(100).upper())

        thread = threading.Thread(target=answer)
        thread.start()
        asked = Connection(driver="mysql", host="db.example", port=3306, user="me", socket=str(path), tls="off")
        with Relay.before(asked, tmp_path) as relay:
            through = relay.moved(asked)
            assert (through.address, through.relayed) == (asked.address, False), "the server is on this machine"
            assert through.socket not in (None, str(path))
            with local_socket.connected(str(through.socket), 5) as client:
                client.sendall(b"hello")
                assert client.recv(100) == b"HELLO"
                assert local_socket.peer_of(client) == (os.getpid(), os.getuid())
            thread.join(10)
        assert (bytes(relay.to_server), bytes(relay.to_client)) == (b"hello", b"HELLO")
    assert list(tmp_path.iterdir()) == [path]


def test_a_path_that_is_too_long_for_a_socket_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no Unix socket can be made at"):
        local_socket.listening(tmp_path / ("x" * 108))


def test_tls_records_are_counted_behind_a_protocol_that_begins_unencrypted() -> None:
    assert tls_records(b"\x00\x00\x00\x08\x04\xd2\x16\x2f" + HELLO + RECORD * 3) == 3
    assert tls_records(b"plain words only") == 0


def test_tls_records_of_every_version_are_counted() -> None:
    """A ServerHello's record carries the negotiated version."""
    for version in (b"\x01", b"\x02", b"\x03"):
        assert tls_records(b"\x16\x03" + version + b"\x00\x02\x02i" + RECORD * 3) == 3


def test_random_bytes_of_a_greeting_that_look_like_a_handshake_do_not_hide_the_real_one() -> None:
    for chance in (b"\x16\x03", b"\x16\x03\x01\x00\x02\x01", b"\x16\x03\x03\x00\x00\x02\x16\x03"):
        assert tls_records(b"\x0a9.7.4\0" + chance + b"nonce\0" + HELLO + RECORD * 3) == 3


@given(st.binary(max_size=300))
def test_any_bytes_can_be_examined(data: bytes) -> None:
    assert 0 <= tls_records(data) <= len(data) // 5, "a record has a header of five bytes"


def test_the_wire_witness_fails_in_every_way_it_should() -> None:
    canary = "canary123"
    clear, sealed = b"SELECT 'canary123'", HELLO + RECORD
    assert judge_wire(clear, clear, canary, "plain")[0]
    assert not judge_wire(clear, sealed, canary, "plain")[0]
    assert judge_wire(sealed, sealed, canary, "encrypted")[0]
    assert not judge_wire(clear, sealed, canary, "encrypted")[0]
    assert not judge_wire(b"no canary, no records", b"neither", canary, "encrypted")[0]
    assert not judge_wire(b"", b"", canary, "encrypted")[0]
    assert not judge_wire(b"", b"", canary, "plain")[0]


def test_the_server_witness_fails_in_every_way_it_should() -> None:
    on: list[str | None] = ["t", "TLSv1.3", "A"]
    off: list[str | None] = ["f", None, None]
    assert judge_sessions([on, on], "encrypted", "A")[0]
    assert not judge_sessions([on, off], "encrypted", "A")[0]
    assert not judge_sessions([on], "encrypted", "B")[0]
    assert judge_sessions([["t", "TLS", None]], "encrypted", "B")[0], "NULL: the server does not report the cipher"
    assert not judge_sessions([["t", "TLS", ""]], "encrypted", "B")[0]
    assert not judge_sessions([["f", None, None]], "encrypted", "B")[0]
    assert not judge_sessions([], "encrypted", "A")[0]
    assert judge_sessions([off], "plain", "")[0]
    assert not judge_sessions([off, on], "plain", "")[0]
