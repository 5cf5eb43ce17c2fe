"""trust: in which order a server is connected to, and when nothing more may be sent to it unencrypted.

The encrypted arm comes first. If its certificate is rejected, somebody may stand between, and an unencrypted login would be theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ciphercost.errors import AgentError
from ciphercost.model import Arm

NOTHING_IN_CLEAR = (
    "The server's certificate was rejected, so nothing was sent to the server unencrypted. If it is the right server, name its "
    "authority with --ca FILE"
)
_REJECTED = re.compile(
    r"the server's certificate|PKIX|Certificat\w*Exception|trust anchor|subject alternative|hostname|server certificate",
    re.IGNORECASE,
)


def encrypted_first(arms: Iterable[Arm]) -> list[Arm]:
    """The order in which arms log in. Pure."""
    return sorted(arms, key=lambda arm: arm != "encrypted")


def rejected(error: AgentError) -> bool:
    """Whether the client rejected the server's certificate: unknown authority, another name, expired. Pure."""
    return error.code == "tls" and bool(_REJECTED.search(str(error)))
