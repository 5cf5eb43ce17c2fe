"""pki: makes a certificate authority for this run, and one server certificate that is valid for a day."""

from __future__ import annotations

import datetime
import functools
import ipaddress
import os
from collections.abc import Callable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, mldsa, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ciphercost.host.ports import LOOPBACK
from ciphercost.host.run_ownership import server_user
from ciphercost.model.errors import UsageError, nearest

Key = (
    rsa.RSAPrivateKey
    | ec.EllipticCurvePrivateKey
    | ed25519.Ed25519PrivateKey
    | mldsa.MLDSA44PrivateKey
    | mldsa.MLDSA65PrivateKey
)

RSA_BITS = (2048, 1024, 1280, 1536, 3072, 4096)
"""The first one is the default."""
CERTIFICATES: dict[str, Callable[[], Key]] = {
    **{f"rsa{bits}": functools.partial(rsa.generate_private_key, 65537, bits) for bits in RSA_BITS},
    "ecdsa-p256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "mldsa44": mldsa.MLDSA44PrivateKey.generate,
    "mldsa65": mldsa.MLDSA65PrivateKey.generate,
}
CLIENT = ("client.pem", "client.key")
"""The client's own certificate and key, if it has them."""
CLIENT_NAME = "ciphercost client"
"""Common name of that certificate."""
UNBOUND = "ed25519"
"""A certificate for an impostor only: its signature names no hash, so a login can't be bound to it by `tls-server-end-point`
(RFC 5929).
"""
DAY = datetime.timedelta(days=1)
HOUR = datetime.timedelta(hours=1)


class Pki:
    """`ca`, `certificate` and `key`: PEM files in `directory`, which is created with mode 0700.

    The server certificate is for localhost, 127.0.0.1 and the server's `address`, or for `name` only. `owner`: uid and gid
    that read the key, if they are not those of the user that servers run as. `reuse` keeps what an earlier call made.
    `both_ends`: a client may present the certificate too. `client`: also make a second certificate of the same kind, in the
    files CLIENT, for servers that require a client certificate. `self_signed`: no authority has signed the server's certificate but
    its own key. The CA's own key is never written to disk.
    """

    def __init__(
        self,
        directory: Path,
        certificate: str = "rsa2048",
        *,
        owner: tuple[int, int] | None = None,
        name: str = "",
        address: str = LOOPBACK,
        reuse: bool = False,
        both_ends: bool = False,
        client: bool = False,
        self_signed: bool = False,
    ) -> None:
        kinds = {**CERTIFICATES, UNBOUND: ed25519.Ed25519PrivateKey.generate}
        if certificate not in kinds:
            raise UsageError(f"unknown certificate '{certificate}': {nearest(certificate, CERTIFICATES)}")
        self.kind = certificate
        self.address = address
        self.directory = directory
        self.ca, self.certificate, self.key = (directory / name for name in ("ca.pem", "server.pem", "server.key"))
        if reuse and self.key.exists():
            return
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)

        now = datetime.datetime.now(datetime.UTC)
        begin, end = now - HOUR, now + DAY  # an hour back: clocks of client and server may differ
        ca_key = kinds[certificate]()  # of the same kind: the client verifies its signature in every handshake
        ca = _authority(ca_key, now - DAY, now + DAY)
        key = kinds[certificate]()
        server = _server(
            key,
            None if self_signed else ca,
            key if self_signed else ca_key,
            begin,
            end,
            name,
            address,
            both_ends=both_ends,
        )

        _write(self.ca, ca.public_bytes(serialization.Encoding.PEM), 0o644)
        if client:
            client_key = kinds[certificate]()
            path, key_file = (directory / name for name in CLIENT)
            _write_pair(path, key_file, _client(client_key, ca, ca_key, begin, end), client_key)
        _write_pair(self.certificate, self.key, server, key)  # written last: `reuse` checks for it
        if user := owner or server_user():
            for path in (directory, *directory.iterdir()):
                os.chown(path, *user)


def _authority(key: Key, begin: datetime.datetime, end: datetime.datetime) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ciphercost test CA")])
    return (
        _builder(name, name, key, begin, end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
        .sign(key, _digest(key))
    )


def _server(
    key: Key,
    ca: x509.Certificate | None,
    ca_key: Key,
    begin: datetime.datetime,
    end: datetime.datetime,
    name: str,
    address: str,
    *,
    both_ends: bool,
) -> x509.Certificate:
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, *([ExtendedKeyUsageOID.CLIENT_AUTH] if both_ends else [])]
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name or "localhost")])
    alternatives: list[x509.GeneralName] = [x509.DNSName(name or "localhost")]
    if not name:
        alternatives += [x509.IPAddress(ipaddress.ip_address(ip)) for ip in dict.fromkeys((LOOPBACK, address))]
    rsa_key = isinstance(key, rsa.RSAPrivateKey)
    return (
        _builder(subject, ca.subject if ca else subject, key, begin, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True, key_encipherment=rsa_key), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, _digest(ca_key))
    )


def _client(
    key: Key, ca: x509.Certificate, ca_key: Key, begin: datetime.datetime, end: datetime.datetime
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, CLIENT_NAME)])
    return (
        _builder(subject, ca.subject, key, begin, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, _digest(ca_key))
    )


def _builder(
    name: x509.Name, issuer: x509.Name, key: Key, begin: datetime.datetime, end: datetime.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _digest(key: Key) -> hashes.SHA256 | None:
    """What a signature with this key is over: ML-DSA hashes by itself."""
    return hashes.SHA256() if isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) else None


def _usage(
    *,
    digital_signature: bool = False,
    key_encipherment: bool = False,
    key_cert_sign: bool = False,
    crl_sign: bool = False,
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=key_encipherment,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )


def _write_pair(certificate: Path, key_file: Path, issued: x509.Certificate, key: Key) -> None:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write(certificate, issued.public_bytes(serialization.Encoding.PEM), 0o644)
    _write(key_file, private, 0o600)


def _write(path: Path, data: bytes, mode: int) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)  # never readable by others, not even briefly
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
