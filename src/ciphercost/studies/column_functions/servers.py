"""What the study's three servers encrypted with, and what makes them comparable. Pure."""

from __future__ import annotations

import re

import msgspec

from ciphercost.model.errors import UsageError, nearest


class Pair(msgspec.Struct, frozen=True):
    """One server's two ciphers: the published one, and that of the comparison at equal cipher."""

    published: str
    factors: dict[str, str]
    """Factors of `published`."""
    equal: str


PAIRS = {
    "firebird": Pair("aes-ofb-128", {"iv": "fixed"}, "aes-cbc-256"),
    "mariadb": Pair("aes-ecb-128", {}, "aes-cbc-256"),
    "postgresql": Pair("pgcrypto-cbc-128", {"iv": "fixed"}, "pgcrypto-cbc-256"),
}
"""In running order: the slow one first, so that the time left for the others is known."""
EQUAL_CIPHER = "AES-256-CBC"
EQUAL_FACTORS = {"iv": "random"}
ALL = ",".join(PAIRS)


def listed(engines: str) -> list[str]:
    """Servers of `mariadb,firebird` in the order of PAIRS. Raises UsageError with the nearest name."""
    wanted = [name.strip() for name in engines.split(",") if name.strip()]
    for name in wanted:
        if name not in PAIRS:
            raise UsageError(f"study column-functions does not run on '{name}': {nearest(name, PAIRS)}")
    if not wanted:
        raise UsageError(f"--engine names no server; use one or more of {ALL}")
    return [name for name in PAIRS if name in wanted]


def loads_of(text: str) -> tuple[int, ...]:
    """Numbers of records in `1000,2000`, ascending. Raises UsageError."""
    loads = []
    for part in text.split(","):
        if not re.fullmatch(r"[0-9]{1,7}", part.strip()) or not 1 <= int(part) <= MOST_RECORDS:
            raise UsageError(
                f"--loads {text}: '{part.strip()}' is not a number of records from 1 to {MOST_RECORDS:,}; write 1000,2000"
            )
        loads.append(int(part))
    if len(set(loads)) < len(loads):
        raise UsageError(f"--loads {text}: the same load appears twice; name each load once")
    return tuple(sorted(loads))


MOST_RECORDS = 1_000_000
