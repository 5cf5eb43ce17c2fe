"""JSON: the whole comparison, as `comparison_types.Comparison` defines it."""

from __future__ import annotations

import msgspec

from ciphercost.report.comparison_types import Comparison


def render(of: Comparison) -> str:
    return msgspec.json.format(msgspec.json.encode(of), indent=2).decode()
