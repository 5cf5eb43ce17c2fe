"""JSON: the whole trend, as `trend_types.Trend` defines it."""

from __future__ import annotations

import msgspec

from ciphercost.report.trend_types import Trend


def render(of: Trend) -> str:
    return msgspec.json.format(msgspec.json.encode(of), indent=2).decode()
