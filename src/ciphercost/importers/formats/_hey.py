"""What hey and oha have in common: a summary, latency quantiles, and counts of status codes and errors. Pure.

Rates count every request, answered or not, so errors are counted beside them.
"""

from __future__ import annotations

import re

from ciphercost.importers.formats import NUMBER, SECONDS, Bad, above_zero, cut_off, digits, errors_among, number
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

UNITS = {"sec": 1.0, "secs": 1.0, "10 sec": 10.0, "min": 60.0, "10 min": 600.0, "hr": 3600.0} | SECONDS
"""hey prints secs. oha prints the unit that fits its slowest request."""
UNIT = r"(?:10 sec|10 min|secs?|min|hr|ns|us|µs|ms)"
BEGIN = re.compile(r"\s*Summary:\s*")
FIELD = re.compile(rf"\s*(Success rate|Total|Average|Requests/sec):\s+{NUMBER}(%|\s*{UNIT})?\s*")
QUANTILE = re.compile(rf"\s*(50|99)(?:\.0+)?% in {NUMBER}\s*({UNIT})\s*")
STATUS = re.compile(r"\s*\[(\d{3})\]\s+(\d+) responses?\s*")
ERROR_TITLE = re.compile(r"\s*Error distribution:\s*")
ERROR = re.compile(r"\s*\[(\d+)\]\s+(.*)")
OWN = re.compile(
    r"\[\d+\]\s.*|(?:Summary|Response time \w+|Latency distribution|Details .*|Status code distribution|Error distribution):"
    r"|(?:Success rate|Total|Slowest|Fastest|Average|Requests/sec|Total data|Size/\w+|DNS[+-]\w+|req write|resp \w+):.*"
    r"|[\d.]+\s*\w* \[\d+\]\s*\|.*|[\d.]+% in .*"
)
"""Lines of both tools. Those about errors contain addresses."""
DEADLINE = "aborted due to deadline"
"""oha's name for a request that was under way when the time was over: no error."""


class Run:
    """One run, while it is read. `tool`: hey or oha."""

    def __init__(self, tool: str, line: int) -> None:
        self.tool, self.line = tool, line
        self.told: dict[str, float] = {}
        self.digits = 0
        self.statuses: dict[int, int] = {}
        self.errors: dict[str, int] = {}
        self.in_errors = False

    def take(self, row: str) -> None:
        """Process a line."""
        if match := FIELD.fullmatch(row):
            unit = (match[3] or "").strip()
            if match[1] == "Requests/sec":
                self.told["rate"], self.digits = number(match[2]), digits(match[2])
            elif unit not in ("", "%"):
                self.told[match[1]] = _seconds(match[2], unit)
        elif match := QUANTILE.fullmatch(row):
            self.told[f"latency_p{match[1]}"] = _seconds(match[2], match[3]) * 1e3
        elif ERROR_TITLE.fullmatch(row):
            self.in_errors = True
        elif self.in_errors and (match := ERROR.fullmatch(row)):
            self.errors[match[2]] = self.errors.get(match[2], 0) + int(match[1])
        elif match := STATUS.fullmatch(row):
            self.statuses[int(match[1])] = self.statuses.get(int(match[1]), 0) + int(match[2])

    def reading(self, end: int) -> Reading:
        """Return the run. Raises Bad if its rate is missing, or if most requests failed."""
        if "rate" not in self.told:
            text = (
                f"the run that begins on line {self.line} has no line 'Requests/sec'; import {self.tool}'s whole output"
            )
            raise Bad(end, text)
        figures = {"throughput": self.told["rate"]}
        if "Average" in self.told:
            figures["latency_mean"] = self.told["Average"] * 1e3
        figures |= {name: value for name, value in self.told.items() if name.startswith("latency_")}
        result = reading(
            self.tool, self.line, figures, self.statuses, self.errors, self.told.get("Total", 0.0), self.digits
        )
        if not self.statuses:
            result.notes.append(cut_off(self.line, "'Status code distribution'", result.figures))
        return result


def _seconds(value: str, unit: str) -> float:
    return number(value) * UNITS[unit]


def reading(
    tool: str,
    line: int,
    figures: dict[str, float],
    statuses: dict[int, int],
    errors: dict[str, int],
    seconds: float,
    digits_: int,
) -> Reading:
    """Return one run. `statuses`: number of answers by status code; `errors`: of requests without an answer, by reason."""
    answers, lost = sum(statuses.values()), sum(count for what, count in errors.items() if what != DEADLINE)
    wrong = lost + sum(count for status, count in statuses.items() if status >= 400)
    if not figures["throughput"] > 0 or (errors and not answers):
        text = "no request was answered, so there is nothing to compare"
        raise Bad(line, f"{text} ({_most(errors)})" if errors else text)
    notes = errors_among(line, wrong, answers + lost, "requests failed or were answered with an error")
    if errors.get(DEADLINE):
        # oha's rate counts them.
        figures = figures | {
            "throughput": figures["throughput"] * (answers + lost) / (answers + lost + errors[DEADLINE])
        }
        text = f"{errors[DEADLINE]:,} requests were under way when the time was over; they are neither answers nor errors, and not in the rate"
        notes.append(Warning_("in-flight", text))
    return Reading(
        tool=tool,
        line=line,
        engine="web",
        workload="requests",
        operations=answers + lost,
        errors=wrong,
        seconds=seconds,
        digits=digits_,
        figures=above_zero(figures),
        notes=notes,
    )


def _most(errors: dict[str, int]) -> str:
    """Return the most frequent error, without the address, which may contain a token."""
    what = max(errors, key=lambda error: errors[error])
    return re.sub(r'"[^"]*"|\S*://\S*', "…", what)[:80]


def runs(tool: str, rows: list[str]) -> list[Reading]:
    """Return a reading per run of `tool`. A run begins with `Summary:`, or with the first line if that is missing."""
    readings: list[Reading] = []
    run: Run | None = None
    for at, row in enumerate(rows, 1):
        if BEGIN.fullmatch(row):
            readings += [run.reading(at)] if run else []
            run = Run(tool, at)
        elif run is None and FIELD.fullmatch(row):
            run = Run(tool, at)
        if run:
            run.take(row)
    return readings + ([run.reading(len(rows))] if run else [])
