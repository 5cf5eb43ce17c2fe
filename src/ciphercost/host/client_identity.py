"""client_identity: reads the certificate and key with which a client proves who it is: PEM, encrypted PEM, PKCS#12, or a key in DER.

Whatever is wrong with the files is found here, before anything connects. The unencrypted key leaves this process only in a message
to an agent, and for a JDBC driver in a key store that a random password encrypts.
"""

from __future__ import annotations

import datetime
import getpass
import os
import re
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, cast, get_args

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
    load_pem_private_key,
    pkcs12,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12PrivateKeyTypes
from cryptography.x509.oid import NameOID

from ciphercost.host import authorities
from ciphercost.model.connection import Connection
from ciphercost.model.errors import UsageError
from ciphercost.model.secret import Secret, reveal

PASSPHRASE = "CIPHERCOST_KEY_PASSPHRASE"  # noqa: S105 - a variable's name
CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
KEY = re.compile(rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----.*?-----END (?:[A-Z]+ )?PRIVATE KEY-----", re.DOTALL)
SEALED = re.compile(rb"ENCRYPTED")
OTHERS = 0o077
SHORT = {
    NameOID.COMMON_NAME: "CN",
    NameOID.COUNTRY_NAME: "C",
    NameOID.LOCALITY_NAME: "L",
    NameOID.STATE_OR_PROVINCE_NAME: "ST",
    NameOID.ORGANIZATION_NAME: "O",
    NameOID.ORGANIZATIONAL_UNIT_NAME: "OU",
    NameOID.EMAIL_ADDRESS: "emailAddress",
    NameOID.DOMAIN_COMPONENT: "DC",
    NameOID.USER_ID: "UID",
    NameOID.SERIAL_NUMBER: "serialNumber",
    NameOID.GIVEN_NAME: "GN",
    NameOID.SURNAME: "SN",
    NameOID.TITLE: "title",
}
"""OpenSSL's names of a subject's parts."""
STORE_NAME = b"user"
"""Name of the entry in a key store; pgjdbc looks for this one alone."""

Key = PKCS12PrivateKeyTypes


class Named(NamedTuple):
    """The files that a user named, and how: `--cert`, `sslcert`."""

    cert: str
    key: str = ""
    by_cert: str = "--cert"
    by_key: str = "--key"
    passphrase: Secret | None = None
    """From a file that the user's client reads, such as a service file."""


class ClientIdentity(msgspec.Struct, frozen=True):
    """A client's certificate, the chain above it, and its key."""

    certificate: x509.Certificate
    chain: tuple[x509.Certificate, ...]
    key: Secret
    """PKCS#8 in PEM, not encrypted."""

    @property
    def pem(self) -> Secret:
        """All of it as one PEM text."""
        shown = b"".join(certificate.public_bytes(Encoding.PEM) for certificate in (self.certificate, *self.chain))
        return Secret(shown.decode() + self.key.reveal())

    def store(self, password: Secret) -> bytes:
        """All of it as a PKCS#12 key store, encrypted with this password."""
        key = _pem_key(self.key.reveal().encode())
        sealed = BestAvailableEncryption(password.reveal().encode())
        return pkcs12.serialize_key_and_certificates(STORE_NAME, key, self.certificate, self.chain or None, sealed)


class ClientName(NamedTuple):
    """Whose certificate it is."""

    subject: str
    """As OpenSSL and PostgreSQL write it: `/O=Shop/CN=me`."""
    serial: int


_known: dict[Named, ClientIdentity] = {}
"""So that a passphrase is asked for once."""
_typed: dict[str, Secret] = {}


def load(named: Named) -> ClientIdentity:
    """Read and check the files. Asks for a passphrase on a terminal if one is needed and none was found.

    Raises UsageError, which never shows a part of a key.
    """
    if named not in _known:
        _known[named] = _load(named)
    return _known[named]


def name_in(pem: bytes) -> ClientName:
    """Whose certificate the first one in a PEM text is. Pure."""
    certificate = x509.load_pem_x509_certificate(pem)
    parts = [
        f"/{SHORT.get(attribute.oid, attribute.oid.dotted_string)}={attribute.value!s}"
        for rdn in certificate.subject.rdns
        for attribute in rdn
    ]
    return ClientName("".join(parts), certificate.serial_number)


def of(connection: Connection) -> ClientIdentity:
    """The identity that a connection presents. Raises UsageError, OSError."""
    text = reveal(connection.tls_identity)
    if not text:
        files = (connection.tls_certificate or "", connection.tls_key or "")
        text = "".join(Path(file).read_text() for file in files)
    content = text.encode()
    certificate, chain = _certificates(content, "the client certificate")
    return ClientIdentity(certificate, chain, _plain(_pem_key(content[content.index(b"-----BEGIN PRIVATE KEY") :])))


def store_password() -> Secret:
    """A password for a key store that only one agent reads."""
    return Secret(secrets.token_hex(16))


def passphrase_found() -> Secret | None:
    """The passphrase of the environment."""
    passphrase = os.environ.get(PASSPHRASE, "")
    return Secret(passphrase) if passphrase else None


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _load(named: Named) -> ClientIdentity:
    if not named.cert:
        raise UsageError(
            f"{named.by_key} {named.key}: a key without its certificate; name that with {named.by_cert} FILE"
        )
    where = f"{named.by_cert} {named.cert}"
    content = _content(Path(named.cert), where)
    if not CERTIFICATE.search(content) and (identity := _of_pkcs12(content, named)):
        _check(identity, where)
        return identity
    certificate, chain = _certificates(content, where)
    key_file, by_key, sealed = named.key, f"{named.by_key} {named.key}", b""
    if key_file:
        sealed = _content(Path(key_file), by_key)
    elif match := KEY.search(content):
        key_file, by_key, sealed = named.cert, where, match[0]
    else:
        raise UsageError(f"{where}: has no private key in it; name its key with {named.by_key} FILE")
    key = _key(sealed, by_key, key_file, named)
    spki = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if key.public_key().public_bytes(*spki) != certificate.public_key().public_bytes(*spki):
        raise UsageError(
            f"{by_key}: does not belong to the certificate in {named.cert} ({certificate.subject.rfc4514_string()}); name "
            "the key for which that was made"
        )
    identity = ClientIdentity(certificate, chain, _plain(key))
    _check(identity, where)
    return identity


def _content(path: Path, where: str) -> bytes:
    if not path.exists():
        raise UsageError(f"{where}: no such file")
    return authorities.content_of(path, where)


def _certificates(content: bytes, where: str) -> tuple[x509.Certificate, tuple[x509.Certificate, ...]]:
    """The client's certificate, and those above it."""
    try:
        certificates = [x509.load_pem_x509_certificate(pem_block) for pem_block in CERTIFICATE.findall(content)]
        if not certificates:
            certificates = [x509.load_der_x509_certificate(content)]
    except ValueError:
        if KEY.search(content):
            raise UsageError(
                f"{where}: this is a private key, without a certificate; name the certificate here"
            ) from None
        if b"CERTIFICATE REQUEST-----" in content:
            raise UsageError(
                f"{where}: this is a certificate request (CSR), which an authority has yet to sign; name the certificate"
            ) from None
        raise UsageError(f"{where}: no certificate that can be read; name a PEM or PKCS#12 file") from None
    return certificates[0], tuple(certificates[1:])


def _key(content: bytes, where: str, file: str, named: Named) -> Key:
    """The private key in a file. Raises UsageError."""
    match = KEY.search(content)
    text = match[0] if match else content
    load: Callable[[bytes, bytes | None], object] = load_pem_private_key if match else load_der_private_key
    if match and not SEALED.search(text):
        _only_ours(Path(file), where)
    try:
        key = _opened(lambda given: load(text, given), where, named)
    except UnsupportedAlgorithm:
        raise UsageError(f"{where}: a kind of key that TLS does not use; name an RSA, ECDSA or Ed25519 key") from None
    except ValueError:
        if not match and (identity := _of_pkcs12(content, named, where)):
            return _pem_key(identity.key.reveal().encode())
        if CERTIFICATE.search(content):
            raise UsageError(f"{where}: this is a certificate, without a private key; name the key here") from None
        raise UsageError(
            f"{where}: no private key that can be read; name a PEM (PKCS#8), DER or PKCS#12 file"
        ) from None
    if not isinstance(key, get_args(Key)):
        raise UsageError(f"{where}: a kind of key that TLS does not use; name an RSA, ECDSA or Ed25519 key")
    return cast("Key", key)


def _opened(load: Callable[[bytes | None], object], where: str, named: Named) -> object:
    """What `load` returns with the right passphrase, or without one. Raises ValueError if it is no key, UsageError for the rest."""
    try:
        return load(None)
    except TypeError:
        pass  # it is encrypted
    given, origin = _passphrase(where, named)
    try:
        return load(given.reveal().encode())
    except ValueError:
        raise UsageError(f"{where}: the passphrase ({origin}) is wrong") from None


def _passphrase(where: str, named: Named) -> tuple[Secret, str]:
    """(the passphrase, where it is from). Raises UsageError if there is none."""
    if named.passphrase:
        return named.passphrase, "of the client's own file"
    if passphrase := passphrase_found():
        return passphrase, f"in {PASSPHRASE}"
    if where not in _typed:
        if not sys.stdin.isatty():
            raise UsageError(
                f"{where}: the key is encrypted, and there is no terminal on which to ask for its passphrase; set {PASSPHRASE}"
            )
        _typed[where] = Secret(getpass.getpass(f"Passphrase of {where.partition(' ')[2]}: "))
    return _typed[where], "as typed"


def _of_pkcs12(content: bytes, named: Named, where: str = "") -> ClientIdentity | None:
    """What a PKCS#12 file holds; None if it is none. Raises UsageError."""
    where = where or f"{named.by_cert} {named.cert}"

    def load(given: bytes | None) -> pkcs12.PKCS12KeyAndCertificates:
        try:
            return pkcs12.load_pkcs12(content, given)
        except ValueError as error:
            if given is None and "password" in str(error).lower():
                raise TypeError from None  # as the functions for other files say it
            raise

    if content[:1] != b"\x30" or b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07" not in content[:64]:
        return None
    try:
        bundle = _opened(load, where, named)
    except ValueError:
        return None
    assert isinstance(bundle, pkcs12.PKCS12KeyAndCertificates)
    if bundle.key is None or bundle.cert is None:
        lacks = "private key" if bundle.key is None else "certificate"
        raise UsageError(f"{where}: this PKCS#12 file has no {lacks}; export certificate and key together")
    if not isinstance(bundle.key, get_args(Key)):
        raise UsageError(f"{where}: a kind of key that TLS does not use; name an RSA, ECDSA or Ed25519 key")
    above = tuple(entry.certificate for entry in bundle.additional_certs)
    return ClientIdentity(bundle.cert.certificate, above, _plain(bundle.key))


def _pem_key(content: bytes) -> Key:
    """A key that this process has written. Pure."""
    key = load_pem_private_key(content, None)
    assert isinstance(key, get_args(Key))
    return cast("Key", key)


def _plain(key: Key) -> Secret:
    return Secret(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


def _only_ours(path: Path, where: str) -> None:
    """Raises UsageError, as libpq does, for an unencrypted key that others can read."""
    status = path.stat()
    root_gave_it = status.st_uid == 0 and not status.st_mode & 0o027
    if status.st_mode & OTHERS and not root_gave_it:
        raise UsageError(f"{where}: others can read this private key, which is not encrypted: chmod 600 {path}")


def _check(identity: ClientIdentity, where: str) -> None:
    """Raises UsageError if the certificate is not valid now."""
    now = datetime.datetime.now(datetime.UTC)
    subject = identity.certificate.subject.rfc4514_string()
    if identity.certificate.not_valid_after_utc < now:
        raise UsageError(
            f"{where}: the certificate ({subject}) has expired, on "
            f"{identity.certificate.not_valid_after_utc:%Y-%m-%d}; renew it"
        )
    if identity.certificate.not_valid_before_utc > now:
        raise UsageError(
            f"{where}: the certificate ({subject}) is valid from "
            f"{identity.certificate.not_valid_before_utc:%Y-%m-%d} only; check this machine's clock"
        )
