"""A share in words."""

from __future__ import annotations


def in_percent(share: float, digits: int = 1, sign: str = "") -> str:
    """`4.7 %` of 0.047. `digits`: after the point; `sign`: `+` writes it for a gain, too."""
    return f"{share:{sign}.{digits}%}".replace("%", " %")
