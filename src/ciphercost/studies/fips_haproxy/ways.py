"""The pairs of servers that the study compares: FIPS mode off → on, with the same or their own key exchange. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ciphercost.host.fips import LIBRARY, OFF, ON


class Way(NamedTuple):
    """One pair of arms. `plain` is the server out of FIPS mode, `encrypted` the one in it; both encrypt."""

    name: str
    workload: str
    factors: Mapping[str, str]
    versus: Mapping[str, str]


BASE = {"fips": ON, "library": LIBRARY}
SAME = Way("P-256, RSA 2048", "connect", BASE, {"fips": OFF})
"""What only the mode changes. Both values of `fips` have P-256."""
CURVE = Way("P-256, ECDSA P-256", "connect", {**BASE, "certificate": "ecdsa-p256"}, {"fips": OFF})
OWN = Way("X25519 → P-256, RSA 2048", "connect", BASE, {"fips": OFF, "group": "x25519"})
"""What a client that offers X25519 first meets: FIPS mode has none, so the key exchange changes too."""
KEPT = Way("kept connections", "page", BASE, {"fips": OFF})
ALL = (SAME, CURVE, OWN, KEPT)
CONNECTING = (SAME, CURVE, OWN)
