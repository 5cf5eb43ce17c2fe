"""JSON: an object with the headline's counts and every row, as FORMAT.md describes it."""

from __future__ import annotations

import msgspec

from ciphercost.model.version import VERSION
from ciphercost.report.proof_formats import Rows


def render(rows: Rows) -> str:
    document = {
        "ciphercost": VERSION,
        "targets": len(rows),
        "failed": sum(not row.ok for row in rows),
        "rows": [{field: getattr(row, field) for field in row.__struct_fields__} for row in rows],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
