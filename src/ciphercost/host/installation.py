"""installation: where a server's binaries come from."""

from __future__ import annotations

import msgspec


class Installation(msgspec.Struct, frozen=True):
    """Where a server's binaries come from."""

    engine: str
    version: str
    """Full version as the server itself reports it ("17.5")."""
    source: str
    """`running`, `path`, `debian`, `apt`, `maven` or `library` (inside the agent)."""
    location: str
    """Directory of the binaries, or the URL without its password."""
