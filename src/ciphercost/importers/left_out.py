"""Counts the lines of logs that count for nothing, by reason. Pure."""

from __future__ import annotations

from ciphercost.model.traffic import LeftOut

MOST_REASONS = 50
"""More reasons than these are counted as one."""


class LeftOuts:
    """Lines that were left out, each reason with the place of its first line."""

    def __init__(self) -> None:
        self._found: dict[str, LeftOut] = {}

    def add(self, reason: str, file: str, line: int, lines: int = 1) -> None:
        if reason not in self._found and len(self._found) >= MOST_REASONS:
            reason = "for other reasons"
        known = self._found.setdefault(reason, LeftOut(reason, 0, file, line))
        known.lines += lines

    def found(self) -> list[LeftOut]:
        """The most frequent reason first."""
        return sorted(self._found.values(), key=lambda each: (-each.lines, each.reason))
