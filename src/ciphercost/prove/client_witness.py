"""client_witness: checks whether the agent's own connection is encrypted and verified, and how."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from ciphercost.host import tls_names
from ciphercost.load.driver_agent import DriverAgent
from ciphercost.model.connection import Connected, Connection
from ciphercost.model.spec import Arm
from ciphercost.prove import client_certificate
from ciphercost.prove.probe import Probe

CLIENT_CERTIFICATE = "client_certificate"
"""Key among the encrypted arm's negotiated facts. Present if the server requires a client certificate and has verified
it.
"""


def client(probe: Probe, arm: Arm) -> tuple[bool, str]:
    """The agent's own connection: encrypted, verified and how, or unencrypted."""
    answer = probe.agent.connect(f"prove-{arm}", probe.pair.connect[arm].single)
    probe.connected[arm] = answer
    if version := probe.engine.greet(probe.agent, f"prove-{arm}"):
        answer = msgspec.structs.replace(answer, server_version=version)
        probe.connected[arm] = answer
    if not probe.pair.legs(arm)[0]:
        where = ", by the server's Unix socket" if probe.pair.connect[arm].socket else ""
        return not answer.encrypted, f"encrypted with {answer.protocol}" if answer.encrypted else f"unencrypted{where}"
    detail = describe(answer)
    if not answer.encrypted:
        return False, "unencrypted: nothing was negotiated"
    connection = probe.pair.connect[arm]
    if isinstance(probe.agent, DriverAgent):
        connection = probe.agent.demanded(connection)
    if arm in probe.pair.ways:  # a hop ends TLS and agrees to nothing
        connection |= {"tls_at_once": False}
    if reason := negotiation_mismatch(answer, connection, probe.pair.promised.get(arm, {})):
        return False, f"{detail}: {reason}"
    if probe.pair.connect[arm].tls in ("verify-ca", "verify-full") and not answer.verified:
        return False, f"{detail}: the peer was not verified"
    if probe.pair.connect[arm].mutual and "server" in probe.engine.mute:
        passed, words = client_certificate.witnessed(probe, arm)
        return passed, f"{detail}; {words}"
    return True, detail


def unverified(
    answer: Connected | None,
    connection: Connection,
    better: str = "use --set verify=full, and --ca FILE for your own server",
) -> str:
    """What was not checked about the server's identity, and what to do. Empty if everything was checked or there is no
    certificate. Pure.

    `answer`: `connected` of the encrypted arm; `connection`: its own; `better`: what to do.
    """
    if answer is None or not connection.by_tls:
        return ""
    if not answer.verified:
        return f"the server's identity was not verified: a man in the middle would look the same; {better}"
    if connection.tls == "verify-ca" and answer.verified_by != "channel binding":
        return (
            "the server's name was not verified: any server with a certificate of that authority would look the "
            f"same; {better.partition(', and --ca')[0]}"
        )
    return ""


def negotiation_mismatch(
    answer: Connected, connection: Connection, promised: Mapping[str, str] = MappingProxyType({})
) -> str:
    """What in a `connected` answer differs from the arm's fields or from what was `promised`. Empty if nothing does.
    Pure.
    """
    if connection.tls_at_once and not answer.driver_version and answer.application != tls_names.POSTGRESQL_ALPN:
        return "the server did not agree, by ALPN, to speak PostgreSQL's protocol, as it must where TLS begins with the first byte"
    if connection.http == "3" and answer.application != tls_names.HTTP3_ALPN:
        return "HTTP/3 was requested"
    asked = {
        "protocol": tls_names.PROTOCOLS.get(connection.tls_max or "", ""),
        "cipher": connection.tls_ciphers,
        "group": connection.tls_groups,
    }
    for name, wanted in asked.items():
        if wanted and getattr(answer, name) not in (
            wanted,
            "",
        ):  # a client may not know the group; the server witness checks the rest
            return f"{name} {wanted} was requested"
    for name, wanted in promised.items():
        if getattr(answer, name) not in (wanted, ""):
            return f"{name} is {getattr(answer, name)}, but {wanted} was requested"
    if answer.resumed and not connection.resumption:
        return "a session was resumed, although resumption is off"
    return ""


def describe(answer: Connected) -> str:
    """Describe a `connected` answer: `TLSv1.3 TLS_AES_256_GCM_SHA384 x25519, RSA 2048, peer verified`. Pure."""
    parts = [part for part in (answer.protocol, answer.cipher, answer.group) if part]
    if answer.application == tls_names.HTTP3_ALPN:
        parts.insert(0, "HTTP/3")
    words = [" ".join(parts)]
    if answer.peer_key:
        words.append(answer.peer_key)
    if answer.peer or answer.peer_key:  # a certificate may have no name
        words.append(f"peer verified{_by(answer)}" if answer.verified else "peer not verified")
    if answer.resumed:
        words.append("resumed")
    if answer.checked:
        words.append(answer.checked)
    return ", ".join(words)


def _by(answer: Connected) -> str:
    """By what the peer was verified, if that is not a certificate authority. Pure."""
    return {"password": " by the password", "channel binding": " by channel binding"}.get(answer.verified_by, "")


def negotiated(answer: Connected | None) -> dict[str, str]:
    """The part of a `connected` answer that belongs in the result. Pure."""
    names = {
        "protocol": "protocol",
        "cipher": "cipher",
        "group": "group",
        "peer_key": "peer_key",
        "library": "client_library",
        "driver_version": "driver",
        "checked": "checked",
        "client_certificate": CLIENT_CERTIFICATE,
    }
    if answer is None:
        return {}
    facts = {ours: value for theirs, ours in names.items() if (value := getattr(answer, theirs))}
    if answer.application == tls_names.HTTP3_ALPN:
        facts = {"http": "HTTP/3"} | facts
    if answer.peer or answer.peer_key:
        facts["verified"] = "yes" if answer.verified else "no"
        if _by(answer):
            facts["verified_by"] = answer.verified_by
        if answer.resumed is not None:
            facts["resumed"] = "yes" if answer.resumed else "no"
    return facts
