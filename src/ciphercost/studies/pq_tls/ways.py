"""The key exchanges and certificates that the study compares, and its two links. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

EXCHANGE, BOTH = "ML-KEM", "ML-KEM + ML-DSA"
LIBRARY = "openssl-3.5"
"""The first version with ML-KEM and ML-DSA, for all of them."""
FACTORS: Mapping[str, Mapping[str, str]] = {
    "classical": {"group": "x25519", "certificate": "rsa2048", "library": LIBRARY},
    EXCHANGE: {"group": "x25519mlkem768", "certificate": "rsa2048", "library": LIBRARY},
    BOTH: {"group": "x25519mlkem768", "certificate": "mldsa65", "library": LIBRARY},
}
"""By name of a way to connect; the first is the reference."""
REFERENCE = next(iter(FACTORS))
FILES = ("1KB", "50KiB", "200KiB")


class Link(NamedTuple):
    """A link between client and server."""

    name: str
    bandwidth: str
    delay: str

    @property
    def words(self) -> str:
        return f"{self.bandwidth} with a delay of {self.delay}"


FAST = Link("fast", "1gbit", "10ms")
SLOW = Link("slow", "2mbit", "50ms")


def operation(link: str, file: str) -> str:
    """`50KiB over the slow link`."""
    return f"{file} over the {link} link"
