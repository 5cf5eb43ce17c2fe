"""Encryption in transit.

One server serves both arms: the encrypted arm's connections negotiate TLS, the plain arm's don't.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ciphercost import hops
from ciphercost.engines import Engine
from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.host import tls_library
from ciphercost.host.launch import VARIABLE
from ciphercost.host.pki import CERTIFICATES, CLIENT, Pki
from ciphercost.host.ports import LOOPBACK
from ciphercost.host.relay import tls_records
from ciphercost.host.run_ownership import hand_over
from ciphercost.host.tls_names import (
    GROUPS,
    KEYS,
    OLD,
    POST_QUANTUM,
    POST_QUANTUM_KEYS,
    SUITES_12,
    SUITES_13,
    SUITES_CBC,
    SUITES_OLD,
    WEAK,
    security_level,
    suite,
)
from ciphercost.mechanisms import Factor, Mechanism, Route, _fips
from ciphercost.model.cipher_work import CipherWork
from ciphercost.model.connection import Changes, ChannelBinding, TlsMode, TlsVersion
from ciphercost.model.constrained_types import DIRECT, EARLY
from ciphercost.model.errors import UsageError
from ciphercost.model.slices import Witness
from ciphercost.model.spec import Arm, Layer

VERIFY: Mapping[str, TlsMode] = {"full": "verify-full", "ca": "verify-ca", "require": "require"}


def impossible(factors: Mapping[str, str]) -> str:
    """Return why TLS does not allow these factors (with defaults filled in); empty: it does. Pure."""
    version = factors["version"]
    if version == "1.3":
        return "TLS 1.3 has no CBC" if factors["cipher"] in SUITES_CBC else ""
    if version in OLD and factors["cipher"] not in SUITES_OLD:
        return f"TLS {version} has only CBC suites"
    if factors["group"] in POST_QUANTUM:
        return f"TLS {version} has no post-quantum groups"
    if factors["certificate"] in POST_QUANTUM_KEYS:
        return f"TLS {version} has no post-quantum certificates"
    if factors["certificate"] == "ecdsa-p256" and factors["group"] not in ("", "p256"):
        return f"in TLS {version} the curve of an ECDSA certificate (ecdsa-p256) must be among the groups"
    return ""


class Tls(Mechanism):
    name = "tls"
    title = "TLS on the connection"
    layer: Layer = "transit"
    witnesses = ("server", "wire", "client")
    protects = "data on the network from being read or changed between client and server"
    factors = (
        Factor(
            "version",
            ("1.3", "1.2", *OLD),
            "protocol version, the only one that the client offers; 1.1 and 1.0 if server and OpenSSL still have them",
            acts="handshake",
        ),
        Factor(
            "cipher",
            (*SUITES_12, *SUITES_CBC),
            "cipher suite, the only one that the client offers; CBC: with version=1.2, and the only kind in 1.1 and 1.0",
            acts="operation",
        ),
        Factor(
            "certificate",
            tuple(CERTIFICATES),
            "key of the server's certificate and of its CA; RSA below 2048 bits: on web servers only",
            {"ecdsa": "ecdsa-p256"},
            acts="connection",
        ),
        Factor("group", ("", *GROUPS), "key exchange group; empty: client and server negotiate it", acts="connection"),
        Factor(
            "verify",
            ("full", "ca", "require"),
            "what the client checks: chain and name, chain only, nothing",
            acts="connection",
        ),
        Factor(
            "negotiation",
            ("", "postgres", DIRECT),
            "on PostgreSQL: how TLS begins, after a request in its own protocol (postgres) or with the first byte (direct, from version 17 on), "
            "which saves a round trip; empty: postgres",
            acts="connection",
        ),
        Factor(
            "channel-binding",
            ("", "prefer", "disable", "require"),
            "on PostgreSQL: whether the login by SCRAM is bound to the TLS connection; empty: prefer, as with libpq and pgjdbc",
            acts="connection",
        ),
        Factor(
            "client-cert",
            ("off", "on"),
            "whether the server requires a client certificate too (mutual TLS): on servers that ciphercost starts",
            acts="connection",
        ),
        Factor(
            "resumption",
            ("off", "on", "tickets", "cache", EARLY),
            "whether new connections may resume an earlier session; on a web server: by tickets (kept by the client), cache (by the server), or "
            "0-rtt (tickets, and the first request goes before the handshake is complete)",
            acts="connection",
        ),
        Factor(
            "share",
            ("all", "checkout"),
            "on a web server: encrypt all requests, or only those that the workload marks",
            acts="operation",
        ),
        Factor(
            "library",
            ("", *tls_library.SUITES),
            "the server's OpenSSL, in both arms: of a Debian suite, or the two libraries in a directory; empty: its own",
            paths=True,
            acts="operation",
        ),
        _fips.FACTOR,
        Factor(
            "hop",
            ("", *hops.names()),
            "what stands between client and server, in both arms; empty: nothing",
            acts="operation",
        ),
        Factor(
            "ends",
            ("hop", "server"),
            "with a hop: where encryption ends, at the hop (two Envoys encrypt between themselves) or at the server",
            acts="operation",
            only_with="hop",
        ),
    )

    def serves(self, engine: Engine) -> bool:
        return isinstance(engine, HasTls)

    def called(self, settings: Mapping[str, str]) -> str:
        words = [f"TLS {settings['version']}"] if "version" in settings else []
        others = {name: value for name, value in settings.items() if name != "version"}
        return ", ".join([*words, super().called(others)] if others else words)

    def check(self, factors: Mapping[str, str]) -> dict[str, str]:
        """Fill in defaults as every mechanism does; TLS 1.0 and 1.1 get a cipher that they have if none is given."""
        filled = super().check(factors)
        return filled | ({"cipher": "aes256-cbc"} if filled["version"] in OLD and "cipher" not in factors else {})

    def floors(self, factors: Mapping[str, str]) -> Sequence[CipherWork]:  # noqa: ARG002
        """All that TLS 1.3 has: the report takes the one that was negotiated."""
        return tuple(CipherWork(name) for name in SUITES_13)

    def required(self, factors: Mapping[str, str]) -> tuple[Witness, ...]:
        chosen = factors.get("library") or factors.get("fips")
        return (*self.witnesses, "process") if chosen else self.witnesses

    def fits(self, engine: Engine, factors: Mapping[str, str]) -> None:
        version, cipher, tls = factors["version"], factors["cipher"], HasTls.of(engine)
        if "/" in factors["library"]:
            tls_library.checked(Path(factors["library"]).absolute())
        new = [name for name in ("group", "certificate") if factors[name] in (*POST_QUANTUM, *POST_QUANTUM_KEYS)]
        if factors["library"] in ("openssl-1.1.1", "openssl-3.0") and new:
            raise UsageError(
                f"{new[0]}={factors[new[0]]}: OpenSSL has it since 3.5, library={factors['library']} does not; choose another one"
            )
        if factors["hop"]:
            check_hop(engine, factors, ends_of(factors))
        _fips.check(engine, factors)
        if reason := impossible(factors):
            of_cipher = "suites" in reason or "CBC" in reason
            name = "cipher" if of_cipher else "certificate" if "certificates" in reason else "group"
            conflict = f"version={version} does not go with {name}={factors[name]}: {reason}"
            fix = "write cipher=aes256-cbc" if version in OLD else "write version=1.2"
            if "post-quantum" in reason:
                raise UsageError(f"{conflict}; write version=1.3")
            raise UsageError(f"{conflict}; {fix}" if of_cipher else f"{conflict}; leave one of them out")
        if version in OLD and tls.no_old_tls:
            raise UsageError(f"version={version}: {tls.no_old_tls}; write version=1.2 or 1.3")
        if factors["certificate"] in WEAK and not tls.tls_weak_keys:
            raise UsageError(
                f"certificate={factors['certificate']}: OpenSSL refuses RSA keys below 2048 bits at its default security level, and "
                f"ciphercost lowers that for web servers only, not for {engine.name}; write certificate=rsa2048 or larger"
            )
        if factors["certificate"] in POST_QUANTUM_KEYS and tls.no_post_quantum_keys:
            raise UsageError(f"certificate={factors['certificate']}: {tls.no_post_quantum_keys}; choose another one")
        if factors["client-cert"] == "on" and not tls.tls_client_cert:
            raise UsageError(
                f"client-cert=on: ciphercost sets up client certificates on servers that it starts, and not on {engine.name}; leave it out"
            )
        if cipher in SUITES_CBC and not tls.tls_cbc:
            raise UsageError(f"{engine.name} accepts no CBC suite: leave cipher={cipher} out")
        if factors["negotiation"] and factors["negotiation"] not in tls.tls_negotiations:
            raise UsageError(
                f"negotiation={factors['negotiation']}: only PostgreSQL has a choice of how TLS begins, not {engine.name}; leave it out"
            )
        if factors["channel-binding"] and not tls.binds_logins:
            raise UsageError(
                f"channel-binding={factors['channel-binding']}: only PostgreSQL binds logins to the TLS connection, not {engine.name}; "
                "leave it out"
            )
        if factors["share"] != "all" and engine.language != "http":
            raise UsageError(
                f"share={factors['share']} is for web servers; a connection to {engine.name} is encrypted or not: leave share out"
            )
        if factors["resumption"] in ("off", *tls.tls_resumption):
            return
        if tls.tls_resumption:
            raise UsageError(
                f"resumption={factors['resumption']}: {engine.name} has no such option; write {' or '.join(('off', *tls.tls_resumption))}"
            )
        raise UsageError(
            f"{engine.name} never resumes a TLS session: every connection is a full handshake. Leave resumption off."
        )

    def server_settings(
        self, engine: Engine, factors: Mapping[str, str], secrets: Path, address: str = LOOPBACK
    ) -> dict[str, str]:
        """Return the engine's TLS settings. The first call creates the CA and the server's certificate in `secrets`."""
        factors = _fips.pinned(self.check(factors))
        pki = self.pki(factors, secrets, address)
        settings = HasTls.of(engine).tls_settings(pki, factors) | _fips.settings(engine, pki, factors)
        library = self.server_library(factors)
        return settings | {f"{VARIABLE}{tls_library.VARIABLE}": library} if library else settings

    def pki(self, factors: Mapping[str, str], secrets: Path, address: str) -> Pki:
        """Return the CA and the server's certificate for these factors (with defaults). The first call makes them in `secrets`."""
        mutual = factors["client-cert"] == "on"
        pki = Pki(_directory(secrets, factors), factors["certificate"], address=address, reuse=True, client=mutual)
        hand_over(secrets)  # otherwise a server that runs as nobody couldn't reach its key
        return pki

    def sign(self, sent: bytes, received: bytes) -> tuple[bool, str]:
        """Look for TLS records of application data in both directions."""
        records = tls_records(sent), tls_records(received)
        return all(records), f"{sum(records)} TLS records" if all(records) else "there are no TLS records"

    def server_library(self, factors: Mapping[str, str]) -> str:
        return str(tls_library.directory(factors["library"])) if factors.get("library") else ""

    def server_fips(self, factors: Mapping[str, str]) -> str:
        return factors.get("fips", "")

    def if_not_started(self, factors: Mapping[str, str]) -> str:
        if factors["certificate"] not in POST_QUANTUM_KEYS or factors["library"]:
            return ""
        return f"certificate={factors['certificate']} needs OpenSSL 3.5 on the server; try --set library=openssl-3.5"

    def route(self, arm: Arm, factors: Mapping[str, str]) -> Route | None:
        if not (name := factors.get("hop", "")):
            return None
        hop = hops.get(name)
        if arm == "plain":
            return Route(hop, "") if hop.forwards_plain else None
        return Route(hop, ends_of(factors))

    def promises(self, factors: Mapping[str, str]) -> dict[str, str]:
        """Return the key type of the server's certificate."""
        return {"peer_key": KEYS[factors["certificate"]]} if factors.get("certificate") else {}

    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> Changes:
        """Pin only the given factors, so that none of ciphercost's defaults applies to a server you already run."""
        if arm == "plain":
            return {"tls": "off"}
        full = _fips.pinned(self.check(factors))
        factors = {name: full[name] for name in (*factors, *(["group"] if full["fips"] else []))}
        changes: Changes = {
            "tls": VERIFY[factors.get("verify", "full")],
            "resumption": factors.get("resumption", "off") != "off",
        }
        if factors.get("resumption") == EARLY:
            changes["early_data"] = True
        if factors.get("negotiation") == DIRECT:
            changes["tls_at_once"] = True
        # Through a hop that ends TLS, client and server see two certificates.
        if HasTls.of(engine).binds_logins and not factors.get("hop"):
            changes["channel_binding"] = msgspec.convert(factors.get("channel-binding") or "prefer", ChannelBinding)
        if "version" in factors or "cipher" in factors:
            changes["tls_min"] = changes["tls_max"] = msgspec.convert(
                full["version"], TlsVersion
            )  # a suite belongs to one version
            if "cipher" in factors:
                changes["tls_ciphers"] = suite(full)
        if factors.get("group"):
            changes["tls_groups"] = GROUPS[factors["group"]]
        if (level := security_level(factors)) is not None:
            changes["tls_security_level"] = level
        directory = _directory(secrets, factors)
        if (ca := directory / "ca.pem").exists():
            changes["tls_ca"] = str(ca)
        if factors.get("client-cert") == "on":
            changes["tls_certificate"], changes["tls_key"] = (str(directory / name) for name in CLIENT)
            changes |= HasTls.of(engine).certified()
        return changes


SIMPLE = ("client-cert", "resumption", "share", "library", "fips", "negotiation", "channel-binding")
"""Factors that have no value but the default beside a hop: they are about the server's own TLS."""


def ends_of(factors: Mapping[str, str]) -> hops.Ends:
    """Where the encrypted arm's encryption ends, with a hop. Pure."""
    return "server" if factors["ends"] == "server" else "hop"


def check_hop(engine: Engine, factors: Mapping[str, str], ends: hops.Ends) -> None:
    """Raises UsageError if the hop that these factors name can't carry this server's connections, encrypted up to `ends`."""
    hop = hops.get(factors["hop"])
    if reason := hop.refuses(engine, ends):
        other = "; write ends=server" if ends == "hop" and not hop.refuses(engine, "server") else ""
        raise UsageError(f"hop={hop.name}: {reason}{other}")
    usual = {factor.name: factor.values[0] for factor in Tls.factors}
    for name in SIMPLE:
        if factors[name] != usual[name]:
            raise UsageError(f"{name}={factors[name]} does not go with hop={hop.name}; leave one of them out")
    # The hop alone has the factors of the cells that it is measured with.
    for name in ("version", "cipher", "group", "verify") if ends == "hop" and not hop.legs(ends)[0] else ():
        if factors[name] != usual[name]:
            raise UsageError(
                f"{name}={factors[name]}: with hop={hop.name} and ends=hop the client's connection is not encrypted, and the hop itself "
                "uses TLS 1.3 with what it prefers; write ends=server, or leave it out"
            )
    if factors["version"] in OLD or factors["cipher"] in SUITES_CBC or factors["certificate"] in WEAK:
        raise UsageError(
            f"hop={hop.name}: a hop has TLS 1.2 and 1.3 without CBC, and usual keys; leave one of them out"
        )


def _directory(secrets: Path, factors: Mapping[str, str]) -> Path:
    mutual = "-mutual" if factors.get("client-cert") == "on" else ""
    return secrets / f"tls-{factors.get('certificate', 'rsa2048')}{mutual}"


MECHANISM = Tls()
