"""The tree of stacks of both arms, pruned to what can be drawn and told from noise. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ciphercost.model.profile import ProfileFrame

LEAST = 0.01
"""A frame is kept from this share of the larger arm's CPU time on; smaller ones count as their caller's own."""
DEEPEST = 64
"""Frames of a stack that are kept, from the outside."""


def tree(stacks: Mapping[tuple[str, ...], tuple[float, float]]) -> list[ProfileFrame]:
    """Frames with both arms' CPU time, callers first, the largest first among those with the same caller.

    `stacks`: frames from the outside → (plain, encrypted) in µs per operation. Without stacks the tree is empty.
    """
    totals: dict[tuple[str, ...], list[float]] = {}
    for frames, (plain, encrypted) in stacks.items():
        for depth in range(1, min(len(frames), DEEPEST) + 1):
            both = totals.setdefault(frames[:depth], [0.0, 0.0])
            both[0] += plain
            both[1] += encrypted
    whole = max((sum(times[number] for times in stacks.values()) for number in (0, 1)), default=0.0)
    below: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for key, both in totals.items():
        if max(both) >= LEAST * whole > 0:
            below.setdefault(key[:-1], []).append(key)
    kept: list[ProfileFrame] = []

    def add(above: tuple[str, ...], parent: int) -> None:
        for key in sorted(below.get(above, []), key=lambda key: (-max(totals[key]), key)):
            plain, encrypted = totals[key]
            kept.append(ProfileFrame(parent, key[-1], plain, encrypted))
            add(key, len(kept) - 1)

    add((), -1)
    return kept
