"""case_table: prints what the tests of `tests/cases` saw, as a Markdown table. `make cases` loads it (`-p case_table`)."""

from __future__ import annotations

from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print one line for each case: input, answer before it was filed, answer now, and whether that is right."""
    rows = [
        [*value, "yes" if report.passed else "NO"]
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", [])
        if name == "case" and report.when == "call"
    ]
    if not rows:
        return
    terminalreporter.write_line("| input | before | now | right |")
    terminalreporter.write_line("|---|---|---|---|")
    for row in sorted(rows):
        terminalreporter.write_line("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |")
