"""trust: in which order a server is connected to, and when nothing more may be sent to it unencrypted.

The encrypted arm comes first. If it can't connect to a server of the user's, whatever the reason, somebody may stand between, and an
unencrypted login would be theirs. No error text decides that: a text only chooses the words in which the user is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ciphercost.model.errors import AgentError
from ciphercost.model.spec import Arm

NOTHING_IN_CLEAR = "nothing was sent to the server unencrypted after that"
CERTIFICATE = f"The server's certificate was rejected, so {NOTHING_IN_CLEAR}. If it is the right server, name its authority with --ca FILE"
ENCRYPTION = (
    f"The connection could not be encrypted, so {NOTHING_IN_CLEAR}. Does the server have encryption switched on, does --ca name its "
    "authority, and does it allow the version and cipher asked for? A server without encryption can be measured by `none` alone"
)
FAILED = f"The encrypted arm failed, so {NOTHING_IN_CLEAR}"
_CERTIFICATE = re.compile(
    r"server's certificate|PKIX|Certificat\w*Exception|trust anchor|subject alternative|hostname|server certificate|NotAfter|NotBefore"
    r"|key usage|Certificate Common Name",
    re.IGNORECASE,
)
_STRENGTH = ("off", "require", "verify-ca", "verify-full")
Place = tuple[object, object]
"""Address and port of a server of the user's."""


class Refused:
    """What a run knows of servers of the user's whose encrypted arm could not connect. Every cell of the run asks here."""

    def __init__(self) -> None:
        self._refused: dict[Place, tuple[int, AgentError]] = {}

    def note(self, place: Place, fields: Mapping[str, object], error: AgentError) -> None:
        """The encrypted arm with these fields of `connect` failed."""
        strength = strength_of(fields)
        if place not in self._refused or self._refused[place][0] < strength:
            self._refused[place] = strength, error

    def reason(self, place: Place, fields: Mapping[str, object]) -> AgentError | None:
        """Why nothing may be sent by a connection with these fields: one that demands more of the server has failed. None: it may."""
        strength, error = self._refused.get(place, (0, None))
        return error if strength > strength_of(fields) else None


def place_of(fields: Mapping[str, object]) -> Place:
    """Of the agent's `connect`. Pure."""
    return fields.get("host"), fields.get("port")


def strength_of(fields: Mapping[str, object]) -> int:
    """How much a connection demands of the server: 0 is not even encryption. Pure."""
    encrypts = fields.get("wire_crypt", "off") != "off"
    return max(int(encrypts), _STRENGTH.index(str(fields.get("tls", "off"))))


def encrypted_first(arms: Iterable[Arm]) -> list[Arm]:
    """The order in which arms log in. Pure."""
    return sorted(arms, key=lambda arm: arm != "encrypted")


def words(text: str, code: str) -> str:
    """What to tell the user of an encrypted arm that failed. Pure; nothing else depends on it."""
    handshake = code == "tls" or code.startswith("08")  # SQLSTATE 08…: a JDBC driver's connection exceptions
    if handshake and _CERTIFICATE.search(text):
        return CERTIFICATE
    return ENCRYPTION if handshake else FAILED
