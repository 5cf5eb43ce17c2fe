"""servers: which encryption at rest the study's arms have: that of the server which the user names, or of a file system below a stock one."""

from __future__ import annotations

from pathlib import Path

from ciphercost import engines, mechanisms
from ciphercost.errors import UsageError

FILE_SYSTEMS = ("fscrypt", "gocryptfs")
"""Under PostgreSQL as anybody has it, where no server with TDE is named."""
VENDORS = ("pg-tde", "cybertec-tde", "edb-tde")
"""TDE of a server's own."""


def mechanism_of(bindir: str) -> str:
    """What the binaries in `bindir` encrypt with. Raises UsageError where it is none of these, MissingServer where there is no server."""
    installation = engines.get("postgresql").find(bindir=bindir)
    reasons = []
    for name in VENDORS:
        lack: str = mechanisms.get(name).lacks(Path(installation.location))  # type: ignore[attr-defined]
        if not lack:
            return name
        reasons.append(f"{name}: {lack}")
    raise UsageError(
        f"--bindir {bindir}: PostgreSQL {installation.version} there has no TDE that is known here ({'; '.join(reasons)}). "
        "Leave --bindir out to measure encryption by the file system."
    )
