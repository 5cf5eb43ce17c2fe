"""leakage: what stored bytes reveal about known values. Pure. Every finding is counted, none assumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations

from ciphercost.model.slices import Finding

BLOCK = 16
TOLD = 8
"""Minimum number of differing bytes that shows that two texts share a key stream. By chance, one pair in 2^64 does."""
UNAUTHENTICATED = Finding(
    "unauthenticated",
    "low",
    "a stored value that was changed decrypts without an error: nothing shows that it is not what was written",
    "authenticated encryption: client-aes-gcm-256, or pgp-sym with its MDC",
)


def repeated_blocks(stored: bytes, block: int = BLOCK) -> int:
    """How many of a value's blocks equal an earlier one, at any alignment of the first. 0: none."""
    most = 0
    for start in range(min(block, len(stored))):
        blocks = [stored[at : at + block] for at in range(start, len(stored) - block + 1, block)]
        most = max(most, sum(count - 1 for count in Counter(blocks).values()))
    return most


def equal_values(texts: Mapping[int, bytes], stored: Mapping[int, bytes]) -> int:
    """Number of pairs of equal texts that are stored as equal bytes."""
    return sum(texts[a] == texts[b] and stored[a] == stored[b] for a, b in combinations(texts, 2))


def key_stream(texts: Mapping[int, bytes], stored: Mapping[int, bytes]) -> int:
    """Largest number of bytes in which the difference of two texts equals the difference of their stored forms: both
    used one key stream.

    An attacker who knows one text can then read that many bytes of the other. Fewer than a block may be chance, and
    count as 0. So do equal beginnings that are stored alike: they show equality, but reveal nothing about what differs.
    An IV may precede the stored bytes.
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
    """What known texts and their stored bytes reveal. `iv`: the fix for everything that an IV would fix, as a phrase."""
    all_findings = []
    if (blocks := max(repeated_blocks(value) for value in stored.values())) > 0:
        text = (
            f"equal blocks of a value are stored as equal blocks ({blocks} of {BLOCK} bytes seen): its pattern is "
            "visible"
        )
        all_findings.append(Finding("pattern-shows", "high", text, "a mode other than ECB"))
    if pairs := equal_values(texts, stored):
        text = (
            f"equal values are stored as equal bytes ({pairs} pair{'s' * (pairs != 1)} seen): a reader of the table "
            "sees which rows are equal"
        )
        all_findings.append(Finding("equality-shows", "medium", text, iv))
    if size := key_stream(texts, stored):
        whole = size >= min(len(text) for text in texts.values())
        text = f"two values share their key stream ({size} bytes seen): whoever knows one text can read the other" + (
            "" if whole else f"'s first {size} bytes"
        )
        all_findings.append(Finding("key-stream-reused", "high" if whole else "medium", text, iv))
    return all_findings
