"""Decides in which order the arms log in to a server, and when nothing more may be sent to it unencrypted.

The encrypted arm comes first. If it can't connect to a server that the user runs, for whatever reason, an attacker may
be in between and would get an unencrypted login. No error text decides this; texts only select the words of the
message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ciphercost.model.errors import AgentError
from ciphercost.model.spec import Arm

NOTHING_IN_CLEAR = "ciphercost sent nothing unencrypted to the server after that"
CERTIFICATE = f"The server's certificate was rejected, so {NOTHING_IN_CLEAR}. If this is the right server, name its CA with --ca FILE"
ENCRYPTION = (
    f"The connection could not be encrypted, so {NOTHING_IN_CLEAR}. Check that the server has encryption switched on, that --ca names its "
    "CA, and that it allows the requested version and cipher. A server without encryption can only be measured with `none`"
)
FAILED = f"The encrypted arm failed, so {NOTHING_IN_CLEAR}"
_CERTIFICATE = re.compile(
    r"server's certificate|PKIX|Certificat\w*Exception|trust anchor|subject alternative|hostname|server certificate|NotAfter|NotBefore"
    r"|key usage|Certificate Common Name",
    re.IGNORECASE,
)
_STRENGTH = ("off", "require", "verify-ca", "verify-full")
Place = tuple[object, object]
"""Address and port of a server that the user runs."""


class Refused:
    """The user's servers whose encrypted arm could not connect. All cells of a run share one instance."""

    def __init__(self) -> None:
        self._refused: dict[Place, tuple[int, AgentError]] = {}

    def note(self, place: Place, fields: Mapping[str, object], error: AgentError) -> None:
        """Record that the encrypted arm failed with these fields of `connect`."""
        strength = strength_of(fields)
        if place not in self._refused or self._refused[place][0] < strength:
            self._refused[place] = strength, error

    def reason(self, place: Place, fields: Mapping[str, object]) -> AgentError | None:
        """Return why a connection with these fields is not allowed: a stronger one failed. None: it is allowed."""
        strength, error = self._refused.get(place, (0, None))
        return error if strength > strength_of(fields) else None


def place_of(fields: Mapping[str, object]) -> Place:
    """Derive the place from fields of the agent's `connect`. Pure."""
    return fields.get("host"), fields.get("port")


def strength_of(fields: Mapping[str, object]) -> int:
    """Rank how much a connection demands of the server; 0: not even encryption. Pure."""
    encrypts = fields.get("wire_crypt", "off") != "off"
    return max(int(encrypts), _STRENGTH.index(str(fields.get("tls", "off"))))


def encrypted_first(arms: Iterable[Arm]) -> list[Arm]:
    """Return the order in which the arms log in. Pure."""
    return sorted(arms, key=lambda arm: arm != "encrypted")


def words(text: str, code: str) -> str:
    """Explain a failure of the encrypted arm to the user. Pure; nothing else depends on it."""
    handshake = code == "tls" or code.startswith("08")  # SQLSTATE 08…: a JDBC driver's connection exceptions
    if handshake and _CERTIFICATE.search(text):
        return CERTIFICATE
    return ENCRYPTION if handshake else FAILED
