"""Tests whether a driver verifies the server: it must refuse an impostor, and the real server under another host name."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from ciphercost.host import versions
from ciphercost.host.impostor import CONVERSATIONS, Impostor, Speech
from ciphercost.host.impostor.conversation import WORDS, Way
from ciphercost.host.relay import Relay
from ciphercost.load.jdbc.drivers import Driver, trust_store
from ciphercost.model.errors import AgentError

OTHER_NAMES = ("127.0.0.2", "127.0.0.3")
"""Addresses of this machine. A certificate contains at most one: the one on which its server listens."""
OTHER_HOST = "impostor.example"
MOST_SHOWN = 400
NOTHING_IN_COMMON = re.compile(
    r"protocol_version|handshake_failure|insufficient_security|No appropriate protocol|cipher", re.IGNORECASE
)
"""In Java's message if driver and server could not agree on a version or a suite."""


Call = Callable[..., str]
"""`call(port, host)`: connect there; returns the reason why it failed, empty if it succeeded."""

By = Literal["", "certificate", "channel binding", "password"]
"""By what a client recognises its server; empty: by nothing."""
REFUSES: dict[By, str] = {
    "": "it ends the login of an impostor with another certificate",
    "certificate": "it refuses an impostor with another CA's certificate",
    "channel binding": "it refuses, at the login, an impostor with another certificate: channel binding shows that the certificate "
    "is not the server's",
    "password": "it refuses, at the login, an impostor with another certificate, who can't prove with the password's hash that the "
    "certificate is the server's",
}
GIVES_IN = ("statement", "password", "clear")
"""What a client does that does not verify its server."""


class Verdict(NamedTuple):
    """By what a driver refuses an impostor, and a sentence about it."""

    by: By
    words: str


def refuses_impostor(
    speech: Speech, host: str, port: int, place: Path, call: Call, kind: str = "rsa2048", name: str = ""
) -> Verdict:
    """Let the driver meet an impostor in each way that an attacker could try. It must refuse them all.

    `kind`: the type of the impostor's key; `name`: the server's.
    """
    conversation = CONVERSATIONS[speech]
    first = conversation.ways[0]
    at_login = False
    with tempfile.TemporaryDirectory(dir=place) as own:
        for way in conversation.ways:
            if way not in (first, "no TLS") and not at_login:
                continue  # it has refused the certificate before the login, and would do so again
            with Impostor(speech, host, port, Path(own), certificate=kind, name=name, way=way) as impostor:
                reason = call(impostor.port)
            met = impostor.met
            if worst := next((did for did in GIVES_IN if did in met), ""):
                return Verdict("", _accepts(worst, way))
            if not met or "unclear" in met or not reason:
                shown = reason[:MOST_SHOWN] or "it could connect"
                return Verdict("", f"the test could not determine whether it refuses an impostor ({shown})")
            at_login |= way == first and "ended" in met
    by: By = conversation.proof if at_login else "certificate"
    return Verdict(by, REFUSES[by])


def refuses_any_authority(
    found: Verdict, speech: Speech, host: str, port: int, place: Path, call: Callable[[int, Path], str]
) -> Verdict:
    """Return `found`, the verdict on a driver that checks no name, unless it accepts an impostor with a certificate of an authority
    that Java trusts, for another name. Anybody can get such a one for a name of their own.

    `call(port, store)`: connect there with these certificates as Java's own; returns the reason why it failed.
    """
    with (
        tempfile.TemporaryDirectory(dir=place) as own,
        Impostor(
            speech,
            host,
            port,
            Path(own),
            certificate="rsa2048",
            name=OTHER_HOST,
            way="let in",
            signed=True,
        ) as impostor,
    ):
        reason = call(impostor.port, trust_store(impostor.ca, Path(own) / "authorities.p12"))
    if any(did in impostor.met for did in GIVES_IN):
        accepts = "it accepts an impostor with a certificate of any authority that Java trusts, for any name"
        return Verdict("", f"{found.words}, but {accepts}")
    if not reason or "unclear" in impostor.met or not impostor.met:
        shown = reason[:MOST_SHOWN] or "it could connect"
        unknown = "the test could not determine whether it accepts any authority that Java trusts"
        return Verdict("", f"{found.words}, but {unknown} ({shown})")
    return found


def _accepts(did: str, way: Way) -> str:
    """What a driver does with an impostor that behaves in this way. Pure."""
    if did == "clear":
        return (
            "it sends an impostor an unencrypted login" if way != "no TLS" else f"it accepts an impostor {WORDS[way]}"
        )
    if did == "password":
        return f"it gives its password to an impostor with its own certificate, {WORDS[way]}"
    return f"it accepts an impostor with its own certificate, {WORDS[way]}"


def refuses_other_name(host: str, port: int, call: Call) -> tuple[bool, str]:
    """Return whether the driver refuses the real server under a name that its certificate does not contain, and a
    sentence about it.
    """
    name = next(each for each in OTHER_NAMES if each != host)
    with Relay(host, port, listen=name) as other:
        reason = call(other.port, name)
    return (
        (True, "and the server under another name") if reason else (False, "but accepts the server under another name")
    )


def hint(driver: Driver, error: AgentError) -> str:
    """Suggest what to do if a driver can't connect. Pure."""
    text, old = str(error), driver.family == "connector-j" and versions.version_key(driver.version) < (5, 1, 44)
    if old and (error.code == "tls" or "TrustManager" in text):
        return (
            ". It offers at most TLS 1.0, which Java disables (jdk.tls.disabledAlgorithms). Use 5.1.49 or newer, or "
            "measure it unencrypted with `none`"
        )
    if error.code.startswith("1251") or "authentication" in text.lower():
        return ". This driver does not support the account's login method. Use a newer driver, or an older server (mariadb@10.11)"
    if error.code == "tls" and NOTHING_IN_COMMON.search(text):
        return ". Choose a version and suite that the driver supports: --set version=1.2, --set cipher=…"
    return ""
