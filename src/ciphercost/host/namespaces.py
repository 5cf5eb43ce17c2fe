"""namespaces: Network namespaces that runs made, and those that are left."""

from __future__ import annotations

import os
from pathlib import Path

NAMESPACES = Path("/run/netns")
PREFIX = "ciphercost-"
NEAR_END = "link"
"""Name of the agent's card, in its namespace; the server's has a name of its own."""


def left_behind() -> list[str]:
    """Namespaces of links, whosever. Each holds one end of its pair, so with it the pair goes."""
    return sorted(path.name for path in NAMESPACES.glob(f"{PREFIX}*")) if os.access(NAMESPACES, os.R_OK) else []
