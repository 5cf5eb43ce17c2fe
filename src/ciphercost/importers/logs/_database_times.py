"""Times in the logs of database servers. Pure.

Zones are taken as UTC unless a time has an offset, because an abbreviation such as CST names several zones: intervals between lines are
right, and hours of the day are those that the log shows.
"""

from __future__ import annotations

import re
from calendar import timegm
from functools import lru_cache

from ciphercost.importers.logs._times import MONTHS

STAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)([.,]\d+)?(?: ?(Z\b|[+-]\d\d(?::?\d\d)?\b|[A-Z]{2,5}\b))?"
)
"""`2024-01-31 12:00:00.123 CET`, `2024-01-31T12:00:00.123456Z`, `…+02:00`."""
_SYSLOG = re.compile(r"([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d)")
_SHORT = re.compile(r"(\d\d)(\d\d)(\d\d) +(\d{1,2}):(\d\d):(\d\d)(\.\d+)?")
SYSLOG_YEAR = 2000
"""The year of a time that states none. A leap year, so that it has every day."""


@lru_cache(4096)
def _minute(year: int, month: int, day: int, hour: int, minute: int) -> int:
    return timegm((year, month, day, hour, minute, 0))


def stamp(match: re.Match[str], zones: set[str]) -> float:
    """Seconds since 1970 of a match of STAMP; 0 if there is no such month. Its zone is added to `zones`."""
    fraction, zone = match.group(7, 8)
    try:
        seconds: float = _second(match.string[match.start() : match.end(6)])
    except ValueError:
        return 0.0
    if fraction:
        seconds += float("0." + fraction[1:])
    if zone is None:
        zones.add("")
        return seconds
    zones.add(zone)
    return seconds - _offset(zone) if zone[0] in "+-" else seconds


@lru_cache(4096)
def _second(text: str) -> int:
    """Seconds since 1970 of `2024-01-31 12:00:00`, with a T too. Raises ValueError if there is no such month."""
    minute = _minute(int(text[:4]), int(text[5:7]), int(text[8:10]), int(text[11:13]), int(text[14:16]))
    return minute + int(text[17:])


@lru_cache(64)
def _offset(zone: str) -> int:
    digits = zone[1:].replace(":", "")
    seconds = int(digits[:2]) * 3600 + int(digits[2:] or 0) * 60
    return -seconds if zone[0] == "-" else seconds


def of(text: str, zones: set[str]) -> float:
    """Seconds since 1970 of a text that begins with a time; 0: it does not."""
    match = STAMP.match(text)
    return stamp(match, zones) if match else 0.0


def syslog(text: str, zones: set[str]) -> float:
    """Seconds since 1970 of a text that begins with `Feb 11 13:15:39`, in SYSLOG_YEAR; 0: it does not."""
    match = _SYSLOG.match(text)
    if match is None or match[1] not in MONTHS:
        return of(text, zones)
    month, day, hour, minute, second = match.groups()
    return float(_minute(SYSLOG_YEAR, MONTHS[month], int(day), int(hour), int(minute)) + int(second))


def short(text: str, zones: set[str]) -> float:
    """Seconds since 1970 of a text that begins with `240131 12:00:00`, as MySQL before 5.7 and MariaDB write it; 0: it does not."""
    match = _SHORT.match(text)
    if match is None:
        return of(text, zones)
    year, month, day, hour, minute, second, fraction = match.groups()
    try:
        seconds = float(_minute(2000 + int(year), int(month), int(day), int(hour), int(minute)) + int(second))
    except ValueError:
        return 0.0
    return seconds + float(fraction or 0)
