"""Tests whether a driver verifies the server: it must refuse an impostor, and the real server under another host name."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from ciphercost.host.impostor import CONVERSATIONS, Impostor, Speech
from ciphercost.host.impostor.conversation import WORDS, Way
from ciphercost.host.ports import LOOPBACK
from ciphercost.host.relay import Relay

OTHER_NAMES = ("127.0.0.2", "127.0.0.3")
"""Addresses of this machine. A certificate contains at most one: the one on which its server listens."""
OTHER_HOST = "impostor.example"
STRANGER = "stranger.invalid"
"""A name that no certificate contains (RFC 2606), for drivers that are given the address beside it."""
MOST_SHOWN = 400


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
UNKNOWN = ("left", "unclear")
"""What a client does that tells nothing by itself."""
CERTIFICATE = re.compile(
    r"certificate[ _]verify[ _]failed|certificate is signed by an unknown authority", re.IGNORECASE
)
"""In the message of a client whose TLS library has rejected the certificate."""


class Verdict(NamedTuple):
    """By what a driver refuses an impostor, and a sentence about it."""

    by: By
    words: str
    known: bool = True
    """Whether the test could tell. If not, `by` is empty, which means nothing."""


def refuses_impostor(
    speech: Speech,
    host: str,
    port: int,
    place: Path,
    call: Call,
    kind: str = "rsa2048",
    name: str = "",
    listen: str = LOOPBACK,
) -> Verdict:
    """Let the driver meet an impostor in each way that an attacker could try. It must refuse them all.

    `kind`: the type of the impostor's key; `name`: the server's; `listen`: the address at which `call` connects.
    """
    conversation = CONVERSATIONS[speech]
    first = conversation.ways[0]
    at_login = False
    with tempfile.TemporaryDirectory(dir=place) as directory:
        for way in conversation.ways:
            if way not in (first, "no TLS") and not at_login:
                continue  # it has refused the certificate before the login, and would do so again
            with Impostor(
                speech, host, port, Path(directory), certificate=kind, name=name, way=way, listen=listen
            ) as impostor:
                reason = call(impostor.port)
            met = impostor.met
            if worst := next((did for did in GIVES_IN if did in met), ""):
                return Verdict("", _accepts(worst, way))
            if met == ["left"] and CERTIFICATE.search(reason):
                continue  # as clients with asyncio and Node do, which send no alert
            if not met or any(did in met for did in UNKNOWN) or not reason:
                shown = reason[:MOST_SHOWN] or "it could connect"
                return Verdict(
                    "", f"the test could not determine whether it refuses an impostor ({shown})", known=False
                )
            at_login |= way == first and "ended" in met
    by: By = conversation.proof if at_login else "certificate"
    return Verdict(by, REFUSES[by])


def refuses_any_authority(
    verdict: Verdict,
    speech: Speech,
    host: str,
    port: int,
    place: Path,
    call: Callable[[int, Path], str],
    trusting: str,
) -> Verdict:
    """Return `verdict`, which is on a driver that checks no name, unless it accepts an impostor with a certificate of an authority
    that the driver trusts by itself, for another name. Anybody can get such a one for a name of their own.

    `call(port, ca)`: connect there with these certificates as those of `trusting`, e.g. Java; returns the reason why it failed.
    """
    with (
        tempfile.TemporaryDirectory(dir=place) as directory,
        Impostor(
            speech,
            host,
            port,
            Path(directory),
            certificate="rsa2048",
            name=OTHER_HOST,
            way="let in",
            signed=True,
        ) as impostor,
    ):
        reason = call(impostor.port, impostor.ca)
    if any(did in impostor.met for did in GIVES_IN):
        accepts = f"it accepts an impostor with a certificate of any authority that {trusting} trusts, for any name"
        return Verdict("", f"{verdict.words}, but {accepts}")
    refused = impostor.met == ["left"] and CERTIFICATE.search(reason)
    if not refused and (not reason or not impostor.met or any(did in impostor.met for did in UNKNOWN)):
        shown = reason[:MOST_SHOWN] or "it could connect"
        unknown = f"the test could not determine whether it accepts any authority that {trusting} trusts"
        return Verdict("", f"{verdict.words}, but {unknown} ({shown})")
    return verdict


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
    name = next(other_name for other_name in OTHER_NAMES if other_name != host)
    with Relay(host, port, listen=name) as other:
        # IPv6 has one loopback address only, but a command may be written for its form, as in https://[{host}].
        reason = call(other.port, f"::ffff:{name}" if ":" in host else name)
    return (
        (True, "and the server under another name") if reason else (False, "but accepts the server under another name")
    )
