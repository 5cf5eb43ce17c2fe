"""Decides in which order the arms log in to a server, and when nothing more may be sent to it unencrypted.

The encrypted arm comes first. If it can't connect to a server that the user runs, for whatever reason, an attacker may
be in between and would get an unencrypted login. No error text decides this; texts only select the words of the
message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ciphercost.model.connection import Connection, TlsMode
from ciphercost.model.errors import AgentError
from ciphercost.model.spec import Arm

NOTHING_IN_CLEAR = "ciphercost sent nothing unencrypted to the server after that"
CERTIFICATE = f"The server's certificate was rejected, so {NOTHING_IN_CLEAR}"
ENCRYPTION = f"The connection could not be encrypted, so {NOTHING_IN_CLEAR}"
FAILED = f"The encrypted arm failed, so {NOTHING_IN_CLEAR}"
CERTIFICATE_WANTED = "The server asks for a client certificate: give yours with --cert FILE and --key FILE"
CERTIFICATE_REFUSED = "Check that your certificate is of an authority that the server trusts, is for this user and for clients, and has not been revoked"
_WANTED = re.compile(
    r"asks for a client certificate|requires a valid client certificate|certificate[ _]required|No required SSL certificate|"
    r"client certificate (?:is )?required",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"refused the client certificate|certificate authentication failed|The SSL certificate error|"
    r"(?:Received fatal alert: |alert )(?:bad.certificate|unknown.ca|certificate.(?:unknown|expired|revoked)|unsupported.certificate)",
    re.IGNORECASE,
)
_REJECTED = {
    "unknown authority|PKIX path building|find valid certification path|trust anchor": (
        "It is signed by an unknown authority: if this is the right server, name its CA with --ca FILE"
    ),
    "has expired|CertificateExpired|NotAfter": "It has expired: renew it",
    "not valid yet|CertificateNotYetValid|NotBefore": (
        "It is not valid yet: check the clocks of this machine and of the server"
    ),
    "name mismatch|hostname|subject alternative|Certificate Common Name": (
        "This is a name mismatch: connect to the server by a name that its certificate contains"
    ),
    "has been revoked": "Its authority has revoked it: check that this is the right server, and give it a new one",
    "revocation list": "Download the newest revocation list (CRL) of its authority into the file of --ca",
    "not for servers|extended key usage": (
        "It is not for servers: its extended key usage must contain serverAuth, so order one for a server"
    ),
    "is no authority|CA key usage|basic constraints|not a CA certificate": (
        "It is signed by a certificate that is no authority: let a CA sign it"
    ),
    r"server's certificate|server certificate|PKIX|Certificat\w*Exception|key usage": (
        "If this is the right server, name its CA with --ca FILE"
    ),
}
"""By a pattern in the message of OpenSSL's or a driver's: what is wrong with the certificate, and what to do."""
_NOT_ENCRYPTED = {
    "by ALPN": "The server speaks TLS here, but not that version of HTTP: remove --set http=2 or http=3, or name another version",
    r"TLS version|protocol_version|protocol version|No appropriate protocol": (
        "Client and server have no TLS version in common: ask for one that the server accepts with --set version=…, or "
        "configure the server for TLS 1.2 or newer"
    ),
    r"not encrypted|unencrypted bytes|Unsupported or unrecognized SSL message": (
        "The server's answer was not encrypted: check that the port is right and that nothing between here and the "
        "server changes the connection"
    ),
    "not offer TLS|not support SSL|SSL not supported|SSL is not|not allow SSL|not enabled": (
        "The server does not offer TLS here: switch its encryption on. If it is on, something between here and the server "
        "hides it. A server without encryption can only be measured with `none`"
    ),
    "": (
        "Check that the server has encryption switched on, that --ca names its CA, and that it allows the requested "
        "version and cipher. Or it asks for a client certificate: give yours with --cert and --key. A server without encryption can only "
        "be measured with `none`"
    ),
}
"""The same for other failures of a handshake."""
_STRENGTH: tuple[TlsMode, ...] = ("off", "require", "verify-ca", "verify-full")
Place = tuple[str, int]
"""Address and port of a server that the user runs."""


class Refused:
    """The user's servers whose encrypted arm could not connect. All cells of a run share one instance."""

    def __init__(self) -> None:
        self._refused: dict[Place, tuple[int, AgentError]] = {}

    def note(self, place: Place, connection: Connection, error: AgentError) -> None:
        """Record that the encrypted arm failed over this connection."""
        strength = strength_of(connection)
        if place not in self._refused or self._refused[place][0] < strength:
            self._refused[place] = strength, error

    def reason(self, place: Place, connection: Connection) -> AgentError | None:
        """Return why this connection is not allowed: a stronger one failed. None: it is allowed."""
        strength, error = self._refused.get(place, (0, None))
        return error if strength > strength_of(connection) else None


def strength_of(connection: Connection) -> int:
    """Rank how much a connection demands of the server; 0: not even encryption. Pure."""
    return max(int(connection.by_wire_crypt), _STRENGTH.index(connection.tls or "off"))


def encrypted_first(arms: Iterable[Arm]) -> list[Arm]:
    """Return the order in which the arms log in. Pure."""
    return sorted(arms, key=lambda arm: arm != "encrypted")


def words(text: str, code: str) -> str:
    """Explain a failure of the encrypted arm to the user. Pure; nothing else depends on it."""
    if wants_certificate(text):
        return f"{FAILED}. {CERTIFICATE_WANTED}"
    if refuses_certificate(text):
        return f"{FAILED}. {CERTIFICATE_REFUSED}"
    if code != "tls" and not code.startswith("08"):  # SQLSTATE 08…: a JDBC driver's connection exceptions
        return FAILED
    if advice := _advice(_REJECTED, text):
        return f"{CERTIFICATE}. {advice}"
    return f"{ENCRYPTION}. {_advice(_NOT_ENCRYPTED, text)}"


def wants_certificate(text: str) -> bool:
    """Whether a server refused a connection because it had no client certificate, by the error's text. Pure."""
    return bool(_WANTED.search(text))


def refuses_certificate(text: str) -> bool:
    """Whether a server refused the client's certificate, by the error's text. Pure."""
    return bool(_REFUSED.search(text))


def _advice(known: Mapping[str, str], text: str) -> str:
    return next((advice for pattern, advice in known.items() if re.search(pattern, text, re.IGNORECASE)), "")
