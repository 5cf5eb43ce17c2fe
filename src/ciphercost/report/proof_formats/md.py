"""Markdown: a table with one row for each target."""

from __future__ import annotations

from collections.abc import Iterable

from ciphercost.report.proof_formats import Rows, headline, negotiated

HEAD = ("", "target", "verdict", "negotiated", "verified", "proven by", "not enforced", "reason")


def render(rows: Rows) -> str:
    lines = [f"**{headline(rows)}**", "", _line(HEAD), _line("---" for _ in HEAD)]
    for row in rows:
        cells = (
            "✅" if row.ok else "❌",
            f"`{row.target}`",
            row.verdict,
            negotiated(row),
            row.verified,
            ", ".join(row.by),
            "; ".join(row.not_enforced),
            row.reason,
        )
        lines.append(_line(each.replace("|", "\\|").replace("\n", " ") for each in cells))
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
