"""builtins: pgbench's own scripts. Pure, and imported by the command line: keep it light."""

from __future__ import annotations

import re

BUILTINS = ("tpcb-like", "simple-update", "select-only")
"""Their names."""


def builtin(name: str, tpcb: str) -> str:
    """One of pgbench's scripts, from the text of `tpcb-like` in a server's SQL."""
    lines = [line.replace("(1, :rows)", "(1, 100000 * :scale)") for line in tpcb.strip().splitlines()]
    lines = [line.replace("bid random(1, :scale)", "bid random(1, 1 * :scale)") for line in lines]
    if name == "simple-update":
        lines = [line for line in lines if not re.match(r"UPDATE pgbench_(tellers|branches)\b", line)]
    elif name == "select-only":
        lines = [line.replace(" FOR UPDATE", "") for line in lines if line.startswith(("\\set aid", "SELECT abalance"))]
    return "\n".join(lines) + "\n"
