"""attacks: what the middle does to a connection, and what ciphercost must print then."""

from __future__ import annotations

import ssl
from typing import NamedTuple

TLS = ssl.TLSVersion


class Attack(NamedTuple):
    """One attack."""

    name: str
    says: str = ""
    """Regular expression: the reason in the error, in words that a user understands."""
    chain: str = "good"
    """The certificate, by its name in `chains`."""
    newest: ssl.TLSVersion = TLS.TLSv1_3
    """The newest TLS version that the middle accepts. Below 1.2, also the oldest."""
    strips: bool = False
    """Denies that the server has TLS, where the protocol asks for it."""
    breaks: str = ""
    """What it does instead of a handshake: `close`, `reset`, `alert`, or `clear`, an unencrypted answer."""
    injects: str = ""
    """When it sends unencrypted bytes: `beside` the server's answer to the request for TLS, or `behind` that answer, once
    the client has begun the handshake.
    """
    factors: tuple[str, ...] = ()
    """What the user demands: values of --set."""

    @property
    def tunnels(self) -> bool:
        """Whether TLS is between client and server. Otherwise the middle ends it, with a certificate of its own."""
        return bool(self.injects) or self == NONE


NO_TLS = "does not offer TLS|does not speak TLS|was not encrypted"
IN_CLEAR = "was not encrypted|sent unencrypted bytes"
NONE = Attack("none")
"""The control: with this relay in between, a command succeeds."""
ATTACKS = [
    Attack("another authority", "unknown authority", chain="another authority"),
    Attack("self-signed", "unknown authority", chain="self-signed"),
    Attack("expired", "has expired", chain="expired"),
    Attack("not yet valid", "is not valid yet", chain="not yet valid"),
    Attack("another name", "name mismatch", chain="another name"),
    Attack("for clients only", "is not for servers", chain="for clients only"),
    Attack("leaf as authority", "is no authority", chain="leaf as authority"),
    Attack("revoked", "revoked|revocation list", chain="revoked"),
    Attack("TLS 1.1 at most", "TLS version", newest=TLS.TLSv1_1),
    Attack("TLS 1.2 for 1.3", "TLS version", newest=TLS.TLSv1_2, factors=("version=1.3",)),
    Attack("stripped", NO_TLS, strips=True),
    Attack("answered in clear", NO_TLS, breaks="clear"),
    Attack("injected beside the answer", IN_CLEAR, injects="beside"),
    Attack("injected behind the answer", IN_CLEAR, injects="behind"),
    Attack("closed", "closed the connection|terminated the handshake|ended the connection", breaks="close"),
    Attack("reset", "[Rr]eset", breaks="reset"),
    Attack("alert", "handshake.failure", breaks="alert"),
]
