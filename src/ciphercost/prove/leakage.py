"""leakage: values and how they are stored -> what the stored bytes give away. Pure; every finding is counted, none supposed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations

from ciphercost.model.slices import Finding

BLOCK = 16
TOLD = 8
"""Differing bytes, at the least, by which two texts tell that they share a key stream: one pair of 2^64 does by chance."""
UNAUTHENTICATED = Finding(
    "unauthenticated",
    "low",
    "a stored value that was changed is decrypted without an error: nothing shows that it is not what was written",
    "authenticated encryption: client-aes-gcm-256, or pgp-sym with its MDC",
)


def repeated_blocks(stored: bytes, block: int = BLOCK) -> int:
    """How many of a value's blocks are equal to an earlier one, at any alignment of the first. 0 where none is."""
    most = 0
    for start in range(min(block, len(stored))):
        blocks = [stored[at : at + block] for at in range(start, len(stored) - block + 1, block)]
        most = max(most, sum(count - 1 for count in Counter(blocks).values()))
    return most


def equal_values(texts: Mapping[int, bytes], stored: Mapping[int, bytes]) -> int:
    """Pairs of equal texts that are stored as equal bytes."""
    return sum(texts[a] == texts[b] and stored[a] == stored[b] for a, b in combinations(texts, 2))


def key_stream(texts: Mapping[int, bytes], stored: Mapping[int, bytes]) -> int:
    """The most bytes of two different texts whose difference is that of their stored forms: one key stream was used for both.

    Whoever knows the one text reads that many bytes of the other. Fewer than a block are chance, and 0. So are equal beginnings that
    are stored alike: that is equality, and tells nothing of what differs. Before what is stored an IV may stand.
    """
    most = 0
    for a, b in combinations(texts, 2):
        spare = min(len(stored[a]) - len(texts[a]), len(stored[b]) - len(texts[b]))
        for start in range(max(0, min(spare, BLOCK)) + 1):
            most = max(most, _shared(texts[a], texts[b], stored[a][start:], stored[b][start:]))
    return most


def _shared(a: bytes, b: bytes, stored_a: bytes, stored_b: bytes) -> int:
    same = told = 0
    for p, q, c, d in zip(a, b, stored_a, stored_b, strict=False):
        if p ^ q != c ^ d:
            break
        same += 1
        told += p != q
    return same if same >= BLOCK and told >= TOLD else 0


def findings(texts: Mapping[int, bytes], stored: Mapping[int, bytes], iv: str) -> list[Finding]:
    """What known texts and their stored bytes show. `iv`: what closes what an IV would close, in words."""
    found = []
    if (blocks := max(repeated_blocks(each) for each in stored.values())) > 0:
        text = f"equal blocks of a value are stored as equal blocks ({blocks} of {BLOCK} bytes seen): its pattern shows"
        found.append(Finding("pattern-shows", "high", text, "another mode than ECB"))
    if pairs := equal_values(texts, stored):
        text = f"equal values are stored as equal bytes ({pairs} pair{'s' * (pairs != 1)} seen): who reads the table sees which rows agree"
        found.append(Finding("equality-shows", "medium", text, iv))
    if size := key_stream(texts, stored):
        whole = size >= min(len(each) for each in texts.values())
        text = f"two values share their key stream ({size} bytes seen): who knows one text reads the other" + (
            "" if whole else f"'s first {size} bytes"
        )
        found.append(Finding("key-stream-reused", "high" if whole else "medium", text, iv))
    return found
