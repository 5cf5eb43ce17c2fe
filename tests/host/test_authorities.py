"""authorities: PEM, DER and directories work; everything else is named for what it is, in one line."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    pkcs7,
    pkcs12,
)

from ciphercost.host import authorities
from ciphercost.model.errors import UsageError

KEY = ec.generate_private_key(ec.SECP256R1())
NAME = x509.Name.from_rfc4514_string("CN=an authority")
DAY = datetime.timedelta(days=1)


def authority(*, expired: bool = False) -> x509.Certificate:
    end = datetime.datetime.now(datetime.UTC) + (-DAY if expired else 1000 * DAY)
    builder = x509.CertificateBuilder().subject_name(NAME).issuer_name(NAME).public_key(KEY.public_key())
    builder = builder.serial_number(1).not_valid_before(end - 2000 * DAY).not_valid_after(end)
    return builder.sign(KEY, hashes.SHA256())


CA = authority()
PEM, DER = CA.public_bytes(Encoding.PEM), CA.public_bytes(Encoding.DER)
REQUEST = x509.CertificateSigningRequestBuilder().subject_name(NAME).sign(KEY, hashes.SHA256())
LIST = (
    x509.CertificateRevocationListBuilder()
    .issuer_name(NAME)
    .last_update(datetime.datetime.now(datetime.UTC))
    .next_update(datetime.datetime.now(datetime.UTC) + 1000 * DAY)
    .sign(KEY, hashes.SHA256())
)
STORE = pkcs12.serialize_key_and_certificates(None, None, None, [CA], BestAvailableEncryption(b"x"))


def test_pem_and_der_and_hashed_directories_hold_authorities(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"my authority\n" + PEM)
    (tmp_path / "ca.der").write_bytes(DER)
    hashed = tmp_path / "hashed"
    hashed.mkdir()
    (hashed / "4f316efb.0").write_bytes(PEM)
    (hashed / "4f316efb.r0").write_bytes(LIST.public_bytes(Encoding.PEM))
    (hashed / "ca.crt").write_bytes(PEM)
    assert authorities.pem(tmp_path / "ca.pem") == PEM
    assert authorities.pem(tmp_path / "ca.der") == PEM
    assert authorities.pem(hashed) == PEM + LIST.public_bytes(Encoding.PEM)
    directory = tmp_path / "made"
    assert authorities.file_for(tmp_path / "ca.pem", (), directory) == tmp_path / "ca.pem"
    assert not directory.exists()
    assert authorities.file_for(tmp_path / "ca.der", (), directory).read_bytes() == PEM
    (tmp_path / "list.der").write_bytes(LIST.public_bytes(Encoding.DER))
    both = authorities.file_for(tmp_path / "ca.pem", (str(tmp_path / "list.der"),), directory).read_bytes()
    assert both == PEM + LIST.public_bytes(Encoding.PEM)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"hello\n", "contains no certificate"),
        (bytes(range(256)), "contains no certificate"),
        (KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), "this is a private key"),
        (KEY.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()), "this is a private key"),
        (KEY.private_bytes(Encoding.DER, PrivateFormat.PKCS8, BestAvailableEncryption(b"x")), "this is a private key"),
        (KEY.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()), "this is a private key"),
        (KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), "this is a public key"),
        (REQUEST.public_bytes(Encoding.PEM), "this is a certificate request"),
        (REQUEST.public_bytes(Encoding.DER), "this is a certificate request"),
        (LIST.public_bytes(Encoding.PEM), "only a revocation list"),
        (pkcs7.serialize_certificates([CA], Encoding.PEM), "openssl pkcs7 -in"),
        (pkcs7.serialize_certificates([CA], Encoding.DER), "openssl pkcs7 -inform DER -in"),
        (STORE, "openssl pkcs12 -in"),
        (b"\xfe\xed\xfe\xed\0\0\0\x02", "this is a Java key store"),
        (PEM.replace(b"MI", b"AA", 1), "certificate 1 in it is damaged"),
        (authority(expired=True).public_bytes(Encoding.PEM), "the authority (CN=an authority) has expired, on "),
    ],
)
def test_any_other_file_is_named_for_what_it_is(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "a file"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        authorities.pem(path)
    message = str(caught.value)
    assert message.startswith(f"--ca {path}: ")
    assert words in message
    assert "\n" not in message


def test_a_directory_without_hashes_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(PEM)
    with pytest.raises(UsageError, match="openssl rehash"):
        authorities.pem(tmp_path)
    with pytest.raises(UsageError, match="no such file"):
        authorities.pem(tmp_path / "none")
    with pytest.raises(UsageError, match="no revocation list"):
        authorities.lists(tmp_path / "ca.crt", "sslcrl")


def test_an_expired_authority_beside_a_valid_one_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(authority(expired=True).public_bytes(Encoding.PEM) + PEM)
    assert authorities.pem(tmp_path / "ca.pem").count(b"BEGIN CERT") == 2
