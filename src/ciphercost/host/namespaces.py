"""namespaces: network namespaces of runs, and those that are left."""

from __future__ import annotations

import os
from pathlib import Path

NAMESPACES = Path("/run/netns")
PREFIX = "ciphercost-"
NEAR_END = "link"
"""Name of the agent's interface, in its namespace; the server's interface has its own name."""


def left_behind() -> list[str]:
    """Network namespaces of links, whoever made them. Each holds one end of a pair, so removing it removes the pair."""
    return sorted(path.name for path in NAMESPACES.glob(f"{PREFIX}*")) if os.access(NAMESPACES, os.R_OK) else []
