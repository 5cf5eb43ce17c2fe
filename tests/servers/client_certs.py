"""client_certs: an authority for clients, with certificates and keys in every form that users bring."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)


class Own(NamedTuple):
    """What the user gives: `--cert`, and `--key` unless the first file holds the key too."""

    cert: Path
    key: Path | None = None

    @property
    def options(self) -> list[str]:
        return ["--cert", str(self.cert), *(["--key", str(self.key)] if self.key else [])]


class ClientAuthority:
    """`ca`: its certificate, which servers trust. Files are made in `directory`."""

    def __init__(self, directory: Path, name: str = "authority of clients") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._builder(self._name, self._key, datetime.datetime.now(datetime.UTC)).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self.ca = directory / "clients-ca.pem"
        self.ca.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, end: datetime.datetime
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(end - 10 * DAY)
            .not_valid_after(end + DAY)
        )

    def client(self, user: str, passphrase: str = "", *, expired: bool = False) -> dict[str, Own]:
        """The user's certificate and key, by form: `pem`, `one` file, `sealed` (PKCS#8), `pkcs12`."""
        key = ec.generate_private_key(ec.SECP256R1())
        end = datetime.datetime.now(datetime.UTC) - (2 * DAY if expired else 0 * DAY)
        subject = x509.Name(
            [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Shop"), x509.NameAttribute(NameOID.COMMON_NAME, user)]
        )
        purpose = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        certificate = (
            self._builder(subject, key, end).add_extension(purpose, critical=False).sign(self._key, hashes.SHA256())
        )
        sealed: KeySerializationEncryption = (
            BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
        )
        plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        shown = certificate.public_bytes(Encoding.PEM)
        stem = f"{user}{'-expired' if expired else ''}"
        return {
            "pem": Own(self._file(f"{stem}.pem", shown), self._file(f"{stem}.key", plain)),
            "one": Own(self._file(f"{stem}-both.pem", shown + plain)),
            "sealed": Own(
                self._file(f"{stem}.pem", shown),
                self._file(f"{stem}-sealed.key", key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, sealed)),
            ),
            "pkcs12": Own(
                self._file(f"{stem}.p12", pkcs12.serialize_key_and_certificates(b"me", key, certificate, None, sealed))
            ),
        }

    def _file(self, name: str, content: bytes) -> Path:
        path = self._directory / name
        path.write_bytes(content)
        path.chmod(0o600)
        return path
