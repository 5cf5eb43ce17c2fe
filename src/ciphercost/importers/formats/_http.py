"""What wrk and h2load have in common: a number of requests, a time and a rate that must agree. Pure."""

from __future__ import annotations

from ciphercost.importers.formats import differ
from ciphercost.model.result import Warning_

TOLERANCE = 0.02
"""Relative. Times are printed to hundredths of a second."""
SHORT = 0.5
"""Seconds below which the printed time is too coarse for this check."""


def contradictions(requests: float, seconds: float, rate: float) -> list[Warning_]:
    """Return a warning if the number of requests divided by the time is not the printed rate."""
    if seconds <= SHORT or not differ(requests / seconds, rate, TOLERANCE):
        return []
    text = f"{requests:,.0f} requests in {seconds:g} s contradict the printed rate of {rate:,.1f} per second"
    return [Warning_("contradiction", f"{text}; a figure is wrong or from another run")]
