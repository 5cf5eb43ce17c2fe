"""Parses and prints durations, shares, budgets and prices."""

from __future__ import annotations

import re

from ciphercost.model.errors import UsageError
from ciphercost.model.result import Price

MOST_MONEY = 1e9
_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def duration(text: str, where: str = "--time") -> float:
    """Parse `90s`, `3m`, `1h`, `500ms` or `90` to seconds. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|)\s*", text)
    if match is None or float(match.group(1)) == 0:
        raise UsageError(f"{where}: '{text}' is not a duration; write 90s, 3m or 1h")
    return float(match.group(1)) * _SECONDS[match.group(2)]


_SMALL = {"us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0}
_PER = {"s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
_BYTES = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def cpu_time(text: str, where: str) -> float:
    """Parse `300us`, `0.3ms` or `2s` to seconds. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*(us|µs|μs|ms|s)\s*", text)
    if match is None or float(match[1]) == 0:
        raise UsageError(f"{where}: '{text}' is not a time; write e.g. 300us, 2ms or 0.1s")
    return float(match[1]) * _SMALL[match[2]]


def rate(text: str, where: str) -> float:
    """Parse `2000/s`, `1.5/min` or `0/s` to events per second. Raises UsageError."""
    match = re.fullmatch(r"\s*([\d,]*\.?\d+)\s*/\s*(s|sec|min|m|h)\s*", text)
    if match is None:
        raise UsageError(f"{where}: '{text}' is not a rate; write e.g. 2000/s or 30/min")
    return float(match[1].replace(",", "")) / _PER[match[2]]


def length(text: str, where: str) -> float:
    """Parse `4KB`, `1.5MB`, `64KiB` or `800` to bytes. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:([kmg]i?)?b)?\s*", text, re.IGNORECASE)
    if match is None:
        raise UsageError(f"{where}: '{text}' is not a length; write e.g. 800B, 4KB or 1.5MB")
    return float(match[1]) * _BYTES[f"{match[2]}b".lower() if match[2] else ""]


def share(text: str, where: str = "--precision") -> float:
    """Parse `1%` or `0.01` to 0.01. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", text)
    value = float(match.group(1)) / (100 if match.group(2) else 1) if match else 0.0
    if not 0 < value < 1:
        raise UsageError(f"{where}: '{text}' is not a share; write 1% or 0.01")
    return value


def budget(text: str, where: str = "--fail-over") -> float:
    """Parse `10%` to 0.1: the highest cost of encryption that is allowed. It may exceed 100 %. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if match is None or float(match.group(1)) <= 0:
        raise UsageError(f"{where}: '{text}' is not a budget; write 10% or 2.5%")
    return float(match.group(1)) / 100


_CURRENCY = r"[^\W\d_]{1,4}|[^\W\d_]{0,3}[^\w\s.,;:/\\|%*+'\"()<>\[\]{}=?!&#@^`~-]"
"""Letters, or a currency symbol with letters before it: EUR, $, US$, €."""
_PRICE = re.compile(
    rf"\s*({_CURRENCY})?\s*(\d+(?:\.\d+)?|\.\d+)\s*({_CURRENCY})?\s*/\s*vcpu-(hour|month)\s*", re.IGNORECASE
)


def price(text: str, where: str = "--price") -> Price:
    """Parse `0.04/vcpu-hour`, `$0.04/vcpu-hour` or `29 EUR/vcpu-month`. Raises UsageError."""
    example = "write e.g. 0.04/vcpu-hour, '$0.04/vcpu-hour' or 29EUR/vcpu-month"
    match = _PRICE.fullmatch(text)
    if match is None:
        raise UsageError(f"{where}: '{text}' is not a price; {example}")
    prefix, amount, suffix, per = match.groups()
    if prefix and suffix:
        raise UsageError(f"{where}: '{text}' has two currencies; {example}")
    if not 0 < float(amount) <= MOST_MONEY:
        raise UsageError(f"{where}: '{text}': a price must be above 0 and at most {MOST_MONEY:,.0f}")
    return Price(float(amount), "hour" if per.lower() == "hour" else "month", prefix or "", suffix or "")


def minutes(seconds: float) -> str:
    """Print seconds as `45 s`, `12 min` or `2 h 5 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    whole = round(seconds / 60)
    return f"{whole} min" if whole < 90 else f"{whole // 60} h {whole % 60} min"
