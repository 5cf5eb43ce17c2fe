"""Each witness of HTTP/3 says no where it must."""

from __future__ import annotations

import msgspec
import pytest

from ciphercost.host.datagram_relay import quic_sign
from ciphercost.model.connection import Connected, Connection, HttpVersion
from ciphercost.prove.client_witness import describe, negotiated, negotiation_mismatch
from ciphercost.prove.session_witness import judge_sessions, other_http
from ciphercost.prove.wire_witness import judge_wire

BY_QUIC = ["t", "HTTP/3.0 TLSv1.3", "TLS_AES_256_GCM_SHA384"]
BY_TCP = ["t", "TLSv1.3", "TLS_AES_256_GCM_SHA384"]
ANSWER = Connected(
    connections=1,
    encrypted=True,
    protocol="TLSv1.3",
    cipher="TLS_AES_256_GCM_SHA384",
    group="X25519",
    application="h3",
)
HTTP = Connection(driver="http")
HTTP3 = HTTP | {"http": "3"}
LONG = b"\xc0\x00\x00\x00\x01" + bytes(40)
SHORT = b"\x41" + bytes(40)
CANARY = "canary0123"


@pytest.mark.parametrize(
    ("rows", "http", "reason"),
    [
        ([BY_QUIC, BY_QUIC], "3", ""),
        ([BY_TCP], "2", ""),
        ([["f", "", ""]], None, ""),
        ([BY_QUIC, BY_TCP], "3", "1 of 2 requests did not come by HTTP/3"),
        ([BY_QUIC], None, "1 requests came by HTTP/3"),
    ],
)
def test_the_servers_log_must_name_the_version(
    rows: list[list[str | None]], http: HttpVersion | None, reason: str
) -> None:
    assert other_http(rows, HTTP | {"http": http}) == reason


def test_the_servers_report_names_version_and_cipher() -> None:
    passed, words = judge_sessions([list(BY_QUIC)], "encrypted", BY_QUIC[2])
    assert (passed, words) == (True, f"the server reports: HTTP/3.0 TLSv1.3 {BY_QUIC[2]}")
    assert not judge_sessions([list(BY_QUIC)], "plain", "")[0]


def test_the_client_must_have_agreed_on_it() -> None:
    assert negotiation_mismatch(ANSWER, HTTP3) == ""
    for other in ("h2", ""):
        assert negotiation_mismatch(msgspec.structs.replace(ANSWER, application=other), HTTP3) == "HTTP/3 was requested"
    assert describe(ANSWER).startswith("HTTP/3 TLSv1.3")
    assert negotiated(ANSWER)["http"] == "HTTP/3"
    assert "http" not in negotiated(msgspec.structs.replace(ANSWER, application="h2"))


@pytest.mark.parametrize(
    ("sent", "received", "passes"),
    [
        ([LONG, SHORT], [LONG, SHORT], True),
        ([LONG, SHORT, b"\x41" + CANARY.encode()], [LONG, SHORT], False),
        ([LONG, SHORT], [LONG, b"\x41 " + CANARY.encode()], False),
        ([LONG, SHORT], [LONG], False),
        ([LONG, SHORT, b"\x17\x03\x03\x00\x01a"], [LONG, SHORT], False),
        ([], [], False),
    ],
)
def test_the_wire_must_show_quic_and_no_canary(sent: list[bytes], received: list[bytes], passes: bool) -> None:
    judged = judge_wire(b"".join(sent), b"".join(received), CANARY, "encrypted", lambda *_: quic_sign(sent, received))
    assert judged[0] == passes, judged
