"""_http: what wrk and h2load have in common: a count of requests, a time and a rate that must fit together. Pure."""

from __future__ import annotations

from ciphercost.importers.formats import differ
from ciphercost.model.result import Warning_

TOLERANCE = 0.02
"""Times are printed to hundredths of a second."""
SHORT = 0.5
"""Seconds, below which what is printed of the time is too coarse to check anything by."""


def contradictions(requests: float, seconds: float, rate: float) -> list[Warning_]:
    """That a figure is wrong, where requests in these seconds are not the rate that is printed."""
    if seconds <= SHORT or not differ(requests / seconds, rate, TOLERANCE):
        return []
    text = f"{requests:,.0f} requests in {seconds:g} s are not the {rate:,.1f} a second that are printed"
    return [Warning_("contradiction", f"{text}: a figure is wrong, or of another run")]
