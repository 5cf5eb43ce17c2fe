"""authorities: reads certificate authorities (CA) and revocation lists (CRL) as users have them: PEM, DER, or a directory.

Every other kind of file is named for what it is, with the command that converts it.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, load_der_private_key, load_der_public_key, pkcs12

from ciphercost.model import bounds
from ciphercost.model.errors import UsageError

CERTIFICATE = re.compile(
    rb"-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----.*?-----END (?:TRUSTED |X509 )?CERTIFICATE-----", re.DOTALL
)
LIST = re.compile(rb"-----BEGIN X509 CRL-----.*?-----END X509 CRL-----", re.DOTALL)
LABEL = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----")
HASHED = re.compile(r"[0-9a-f]{8}\.(r?)[0-9]+")
"""A file of a directory that `openssl rehash` has made: of an authority, or with `r` of a revocation list."""


def pem(path: Path, option: str = "--ca") -> bytes:
    """The authorities, and any revocation lists, of a file or directory, as PEM. Raises UsageError naming `option`."""
    where = f"{option} {path}"
    if not path.exists():
        raise UsageError(f"{where}: no such file")
    content = _directory(path, where) if path.is_dir() else _file(path, where)
    _check_dates(content, where)
    return content


def lists(path: Path, option: str) -> bytes:
    """The revocation lists of a file, as PEM. Raises UsageError naming `option`."""
    where = f"{option} {path}"
    content = _authorities_in(path, where)
    if revocation_lists := LIST.findall(content):
        return b"\n".join(revocation_lists) + b"\n"
    try:
        return x509.load_der_x509_crl(content).public_bytes(Encoding.PEM)
    except ValueError:
        raise UsageError(f"{where}: no revocation list (CRL), in PEM or DER") from None


def file_for(ca: Path, crls: Iterable[str], directory: Path, option: str = "--ca") -> Path:
    """A PEM file of these authorities and revocation lists: `ca` itself if it is one, else a file in `directory`.

    Raises UsageError.
    """
    crls = tuple(crls)
    content = pem(ca, option)
    if not crls and ca.is_file() and CERTIFICATE.search(bounds.readable(ca, bounds.CERTIFICATES)):
        return ca.absolute()
    content += b"".join(lists(Path(crl), "the revocation list") for crl in crls)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = directory / f"authorities-{hashlib.sha256(content).hexdigest()[:16]}.pem"
    if not file.exists():
        file.write_bytes(content)
    return file


EMPTY = "the file is empty"


def content_of(path: Path, where: str, empty: str = EMPTY) -> bytes:
    """A file of certificates or keys. `where`: how the user named it; `empty`: what is said of one without content. Raises UsageError."""
    try:
        content = bounds.read(path, bounds.CERTIFICATES, where)
    except OSError as error:
        raise UsageError(f"{where}: can't be read: {error.strerror or error}") from None
    if not content.strip():
        raise UsageError(f"{where}: {empty}")
    return content


def _authorities_in(path: Path, where: str) -> bytes:
    return content_of(path, where, f"{EMPTY}; name the certificate of the authority that signed the server's")


def _file(path: Path, where: str) -> bytes:
    content = _authorities_in(path, where)
    if certificates := CERTIFICATE.findall(content):
        for number, certificate in enumerate(certificates, start=1):
            try:
                x509.load_pem_x509_certificate(re.sub(rb"(TRUSTED|X509) CERT", b"CERT", certificate))
            except ValueError:
                # A trusted certificate has more behind it, which OpenSSL alone reads.
                if b"TRUSTED" not in certificate[:40]:
                    raise UsageError(f"{where}: certificate {number} in it is damaged") from None
        return b"\n".join([*certificates, *LIST.findall(content)]) + b"\n"
    try:
        return x509.load_der_x509_certificate(content).public_bytes(Encoding.PEM)
    except ValueError:
        raise UsageError(f"{where}: {_named(path, content)}") from None


def _directory(path: Path, where: str) -> bytes:
    try:
        names = sorted(os.listdir(path))  # noqa: PTH208 - names are enough
    except OSError as error:
        raise UsageError(f"{where}: can't be read: {error.strerror or error}") from None
    hashed = [(name, match[1]) for name in names if (match := HASHED.fullmatch(name))]
    authorities = [_file(path / name, f"{where}/{name}") for name, kind in hashed if not kind]
    if not authorities:
        raise UsageError(
            f"{where}: the directory has no hashed certificates (names such as 4f316efb.0); run "
            f"openssl rehash {shlex.quote(str(path))}, or name one file"
        )
    return b"".join([*dict.fromkeys(authorities), *(lists(path / name, where) for name, kind in hashed if kind)])


def _check_dates(content: bytes, where: str) -> None:
    """Raises UsageError if every authority has expired: then none can vouch for a server."""
    now = datetime.datetime.now(datetime.UTC)
    expired = []
    for pem_block in CERTIFICATE.findall(content):
        if b"TRUSTED" in pem_block[:40]:
            return
        certificate = x509.load_pem_x509_certificate(pem_block.replace(b"X509 CERT", b"CERT"))
        if certificate.not_valid_after_utc >= now:
            return
        expired.append(certificate)
    if expired:
        last = max(expired, key=lambda certificate: certificate.not_valid_after_utc)
        raise UsageError(
            f"{where}: the authority ({last.subject.rfc4514_string()}) has expired, on "
            f"{last.not_valid_after_utc:%Y-%m-%d}; name the CA file that is valid now"
        )


def _named(path: Path, content: bytes) -> str:
    """What a file without a certificate is, and what to do. Pure."""
    file = shlex.quote(str(path))
    labels = {label.decode() for label in LABEL.findall(content)}
    if any("PRIVATE KEY" in label for label in labels) or _loads(load_der_private_key, content, None):
        return (
            "this is a private key, not a certificate. Keep it secret, and name the certificate of the authority that signed the "
            "server's"
        )
    if {"CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"} & labels or _loads(x509.load_der_x509_csr, content):
        return (
            "this is a certificate request (CSR), which an authority has yet to sign; name the authority's certificate"
        )
    if "X509 CRL" in labels or _loads(x509.load_der_x509_crl, content):
        return "only a revocation list (CRL), without the authority's certificate; put both into one PEM file"
    if {"PKCS7", "CMS"} & labels or _is_pkcs7(content):
        form = "" if labels else "-inform DER "
        return f"this is a PKCS#7 file; convert it with: openssl pkcs7 {form}-in {file} -print_certs -out ca.pem"
    if _is_pkcs12(content):
        return (
            f"this is a PKCS#12 file; convert it with: openssl pkcs12 -in {file} -nokeys -out ca.pem "
            "(add -cacerts to leave out the server's own certificate)"
        )
    if content.startswith((b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")):
        return f"this is a Java key store (JKS); convert it with: keytool -exportcert -rfc -keystore {file} -alias ALIAS -file ca.pem"
    if any("PUBLIC KEY" in label for label in labels) or _loads(load_der_public_key, content):
        return "this is a public key, not a certificate; name the certificate of the authority that signed the server's"
    return "contains no certificate; name a PEM or DER file of the authority that signed the server's certificate"


def _loads(load: Callable[..., object], content: bytes, *more: object) -> bool:
    """Whether this function of cryptography reads the content."""
    try:
        load(content, *more)
    except TypeError:
        return True  # an encrypted key, whose password is not given
    except (ValueError, UnsupportedAlgorithm):
        return False
    return True


def _is_pkcs7(content: bytes) -> bool:
    """Whether it begins as PKCS#7's signed data does in DER: a sequence with the object identifier 1.2.840.113549.1.7.2. Pure."""
    return content[:1] == b"\x30" and bytes.fromhex("06092a864886f70d010702") in content[:24]


def _is_pkcs12(content: bytes) -> bool:
    """Whether it begins as PKCS#12 does: a sequence with version 3 and data of PKCS#7. Pure."""
    begins = content[:1] == b"\x30" and bytes.fromhex("020103") in content[:12]
    if begins:
        return True
    try:
        pkcs12.load_pkcs12(content, None)
    except ValueError as error:
        return "password" in str(error).lower()
    return True
