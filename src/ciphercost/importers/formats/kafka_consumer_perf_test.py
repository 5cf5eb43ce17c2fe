"""Reads the output of Apache Kafka's kafka-consumer-perf-test, a table with one line. Pure.

Throughput is `fetch.nMsg.sec`: without the time in which the consumer joined its group, which depends on a setting of
the broker. Versions before 1.1 have no such column.
"""

from __future__ import annotations

import calendar
import re
import time

from ciphercost.importers.formats import Bad, Lines, digits, line_of, number
from ciphercost.importers.formats._http import contradictions
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

COLUMNS = (
    "start.time",
    "end.time",
    "data.consumed.in.MB",
    "MB.sec",
    "data.consumed.in.nMsg",
    "nMsg.sec",
    "rebalance.time.ms",
    "fetch.time.ms",
    "fetch.MB.sec",
    "fetch.nMsg.sec",
)
OLD = 6
"""Columns before version 1.1."""
HEADER = re.compile(r"(?:start\.time, end\.time|time, threadId), data\.consumed\.in\.MB, .*")
STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}"
ROW = re.compile(rf"{STAMP}, {STAMP}(?:, [\d.,-]+)+\s*")
"""A row with `--hide-header`, too. Where numbers have a decimal comma, no space follows it."""
DETAIL = re.compile(rf"{STAMP}, \d+, .*")
TIMED_OUT = re.compile(
    r"WARNING: Exiting before consuming the expected number of (?:messages|records): timeout \((\d+) ms\).*"
)
MARK = re.compile(rf"^(?:{HEADER.pattern}|{STAMP}, {STAMP}, )", re.MULTILINE)


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading for each line of the table."""
    readings: list[Reading] = []
    began = detail = 0
    waited: tuple[int, str] | None = None
    for line in lines:
        if HEADER.fullmatch(line):
            began = lines.number
        elif match := TIMED_OUT.fullmatch(line):
            waited = (lines.number, match[1])
        elif ROW.fullmatch(line):
            if lines.cut:
                raise Bad(lines.number, "the last line is cut off; import the whole output")
            if waited:
                raise too_few(*waited, line.strip().split(", "))
            readings.append(reading(line.strip().split(", "), began or lines.number, lines.number))
            began = 0
        elif DETAIL.fullmatch(line):
            detail = detail or lines.number
    if waited:
        raise too_few(*waited, [])
    if detail:
        raise Bad(detail, "--show-detailed-stats prints parts of a run and no summary; run it without that option")
    if began or not readings:
        raise Bad(
            lines.number, f"the table that begins on line {began or 1} has no line of figures; import the whole output"
        )
    return readings


def too_few(line: int, milliseconds: str, words: list[str]) -> Bad:
    """Return what is wrong with a run that waited for more messages than there were. `words`: its figures, if any."""
    told = dict(zip(COLUMNS, words, strict=False)).get("data.consumed.in.nMsg")
    more = f"more messages than the {int(number(told)):,} that it got" if told else "more messages than there were"
    return Bad(
        line,
        f"the tool waited {int(milliseconds):,} ms for {more}, and its time includes that wait; ask for fewer (--messages), produce more first, "
        "or raise --timeout if the broker is that slow",
    )


def reading(words: list[str], began: int, line: int) -> Reading:
    """Return one run. Raises Bad if it has other columns, or read nothing."""
    if len(words) not in (OLD, len(COLUMNS)):
        raise Bad(line, f"{len(words)} figures; kafka-consumer-perf-test prints {len(COLUMNS)}, or {OLD} before 1.1")
    told = dict(zip(COLUMNS, words, strict=False))
    messages = number(told["data.consumed.in.nMsg"])
    start, end = (stamp(told[name]) for name in COLUMNS[:2])
    old = len(words) == OLD
    rate = told["nMsg.sec" if old else "fetch.nMsg.sec"]
    seconds = end - start if old else number(told["fetch.time.ms"]) / 1e3
    if not messages or not number(rate) > 0 or not seconds > 0:
        raise Bad(line, "no message was read after the consumer had joined its group, so there is nothing to compare")
    notes = contradictions(messages, seconds, number(rate))
    if old:
        text = "the figures include the time in which the consumer joined its group, which this version does not print"
        notes.append(Warning_("join-included", text))
    return Reading(
        tool="kafka-consumer-perf-test",
        line=began,
        engine="kafka",
        workload="consume",
        operations=int(messages),
        seconds=seconds,
        started=start,
        ended=end,
        clock="local",
        digits=digits(rate),
        figures={"throughput": number(rate)},
        notes=notes,
    )


def stamp(text: str) -> float:
    """Seconds since 1970 of `2026-11-29 08:00:00:123`, as if it were UTC. Raises ValueError."""
    whole, _, milliseconds = text.rpartition(":")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%d %H:%M:%S")) + int(milliseconds) / 1e3
