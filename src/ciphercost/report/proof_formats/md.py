"""Markdown: a table with one row for each target."""

from __future__ import annotations

from ciphercost.report.markdown import in_row
from ciphercost.report.markdown import row as line
from ciphercost.report.proof_formats import Rows, headline, negotiated

HEAD = ("", "target", "verdict", "negotiated", "verified", "proven by", "not enforced", "reason")


def render(rows: Rows) -> str:
    lines = [f"**{headline(rows)}**", "", line(*HEAD), line(*("---" for _ in HEAD))]
    for row in rows:
        texts = (row.verdict, negotiated(row), row.verified, ", ".join(row.by), "; ".join(row.not_enforced), row.reason)
        target = row.target.replace("|", "\\|")  # in a code span, character references stay as they are
        lines.append(line("✅" if row.ok else "❌", f"`{target}`", *(in_row(text, 0) for text in texts)))
    return "\n".join(lines)
