"""client_witness: checks whether the agent's own connection is encrypted and verified, and how."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ciphercost.host import tls_names
from ciphercost.model.spec import Arm
from ciphercost.prove.probe import Probe, single

CLIENT_CERTIFICATE = "client_certificate"
"""Key among the encrypted arm's negotiated facts. Present if the server requires a client certificate and has verified
it.
"""


def client(probe: Probe, arm: Arm) -> tuple[bool, str]:
    """The agent's own connection: encrypted, verified and how, or unencrypted."""
    answer = probe.agent.connect(f"prove-{arm}", **single(probe.pair.connect[arm]))
    probe.connected[arm] = answer
    if version := probe.engine.greet(probe.agent, f"prove-{arm}"):
        answer["server_version"] = version
    if not probe.pair.legs(arm)[0]:
        return not answer["encrypted"], "unencrypted" if not answer[
            "encrypted"
        ] else f"encrypted with {answer['protocol']}"
    detail = describe(answer)
    if not answer["encrypted"]:
        return False, "unencrypted: nothing was negotiated"
    if reason := negotiation_mismatch(answer, probe.pair.connect[arm], probe.pair.promised):
        return False, f"{detail}: {reason}"
    wanted = probe.pair.connect[arm].get("tls", "")
    if wanted in ("verify-ca", "verify-full") and not answer["verified"]:
        return False, f"{detail}: the peer was not verified"
    return True, detail


def unverified(
    answer: Mapping[str, Any],
    fields: Mapping[str, object],
    better: str = "use --set verify=full, and --ca FILE for your own server",
) -> str:
    """What was not checked about the server's identity, and what to do. Empty if everything was checked or there is no
    certificate. Pure.

    `answer`: `connected` of the encrypted arm; `fields`: of its `connect`; `better`: what to do.
    """
    if not answer or fields.get("tls", "off") == "off":
        return ""
    if not answer.get("verified"):
        return f"the server's identity was not verified: a man in the middle would look the same; {better}"
    if fields.get("tls") == "verify-ca":
        return (
            "the server's name was not verified: any server with a certificate of that authority would look the "
            f"same; {better.partition(', and --ca')[0]}"
        )
    return ""


def negotiation_mismatch(
    answer: Mapping[str, Any], fields: Mapping[str, object], promised: Mapping[str, str] = MappingProxyType({})
) -> str:
    """What in a `connected` answer differs from the arm's fields or from what was `promised`. Empty if nothing does.
    Pure.
    """
    if fields.get("http") == "3" and answer.get("application") != tls_names.HTTP3_ALPN:
        return "HTTP/3 was requested"
    asked = {
        "protocol": tls_names.PROTOCOLS.get(str(fields.get("tls_max")), ""),
        "cipher": str(fields.get("tls_ciphers", "")),
        "group": str(fields.get("tls_groups", "")),
    }
    for name, wanted in asked.items():
        if wanted and answer[name] not in (
            wanted,
            "",
        ):  # a client may not know the group; the server witness checks the rest
            return f"{name} {wanted} was requested"
    for name, wanted in promised.items():
        if answer.get(name) not in (wanted, "", None):
            return f"{name} is {answer[name]}, but {wanted} was requested"
    if answer.get("resumed") and not fields.get("resumption"):
        return "a session was resumed, although resumption is off"
    return ""


def describe(answer: Mapping[str, Any]) -> str:
    """Describe a `connected` answer: `TLSv1.3 TLS_AES_256_GCM_SHA384 x25519, RSA 2048, peer verified`. Pure."""
    parts = [str(answer[name]) for name in ("protocol", "cipher", "group") if answer.get(name)]
    if answer.get("application") == tls_names.HTTP3_ALPN:
        parts.insert(0, "HTTP/3")
    words = [" ".join(parts)]
    if answer.get("peer_key"):
        words.append(str(answer["peer_key"]))
    if answer.get("peer") or answer.get("peer_key"):  # a certificate may have no name
        words.append(f"peer verified{_by(answer)}" if answer.get("verified") else "peer not verified")
    if answer.get("resumed"):
        words.append("resumed")
    if answer.get("checked"):
        words.append(str(answer["checked"]))
    return ", ".join(words)


def _by(answer: Mapping[str, Any]) -> str:
    """By what the peer was verified, if that is not a certificate authority. Pure."""
    by = answer.get("verified_by")
    return {"password": " by the password", "channel binding": " by channel binding"}.get(str(by), "")


def negotiated(answer: Mapping[str, Any]) -> dict[str, str]:
    """The part of a `connected` answer that belongs in the result. Pure."""
    names = {
        "protocol": "protocol",
        "cipher": "cipher",
        "group": "group",
        "peer_key": "peer_key",
        "library": "client_library",
        "driver_version": "driver",
        "checked": "checked",
        CLIENT_CERTIFICATE: CLIENT_CERTIFICATE,
    }
    found = {ours: str(answer[theirs]) for theirs, ours in names.items() if answer.get(theirs)}
    if answer.get("application") == tls_names.HTTP3_ALPN:
        found = {"http": "HTTP/3"} | found
    if answer.get("peer") or answer.get("peer_key"):
        found["verified"] = "yes" if answer.get("verified") else "no"
        if _by(answer):
            found["verified_by"] = str(answer["verified_by"])
        if "resumed" in answer:
            found["resumed"] = "yes" if answer["resumed"] else "no"
    return found
