"""pki: what the certificates contain, and that nobody else can read the keys."""

from __future__ import annotations

import os
import ssl
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa

import kept_primes
from ciphercost.host import pki
from ciphercost.host.pki import CLIENT, Pki
from ciphercost.host.run_ownership import server_user
from ciphercost.model.errors import UsageError


@pytest.fixture(autouse=True)
def own_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys as the product makes them."""
    monkeypatch.setattr(pki, "CERTIFICATES", kept_primes.OWN)


def load(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


@pytest.mark.parametrize(
    ("kind", "bits"), [*((f"rsa{bits}", bits) for bits in (1024, 1280, 1536, 2048, 3072, 4096)), ("ecdsa-p256", 256)]
)
def test_a_certificate_has_the_named_key_and_a_ca_of_the_same_kind(tmp_path: Path, kind: str, bits: int) -> None:
    issued = Pki(tmp_path / "pki", kind)
    for path in (issued.ca, issued.certificate):
        key = load(path).public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey if kind.startswith("ecdsa") else rsa.RSAPublicKey)
        assert key.key_size == bits
    load(issued.certificate).verify_directly_issued_by(load(issued.ca))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("DEFAULT:@SECLEVEL=1")  # RSA keys below 2048 bits need it
    context.load_cert_chain(issued.certificate, issued.key)  # refuses a key that isn't the certificate's


def test_keys_are_readable_by_the_server_alone_and_the_ca_has_none(tmp_path: Path) -> None:
    issued = Pki(tmp_path / "pki")
    status = issued.key.stat()
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert status.st_uid == (server_user() or (os.geteuid(), 0))[0]
    assert stat.S_IMODE(issued.directory.stat().st_mode) == 0o700
    assert [path.name for path in issued.directory.iterdir() if b"PRIVATE" in path.read_bytes()] == ["server.key"]


def test_a_client_gets_a_certificate_of_its_own_from_the_same_authority(tmp_path: Path) -> None:
    issued = Pki(tmp_path / "pki", "ecdsa-p256", client=True)
    path, key = (issued.directory / name for name in CLIENT)
    certificate = load(path)
    certificate.verify_directly_issued_by(load(issued.ca))
    assert certificate.serial_number != load(issued.certificate).serial_number
    purposes = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(purposes) == [x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH]
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(path, key)
    assert not (Pki(tmp_path / "other", "ecdsa-p256").directory / CLIENT[0]).exists()


def test_a_certificate_is_for_localhost_and_lasts_a_day(tmp_path: Path) -> None:
    certificate = load(Pki(tmp_path / "pki", "ecdsa-p256").certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert (certificate.not_valid_after_utc - certificate.not_valid_before_utc).total_seconds() == 25 * 3600


def test_it_is_also_for_the_address_on_which_its_server_listens(tmp_path: Path) -> None:
    certificate = load(Pki(tmp_path / "pki", "ecdsa-p256", address="10.77.0.1").certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "10.77.0.1"]


def test_it_can_be_for_another_name(tmp_path: Path) -> None:
    other = load(Pki(tmp_path / "other", "ecdsa-p256", name="elsewhere.example").certificate)
    names = other.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["elsewhere.example"]
    assert not names.get_values_for_type(x509.IPAddress)


def test_reuse_keeps_existing_files(tmp_path: Path) -> None:
    first = Pki(tmp_path / "pki", "ecdsa-p256").ca.read_bytes()
    assert Pki(tmp_path / "pki", "ecdsa-p256", reuse=True).ca.read_bytes() == first
    assert Pki(tmp_path / "pki", "ecdsa-p256").ca.read_bytes() != first


def test_an_unknown_certificate_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'rsa2048'"):
        Pki(tmp_path / "pki", "rsa-2048")
    assert not (tmp_path / "pki").exists()
