"""chains: the certificates that a man in the middle could present: one that is right, and others that are wrong in one way
each.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)
SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
USAGES = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip


class Made(NamedTuple):
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)


class Presented(NamedTuple):
    """What the middle presents, and what the user has named with --ca. All are PEM files."""

    chain: Path
    key: Path
    ca: Path


class Chains:
    """Files in a directory; each is made when it is first asked for."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory

    @cached_property
    def authority(self) -> Made:
        """The CA that the user trusts."""
        return issue("the user's CA", None, is_ca=True)

    def present(self, kind: str) -> Presented:
        """`kind`: a name in `KINDS`."""
        leaf, *above = self._leaf(kind)
        place = self._directory / kind.replace(" ", "-")
        place.mkdir(exist_ok=True)
        presented = Presented(place / "chain.pem", place / "key.pem", place / "ca.pem")
        presented.chain.write_bytes(b"".join(issued.pem for issued in (leaf, *above)))
        presented.key.write_bytes(
            leaf.key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        presented.ca.write_bytes(self.authority.pem + (self._list(leaf) if kind == "revoked" else b""))
        return presented

    def _leaf(self, kind: str) -> Sequence[Made]:
        """The server's certificate, and those above it that the server sends."""
        ca = self.authority
        if kind == "leaf as authority":
            leaf = issue("shop.example", ca, purposes=(SERVER,), names=("shop.example",))
            return issue("localhost", leaf, purposes=(SERVER,)), leaf
        return (KINDS[kind](ca),)

    def _list(self, revoked: Made) -> bytes:
        """A revocation list of the authority."""
        entry = x509.RevokedCertificateBuilder().serial_number(revoked.certificate.serial_number)
        revocations = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self.authority.certificate.subject)
            .last_update(now() - DAY)
            .next_update(now() + DAY)
            .add_revoked_certificate(entry.revocation_date(now() - DAY).build())
            .sign(self.authority.key, hashes.SHA256())
        )
        return revocations.public_bytes(serialization.Encoding.PEM)


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def issue(
    name: str,
    issuer: Made | None,
    *,
    is_ca: bool = False,
    purposes: Sequence[x509.ObjectIdentifier] = (),
    names: Sequence[str] = ("localhost",),
    days: tuple[float, float] = (-1, 1),
) -> Made:
    """`issuer` None: it signs itself. `days`: validity from and to, from now."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    above = issuer or Made(x509.Certificate, key)  # type: ignore[arg-type]
    usage = {"key_cert_sign", "crl_sign"} if is_ca else {"digital_signature"}
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now() + days[0] * DAY)
        .not_valid_after(now() + days[1] * DAY)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**{kind: kind in usage for kind in USAGES}), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(above.key.public_key()), critical=False)
    )
    if purposes:
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    if not is_ca:
        address = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))] if "localhost" in names else []
        alternatives = [*(x509.DNSName(host) for host in names), *address]
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return Made(builder.sign(above.key, hashes.SHA256()), key)


KINDS = {
    "good": lambda ca: issue("localhost", ca, purposes=(SERVER,)),
    "another authority": lambda ca: issue("localhost", issue("another CA", None, is_ca=True), purposes=(SERVER,)),
    "self-signed": lambda ca: issue("localhost", None, purposes=(SERVER,)),
    "expired": lambda ca: issue("localhost", ca, purposes=(SERVER,), days=(-2, -0.1)),
    "not yet valid": lambda ca: issue("localhost", ca, purposes=(SERVER,), days=(0.5, 1)),
    "another name": lambda ca: issue("elsewhere.example", ca, purposes=(SERVER,), names=("elsewhere.example",)),
    "for clients only": lambda ca: issue("localhost", ca, purposes=(CLIENT,)),
    "revoked": lambda ca: issue("localhost", ca, purposes=(SERVER,)),
}
"""By kind: the server's certificate, for the CA that the user trusts."""
