"""What tools that send requests over HTTP have in common: addresses, and a number of requests, a time and a rate that must agree. Pure."""

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


def path(address: str) -> str:
    """Return `GET /index.html?…`: without the user, and without the query, which may contain tokens."""
    before, query, _ = address.partition("#")[0].partition("?")
    return "GET /" + before.partition("/")[2] + ("?…" if query else "")


def addressed(url: str, otherwise: str) -> tuple[str, str]:
    """Return the workload and the scheme of an address that a tool printed: `GET /index.html` and `https`; `otherwise` and no scheme if it is
    none of HTTP.
    """
    scheme, _, rest = url.partition("://")
    return (path(rest), scheme) if rest and scheme in ("http", "https") else (otherwise, "")
