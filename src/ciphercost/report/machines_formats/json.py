"""JSON: the whole result over machines, as docs/machines.schema.json describes it."""

from __future__ import annotations

import msgspec

from ciphercost.report.machines_types import Concluded


def render(of: Concluded) -> str:
    return msgspec.json.format(msgspec.json.encode(of.run), indent=2).decode()
