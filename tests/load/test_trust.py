"""trust: when nothing more may be sent unencrypted, and how that is explained."""

from __future__ import annotations

import pytest

from ciphercost.load import plaintext_guard
from ciphercost.model.connection import Connection, TlsMode
from ciphercost.model.errors import AgentError
from ciphercost.model.spec import CellSpec
from ciphercost.plan.resolve import resolve
from ciphercost.provision.servers import Servers


def connection(tls: TlsMode) -> Connection:
    return Connection(driver="postgres", tls=tls)


def test_a_weaker_request_is_not_sent_to_a_server_that_failed_a_stronger_one() -> None:
    known, place = plaintext_guard.Refused(), ("host", 5432)
    known.note(place, connection("verify-ca"), AgentError("no", "tls"))
    assert known.reason(place, connection("off"))
    assert known.reason(place, connection("require"))
    assert not known.reason(place, connection("verify-ca"))  # another cipher may work
    assert not known.reason(place, connection("verify-full"))
    assert not known.reason(("host", 5433), connection("off"))
    known.note(place, connection("require"), AgentError("no", "tls"))
    assert known.reason(place, connection("require"))


def test_every_cell_of_a_run_is_known_before_the_first_connects() -> None:
    """Including cells that were already done before a resume."""
    cells = [resolve(CellSpec(engine="postgresql", mechanism=name, url="postgresql://h/d")) for name in ("none", "tls")]
    assert Servers(cells).cells == cells


@pytest.mark.parametrize(
    ("text", "code", "begin", "advice"),
    [
        ("PKIX path building failed", "tls", plaintext_guard.CERTIFICATE, "signed by an unknown authority"),
        ("CertificateExpiredException: NotAfter: Mon Nov 23", "tls", plaintext_guard.CERTIFICATE, "It has expired"),
        ("CertificateNotYetValidException: NotBefore: Tue", "tls", plaintext_guard.CERTIFICATE, "It is not valid yet"),
        ("No subject alternative DNS name matching db found", "tls", plaintext_guard.CERTIFICATE, "name mismatch"),
        ("the hostname db could not be verified", "08006", plaintext_guard.CERTIFICATE, "name mismatch"),
        (
            "the server's certificate (CN=a) has been revoked",
            "tls",
            plaintext_guard.CERTIFICATE,
            "Its authority has revoked it",
        ),
        ("--ca has no revocation list of the authority", "tls", plaintext_guard.CERTIFICATE, "newest revocation list"),
        (
            "Extended key usage does not permit use for TLS server",
            "tls",
            plaintext_guard.CERTIFICATE,
            "It is not for servers",
        ),
        (
            "CA key usage check failed: keyCertSign bit is not set",
            "tls",
            plaintext_guard.CERTIFICATE,
            "that is no authority",
        ),
        ("CertificateException: something new", "tls", plaintext_guard.CERTIFICATE, "name its CA with --ca"),
        ("Received fatal alert: protocol_version", "tls", plaintext_guard.ENCRYPTION, "no TLS version in common"),
        ("Unsupported or unrecognized SSL message", "tls", plaintext_guard.ENCRYPTION, "answer was not encrypted"),
        ("The server does not support SSL.", "08006", plaintext_guard.ENCRYPTION, "does not offer TLS"),
        ("Connection reset", "tls", plaintext_guard.ENCRYPTION, "allows the requested version and cipher"),
        ("password authentication failed for the hostname", "28P01", plaintext_guard.FAILED, ""),
    ],
)
def test_a_failure_is_explained_by_its_cause(text: str, code: str, begin: str, advice: str) -> None:
    message = plaintext_guard.words(text, code)
    assert message.startswith(begin)
    assert advice in message
    assert advice or message == begin
