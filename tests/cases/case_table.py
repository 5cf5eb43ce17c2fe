"""case_table: prints what tests recorded by `cases.record`, as a Markdown table. A pytest plugin, which `make cases` loads."""

from __future__ import annotations

from typing import Any

import cases


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print a line for each case: the input, the answer when it was filed, and the answer now."""
    answers = cases.before()
    rows = [
        [f"{folder}: {input_}", answers.get((folder, input_), "–"), answer, "" if report.passed else "WRONG"]
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for _, (folder, input_, answer) in (pair for pair in report.user_properties if pair[0] == cases.PROPERTY)
    ]
    for row in [["case", "before", "now", ""], ["---"] * 4, *sorted(rows)] if rows else []:
        terminalreporter.write_line(f"| {' | '.join(cell.replace('|', '∣') for cell in row)} |")
