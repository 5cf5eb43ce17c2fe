"""tls_names: names of TLS versions, suites, groups and keys: ciphercost's, OpenSSL's and the agent's. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ciphercost.host.pki import CERTIFICATES

SUITES_13 = {
    "aes256-gcm": "TLS_AES_256_GCM_SHA384",
    "aes128-gcm": "TLS_AES_128_GCM_SHA256",
    "chacha20": "TLS_CHACHA20_POLY1305_SHA256",
}
SUITES_12 = {
    "aes256-gcm": "ECDHE-{}-AES256-GCM-SHA384",
    "aes128-gcm": "ECDHE-{}-AES128-GCM-SHA256",
    "chacha20": "ECDHE-{}-CHACHA20-POLY1305",
}
SUITES_CBC = {"aes256-cbc": "ECDHE-{}-AES256-SHA384", "aes128-cbc": "ECDHE-{}-AES128-SHA256"}
"""CBC with an HMAC, for old servers and middleboxes: only in TLS 1.2, and not on every server."""
SUITES_OLD = {"aes256-cbc": "ECDHE-{}-AES256-SHA", "aes128-cbc": "ECDHE-{}-AES128-SHA"}
"""TLS 1.0 and 1.1 have only CBC suites; these use HMAC-SHA-1."""
OLD = ("1.1", "1.0")
"""Versions that were deprecated by RFC 8996 (2021)."""
PROTOCOLS = {"1.3": "TLSv1.3", "1.2": "TLSv1.2", "1.1": "TLSv1.1", "1.0": "TLSv1"}
"""Versions as OpenSSL, nginx and Apache name them."""
POSTGRESQL_ALPN = "postgresql"
HTTP3_ALPN = "h3"
"""HTTP/3, as client and server agree on it in the handshake."""
HTTP3_LOGGED = "HTTP/3.0"
"""HTTP/3, as a server logs it."""
EARLY_LOGGED = "0-RTT"
"""A request that came before its handshake was complete, in a server's log."""
GROUPS = {
    "x25519": "X25519",
    "p256": "P-256",
    "p384": "P-384",
    "x25519mlkem768": "X25519MLKEM768",
    "mlkem768": "MLKEM768",
}
POST_QUANTUM = tuple(name for name in GROUPS if "mlkem" in name)
"""Groups of TLS 1.3 that OpenSSL has since 3.5."""
KEYS = {name: f"RSA {name.removeprefix('rsa')}" for name in CERTIFICATES if name.startswith("rsa")} | {
    "ecdsa-p256": "EC P-256",
    "mldsa44": "ML-DSA-44",
    "mldsa65": "ML-DSA-65",
}
"""Keys of certificates, as the agent names them."""
POST_QUANTUM_KEYS = tuple(name for name in CERTIFICATES if name.startswith("mldsa"))
"""Keys of certificates in TLS 1.3 that OpenSSL has since 3.5."""
WEAK = tuple(name for name, key in KEYS.items() if key.startswith("RSA") and int(key.split()[1]) < 2048)
"""RSA keys that OpenSSL refuses at security level 2, the default since OpenSSL 3.2 and in Debian."""


def suite(factors: Mapping[str, str]) -> str:
    """The cipher suite by its OpenSSL name (TLS 1.2) or IANA name (TLS 1.3), for factors with their defaults filled in.
    Pure.
    """
    suites = {"1.3": SUITES_13, "1.2": SUITES_12 | SUITES_CBC}.get(factors["version"], SUITES_OLD)
    return suites[factors["cipher"]].format("ECDSA" if factors["certificate"].startswith("ecdsa") else "RSA")


def offered(version: str, *, cbc: bool = True) -> list[str]:
    """Every suite of that version that a cell may request: offered by a server that ciphercost starts, whatever its
    certificate. Pure.
    """
    if version == "1.3":
        return list(SUITES_13.values())
    suites = SUITES_OLD if version in OLD else SUITES_12 | (SUITES_CBC if cbc else {})
    return [name.format(key) for name in suites.values() for key in ("ECDSA", "RSA")]


def security_level(factors: Mapping[str, str]) -> int | None:
    """OpenSSL's security level that these factors need if the default refuses them; None: the default is fine. Pure.

    Level 1 accepts RSA keys from 1024 bits on. TLS 1.0 and 1.1 sign handshakes with SHA-1, which OpenSSL 3 allows only
    at level 0.
    """
    if factors.get("version") in OLD:
        return 0
    return 1 if factors.get("certificate") in WEAK else None
