"""versions: a version as text -> a key to sort by, and whether it is the one asked for. Pure."""

from __future__ import annotations

import re


def version_key(version: str) -> tuple[int, ...]:
    """`"17.5"` -> (17, 5), for sorting. Pure."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def matches(version: str, wanted: str) -> bool:
    """Whether `17.5` is what `17`, `17.5` or '' asks for; `1` does not ask for it. Pure."""
    return not wanted or re.match(rf"{re.escape(wanted)}(?!\d)", version) is not None
