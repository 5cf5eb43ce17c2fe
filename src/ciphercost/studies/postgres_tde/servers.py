"""servers: which encryption at rest the study's arms have: that of the server which the user names, or of a file system below a stock one."""

from __future__ import annotations

from ciphercost import engines, mechanisms
from ciphercost.errors import UsageError

FILE_SYSTEMS = ("fscrypt", "gocryptfs")
"""Under PostgreSQL as anybody has it, where no server with TDE is named."""
VENDORS = ("pg-tde", "cybertec-tde", "edb-tde")
"""TDE of a server's own."""


def mechanism_of(bindir: str) -> str:
    """What the binaries in `bindir` encrypt with. Raises UsageError where it is none of these, MissingServer where there is no server."""
    installation = engines.get("postgresql").find(bindir=bindir)
    for name in VENDORS:
        if name in mechanisms.names() and mechanisms.get(name).has(installation):  # type: ignore[attr-defined]
            return name
    raise UsageError(
        f"--bindir {bindir}: PostgreSQL {installation.version} there has no TDE that is known here ({', '.join(VENDORS)}); "
        "leave --bindir out to measure encryption by the file system"
    )
