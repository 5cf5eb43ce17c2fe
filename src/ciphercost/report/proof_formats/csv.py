"""CSV: one row for each target; lists are joined by `; `."""

from __future__ import annotations

from ciphercost.report.formats.csv import table
from ciphercost.report.proof_formats import Rows

COLUMNS = (
    "target", "verdict", "ok", "server", "protocol", "cipher", "group", "certificate", "verified", "by", "client_certificate", "enforced",
    "not_enforced", "reason", "seconds",
)  # fmt: skip


def render(rows: Rows) -> str:
    def shown(value: object) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        return "; ".join(value) if isinstance(value, list) else str(value)

    return table(COLUMNS, ({column: shown(getattr(row, column)) for column in COLUMNS} for row in rows))
