"""How far logs are read, as lines on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciphercost.commands._say import Loading
from ciphercost.model.shares import in_percent

if TYPE_CHECKING:
    from ciphercost.model.traffic import Traffic
    from ciphercost.runs.workload_from_logs import Read


class LogProgress:
    """Prints a line that changes while logs are read, and one when they are. `shown`: whether it prints anything."""

    def __init__(self, *, shown: bool) -> None:
        self._loading = Loading() if shown else None

    def show(self, read: Read) -> None:
        """Print how far the logs are read."""
        if self._loading:
            share = read.bytes / max(1, read.of)
            self._loading.show(f"reading: {in_percent(share, 0)} of {read.of / 1e6:,.0f} MB, {read.lines:,} lines")

    def end(self, found: Traffic) -> None:
        """Print what was read."""
        if self._loading:
            self._loading.say(f"read {found.lines:,} lines of {found.files:,} file{'s' * (found.files != 1)}")
