"""versions: sorts versions and matches them against the requested one. Pure."""

from __future__ import annotations

import re


def version_key(version: str) -> tuple[int, ...]:
    """`"17.5"` -> (17, 5), for sorting. Pure."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def matches(version: str, wanted: str) -> bool:
    """Whether version `17.5` matches the requested `17`, `17.5` or ''; `1` does not match it. Pure."""
    return not wanted or re.match(rf"{re.escape(wanted)}(?!\d)", version) is not None
