"""The certificate and key that a user names: every form is read, and what is wrong is one line that shows no part of a key."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa, x25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from ciphercost.host import client_identity
from ciphercost.host.client_identity import ClientName, Named
from ciphercost.model.connection import Connection
from ciphercost.model.errors import UsageError
from ciphercost.model.secret import Secret
from client_certs import ClientAuthority, Own

PASSPHRASE = "correct horse"


@pytest.fixture
def forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Own]:
    monkeypatch.setattr(client_identity, "_known", {})
    monkeypatch.setattr(client_identity, "_typed", {})
    monkeypatch.delenv("CIPHERCOST_KEY_PASSPHRASE", raising=False)
    return ClientAuthority(tmp_path).client("me", PASSPHRASE)


def named(given: Own) -> Named:
    return Named(str(given.cert), str(given.key or ""))


@pytest.mark.parametrize("form", ["pem", "one", "sealed", "pkcs12"])
def test_every_form_is_the_same_identity(forms: dict[str, Own], form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIPHERCOST_KEY_PASSPHRASE", PASSPHRASE)
    plain, identity = client_identity.load(named(forms["pem"])), client_identity.load(named(forms[form]))
    assert identity.pem == plain.pem
    assert "-----BEGIN PRIVATE KEY-----" in identity.pem.reveal()
    assert client_identity.name_in(identity.pem.reveal().encode()) == ClientName(
        "/O=Shop/CN=me", identity.certificate.serial_number
    )
    assert "BEGIN" not in f"{identity}{identity!r}".replace("Certificate", "")
    of = client_identity.of(Connection(driver="x", tls_identity=identity.pem))
    assert of.store(Secret("word"))[:1] == b"\x30"


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
@pytest.mark.parametrize("encoding", [Encoding.PEM, Encoding.DER])
def test_other_forms_of_keys_are_read(forms: dict[str, Own], form: PrivateFormat, encoding: Encoding) -> None:
    given = forms["pem"]
    assert given.key
    key = load_pem_private_key(given.key.read_bytes(), None)
    given.key.write_bytes(key.private_bytes(encoding, form, NoEncryption()))
    assert client_identity.load(named(given)).certificate


def test_the_passphrase_is_asked_for_once(forms: dict[str, Own], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)

    def answered(text: str) -> str:
        asked.append(text)
        return PASSPHRASE

    monkeypatch.setattr(getpass, "getpass", answered)
    for _ in range(2):
        client_identity.load(named(forms["sealed"]))
    assert asked == [f"Passphrase of {forms['sealed'].key}: "]


def test_a_service_files_passphrase_counts(forms: dict[str, Own], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIPHERCOST_KEY_PASSPHRASE", "wrong")
    assert client_identity.load(named(forms["sealed"])._replace(passphrase=Secret(PASSPHRASE)))


def test_what_is_wrong_is_one_line(forms: dict[str, Own], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIPHERCOST_KEY_PASSPHRASE", "wrong")
    pem, key = forms["pem"].cert, forms["pem"].key
    assert key
    other = tmp_path / "other.key"
    other.write_bytes(_pem(ec.generate_private_key(ec.SECP256R1())))
    exchange = tmp_path / "x25519.key"
    exchange.write_bytes(_pem(x25519.X25519PrivateKey.generate()))
    rsa_key = tmp_path / "rsa.key"
    rsa_key.write_bytes(_pem(rsa.generate_private_key(65537, 2048)))
    sealed = tmp_path / "sealed-old.key"
    sealed.write_bytes(
        ec.generate_private_key(ec.SECP256R1()).private_bytes(
            Encoding.PEM, PrivateFormat.TraditionalOpenSSL, BestAvailableEncryption(b"x")
        )
    )
    empty, noise, request = tmp_path / "empty", tmp_path / "noise", tmp_path / "request"
    empty.touch()
    noise.write_bytes(b"\x00\x01 no key \xff")
    request.write_text("-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE REQUEST-----\n")
    for file in (other, exchange, rsa_key, sealed):
        file.chmod(0o600)
    for cert, its_key, why in (
        ("none.pem", key, "--cert none.pem: no such file"),
        (pem, "none.key", "--key none.key: no such file"),
        ("", key, f"--key {key}: a key without its certificate"),
        (pem, "", "has no private key in it"),
        (pem, pem, "this is a certificate, without"),
        (key, key, "this is a private key, without"),
        (request, key, "this is a certificate request (CSR)"),
        (noise, key, "no certificate that can be read"),
        (pem, noise, "no private key that can be read"),
        (empty, key, "the file is empty"),
        (pem, empty, "the file is empty"),
        (pem, other, "does not belong to the certificate in"),
        (pem, rsa_key, "does not belong to the certificate in"),
        (pem, exchange, "kind of key that TLS does not use"),
        (pem, sealed, "the passphrase (in CIPHERCOST_KEY_PASSPHRASE) is wrong"),
        (forms["pkcs12"].cert, "", "the passphrase (in CIPHERCOST_KEY_PASSPHRASE) is wrong"),
    ):
        with pytest.raises(UsageError) as refused:
            client_identity.load(Named(str(cert), str(its_key)))
        assert why in str(refused.value)
        assert "\n" not in str(refused.value)
        assert "PRIVATE KEY-----" not in str(refused.value)
    key.chmod(0o644)
    with pytest.raises(UsageError, match=r"others can read this private key.*chmod 600"):
        client_identity.load(named(forms["pem"]))


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | x25519.X25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize("expired", [True])
def test_an_expired_certificate_is_refused(tmp_path: Path, expired: bool) -> None:
    given = ClientAuthority(tmp_path).client("late", expired=expired)["pem"]
    with pytest.raises(UsageError, match=r"\(CN=late,O=Shop\) has expired, on \d{4}-\d\d-\d\d; renew it"):
        client_identity.load(named(given))
