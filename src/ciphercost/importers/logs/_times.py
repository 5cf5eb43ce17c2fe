"""Times as servers write them into logs, to whole seconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}
_CLF = re.compile(rb"(\d{2})/([A-Z][a-z]{2})/(\d{4}):(\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(?: ([+-])(\d{2})(\d{2}))?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def clf(text: bytes) -> int:
    """`10/Oct/2000:13:55:36 -0700` → seconds since 1970. Without a zone it counts as UTC. Raises ValueError."""
    match = _CLF.fullmatch(text)
    if match is None:
        raise ValueError("no time")
    day, month, year, hour, minute, second, sign, zone_hours, zone_minutes = match.groups()
    number = MONTHS.get(month.decode())
    if number is None:
        raise ValueError("no month")
    # A leap second is the first of the next minute.
    at = datetime(int(year), number, int(day), int(hour), int(minute), tzinfo=UTC) - _EPOCH
    seconds = at // timedelta(seconds=1) + int(second)
    if sign:
        offset = int(zone_hours) * 3600 + int(zone_minutes) * 60
        seconds -= offset if sign == b"+" else -offset
    return seconds


def iso(text: str) -> int:
    """`2026-01-31T13:55:36.123+02:00`, also with a blank or `Z` → seconds since 1970. Without a zone it counts as UTC. Raises ValueError."""
    at = datetime.fromisoformat(text.strip())
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // timedelta(seconds=1)
