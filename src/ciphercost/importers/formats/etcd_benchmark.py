"""Reads the summary of etcd's `benchmark` (tools/benchmark), which is like hey's, with a full stop after each time. Pure.

`watch` and `txn-mixed` print several summaries, each below a line that names it.
"""

from __future__ import annotations

import re

from ciphercost.importers.formats import NUMBER, Bad, Lines, above_zero, digits, line_of, number
from ciphercost.importers.formats._http import contradictions
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

TIMES = re.compile(rf"\s*(Total|Slowest|Fastest|Average|Stddev):\s+{NUMBER} secs\.\s*")
RATE = re.compile(rf"\s*Requests/sec:\s+{NUMBER}\s*")
BUCKET = re.compile(rf"\s*{NUMBER} \[(\d+)\]\s*\|∎*\s*")
QUANTILE = re.compile(rf"\s*([\d.]+)% in {NUMBER} (secs|ms)\.\s*")
"""Seconds up to 3.6, milliseconds later."""
LAST = "99.9"
ERROR = re.compile(r"\s*\[(\d+)\]\s+\S.*")
ERRORS = re.compile(r"\s*Error distribution:\s*")
TITLE = re.compile(
    r"\s*(?:bench with (linearizable|serializable) range|(.+) [Ss]ummary:|Total (Read|Write) Ops: \d+.*)\s*"
)
MARK = re.compile(rf"^[^\S\n]*(?:Total|Slowest|Fastest|Average|Stddev):\s+{NUMBER} secs\.\s*$", re.MULTILINE)


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per summary. It ends with its last quantile, and its errors, with the next one, or with the file."""
    readings: list[Reading] = []
    run: Run | None = None
    title = ""
    for line in lines:
        if lines.cut:
            break  # a last line without its end may lack digits
        if (match := TIMES.fullmatch(line)) and match[1] == "Total":
            readings += [run.reading(lines.number)] if run else []
            run, title = Run(lines.number, title), ""
        if run:
            run.take(line)
        if match := TITLE.fullmatch(line):
            title = f"{match[1]} range" if match[1] else (match[2] or match[3]).lower()
    if run is None:
        raise Bad(
            lines.number, "there is no line 'Total: … secs.', with which a summary begins; import the whole output"
        )
    return [*readings, run.reading(lines.number)]


class Run:
    """One summary, while it is read."""

    def __init__(self, line: int, title: str) -> None:
        self.line, self.title = line, title
        self.told: dict[str, float] = {}
        self.digits = 0
        self.operations = self.errors = 0
        self.in_errors = False

    def take(self, line: str) -> None:
        if match := TIMES.fullmatch(line):
            self.told[match[1]] = number(match[2])
        elif match := RATE.fullmatch(line):
            self.told["rate"], self.digits = number(match[1]), digits(match[1])
        elif match := BUCKET.fullmatch(line):
            self.operations += int(match[2])
        elif match := QUANTILE.fullmatch(line):
            self.told[match[1]] = number(match[2]) * (1e3 if match[3] == "secs" else 1.0)
        elif ERRORS.fullmatch(line):
            self.in_errors = True
        elif self.in_errors and (match := ERROR.fullmatch(line)):
            self.errors += int(match[1])

    def reading(self, end: int) -> Reading:
        """Return the run. Raises Bad if its rate is missing, or most requests failed."""
        told = self.told
        if "rate" not in told:
            raise Bad(
                end, f"the summary that begins on line {self.line} has no line 'Requests/sec'; import the whole output"
            )
        if not told["rate"] > 0:
            raise Bad(self.line, "no request was answered, so there is nothing to compare")
        whole = LAST in told
        operations = self.operations if whole else 0
        if self.errors > operations > 0:
            text = f"{self.errors:,} requests failed and {operations:,} succeeded"
            raise Bad(self.line, f"{text}, so this is the speed of errors; fix the cause and run it again")
        notes = contradictions(operations, told["Total"], told["rate"]) if operations else []
        if self.errors:
            notes.append(
                Warning_("errors", f"{self.errors:,} requests failed, beside {operations:,} that were answered")
            )
        if not whole:
            text = f"the summary that begins on line {self.line} is cut off before its last quantile"
            notes.append(Warning_("cut-off", text))
        figures = {"latency_mean": told.get("Average", 0.0) * 1e3}
        figures |= {f"latency_p{quantile}": told.get(quantile, 0.0) for quantile in ("50", "99")}
        return Reading(
            tool="etcd-benchmark",
            line=self.line,
            engine="etcd",
            workload=self.title or "requests",
            operations=operations,
            errors=self.errors,
            seconds=told["Total"],
            digits=self.digits,
            figures={"throughput": told["rate"]} | above_zero(figures),
            notes=notes,
        )
