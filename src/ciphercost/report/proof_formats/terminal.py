"""Text for a terminal: the headline, then a line for each target and what is below it."""

from __future__ import annotations

from ciphercost.report.layout import wrap
from ciphercost.report.proof_formats import Rows, headline, negotiated


def render(rows: Rows) -> str:
    width = max((len(row.verdict) for row in rows), default=0)
    lines = [headline(rows)]
    for row in rows:
        lines += wrap(f"{'ok    ' if row.ok else 'FAILED'} {row.verdict:{width}}  {row.target}", "  ", "    ")
        if row.by and row.protocol:
            who = f"; server verified: {row.verified}" if row.verified else ""
            lines += wrap(f"{row.server}: {negotiated(row)}{who}; by {', '.join(row.by)}", "      ", "        ")
        if row.client_certificate:
            lines += wrap(f"client certificate: {row.client_certificate}", "      ", "        ")
        if row.not_enforced:
            lines += wrap(f"not enforced: {'; '.join(row.not_enforced)}", "      ", "        ")
        if row.reason:
            lines += wrap(row.reason, "      ", "        ")
    return "\n".join(lines)
