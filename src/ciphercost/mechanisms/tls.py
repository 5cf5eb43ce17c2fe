"""tls: encryption in transit. One server for both arms; the encrypted arm's connections negotiate TLS, the plain arm's don't."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ciphercost.engines import Engine
from ciphercost.errors import UsageError
from ciphercost.guard import hand_over
from ciphercost.mechanisms import Factor, Mechanism
from ciphercost.model import Arm
from ciphercost.pki import CERTIFICATES, Pki
from ciphercost.relay import tls_records

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
"""CBC with an HMAC, as old servers and old middleboxes have it: of TLS 1.2 alone, and not of every server."""
GROUPS = {"x25519": "X25519", "p256": "P-256", "p384": "P-384", "x25519mlkem768": "X25519MLKEM768"}
KEYS = {"rsa2048": "RSA 2048", "rsa4096": "RSA 4096", "ecdsa-p256": "EC P-256"}
"""Of a certificate, as the agent calls it."""
VERIFY = {"full": "verify-full", "ca": "verify-ca", "require": "require"}


def suite(factors: Mapping[str, str]) -> str:
    """The cipher suite by its OpenSSL name (TLS 1.2) or IANA name (TLS 1.3), for factors with their defaults filled in. Pure."""
    suites = SUITES_13 if factors["version"] == "1.3" else SUITES_12 | SUITES_CBC
    return suites[factors["cipher"]].format("ECDSA" if factors["certificate"].startswith("ecdsa") else "RSA")


def offered(version: str, *, cbc: bool = True) -> list[str]:
    """Every suite of that version that a cell may ask for: what a server of ours offers, whatever its certificate. Pure."""
    if version == "1.3":
        return list(SUITES_13.values())
    return [name.format(key) for name in (SUITES_12 | (SUITES_CBC if cbc else {})).values() for key in ("ECDSA", "RSA")]


def impossible(factors: Mapping[str, str]) -> str:
    """Why TLS itself has no such combination, for factors with their defaults filled in; empty where it has. Pure."""
    if factors["version"] != "1.2" and factors["cipher"] in SUITES_CBC:
        return "TLS 1.3 has no CBC"
    if factors["version"] != "1.2" or not factors["group"]:
        return ""
    if factors["group"] == "x25519mlkem768":
        return "TLS 1.2 has no post-quantum groups"
    if factors["certificate"] == "ecdsa-p256" and factors["group"] != "p256":
        return "in TLS 1.2 the curve of an ECDSA certificate (ecdsa-p256) must be among the groups"
    return ""


class Tls(Mechanism):
    name = "tls"
    title = "TLS on the connection"
    layer = "transit"
    witnesses = ("server", "wire", "client")
    protects = "data on the network: reading and changing it between client and server"
    factors = (
        Factor("version", ("1.3", "1.2"), "protocol version, the only one that the client offers"),
        Factor(
            "cipher",
            (*SUITES_12, *SUITES_CBC),
            "cipher suite, the only one that the client offers; CBC: with version=1.2",
        ),
        Factor(
            "certificate", tuple(CERTIFICATES), "key of the server's certificate and of its CA", {"ecdsa": "ecdsa-p256"}
        ),
        Factor("group", ("", *GROUPS), "key exchange group; empty: what client and server agree on"),
        Factor("verify", ("full", "ca", "require"), "what the client checks: chain and name, chain alone, nothing"),
        Factor(
            "resumption",
            ("off", "on", "tickets", "cache"),
            "whether new connections may resume an earlier session; on a web server, which keeps it: the client or the server",
        ),
        Factor(
            "share",
            ("all", "checkout"),
            "on a web server: which requests are encrypted, all or those that the workload marks",
        ),
    )

    def serves(self, engine: Engine) -> bool:
        return engine.has_tls

    def fits(self, engine: Engine, factors: Mapping[str, str]) -> None:
        if reason := impossible(factors):
            name = "cipher" if factors["cipher"] in SUITES_CBC and factors["version"] != "1.2" else "group"
            said = f"version={factors['version']} does not go with {name}={factors[name]}: {reason}"
            raise UsageError(f"{said}; write version=1.2" if name == "cipher" else f"{said}; leave one of them out")
        if factors["cipher"] in SUITES_CBC and not engine.tls_cbc:
            raise UsageError(f"{engine.name} takes no suite of CBC: leave cipher={factors['cipher']} out")
        if factors["share"] != "all" and engine.language != "http":
            raise UsageError(
                f"share={factors['share']} is for web servers: a connection to {engine.name} is encrypted or not"
            )
        if factors["resumption"] in ("off", *engine.tls_resumption):
            return
        if engine.tls_resumption:
            raise UsageError(
                f"{engine.name} has no resumption '{factors['resumption']}': write {' or '.join(('off', *engine.tls_resumption))}"
            )
        raise UsageError(
            f"{engine.name} never resumes a TLS session: every connection is a full handshake. Leave resumption off."
        )

    def server_settings(self, engine: Engine, factors: Mapping[str, str], secrets: Path) -> dict[str, str]:
        """The first call makes the certificate authority and the server's certificate in `secrets`."""
        factors = self.check(factors)
        pki = Pki(_directory(secrets, factors), factors["certificate"], reuse=True)
        hand_over(secrets)  # or a server that runs as nobody couldn't pass through it to its key
        return engine.tls_settings(pki, factors)

    def sign(self, sent: bytes, received: bytes) -> tuple[bool, str]:
        """TLS records of application data, in both directions."""
        records = tls_records(sent), tls_records(received)
        return all(records), f"{sum(records)} TLS records" if all(records) else "there are no TLS records"

    def promises(self, factors: Mapping[str, str]) -> dict[str, str]:
        """The key of the server's certificate."""
        return {"peer_key": KEYS[factors["certificate"]]} if factors.get("certificate") else {}

    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> dict[str, object]:  # noqa: ARG002
        """Only factors that are given are pinned, so that a server of the user's own is met with none of our defaults."""
        if arm == "plain":
            return {"tls": "off"}
        full = self.check(factors)
        factors = {name: full[name] for name in factors}
        fields: dict[str, object] = {
            "tls": VERIFY[factors.get("verify", "full")],
            "resumption": factors.get("resumption", "off") != "off",
        }
        if "version" in factors or "cipher" in factors:
            fields["tls_min"] = fields["tls_max"] = full["version"]  # a suite belongs to one version
            if "cipher" in factors:
                fields["tls_ciphers"] = suite(full)
        if factors.get("group"):
            fields["tls_groups"] = GROUPS[factors["group"]]
        ca = _directory(secrets, factors) / "ca.pem"
        if ca.exists():
            fields["tls_ca"] = str(ca)
        return fields


def _directory(secrets: Path, factors: Mapping[str, str]) -> Path:
    return secrets / f"tls-{factors.get('certificate', 'rsa2048')}"


MECHANISM = Tls()
