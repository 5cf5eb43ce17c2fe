"""proof_row: what `prove` found out about one target, in the fields of its table. No logic."""

from __future__ import annotations

from typing import Literal

import msgspec

ProofVerdict = Literal[
    "proven", "not verified", "not enforced", "not encrypted", "not proven", "unreachable", "refused"
]
"""proven: encrypted, and the server verified with its name. not verified: encrypted, but not with a verified server or name.
not enforced: encrypted now, but the string also allows an unencrypted connection. not encrypted: the client gets none. not proven: a
witness failed. unreachable: nothing answers. refused: the target can't be examined as it is written. The best stands first.
"""


class ProofRow(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One row of `prove -f`."""

    target: str
    """As the file has it, without a user's name."""
    verdict: ProofVerdict = "not proven"
    ok: bool = False
    server: str = ""
    """What answered: engine and version."""
    protocol: str = ""
    cipher: str = ""
    group: str = ""
    certificate: str = ""
    """Kind of the server's key."""
    verified: str = ""
    """What of the server's identity was verified."""
    by: list[str] = []
    """The witnesses that confirm the encryption."""
    client_certificate: str = ""
    """What the server made of the client's certificate."""
    enforced: Literal["yes", "no", "unknown"] = "unknown"
    """Whether the server refuses unencrypted connections."""
    not_enforced: list[str] = []
    """What was only negotiated: another client, or somebody in the path, gets less."""
    reason: str = ""
    """Why the verdict is not `proven`."""
    seconds: float = 0.0
    """How long its examination took."""
    details: str = ""
    """Everything that `prove` prints of this target."""
