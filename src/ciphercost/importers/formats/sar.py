"""Reads the output of sysstat's sar: `-u`, `-u ALL`, `-r`, in any language, with a clock of 12 or 24 hours. Pure.

A row whose first word is not a time is an average: `Average:`, `Durchschn.:`, `Média:`.
"""

from __future__ import annotations

import datetime
import math
import re

from ciphercost.importers.formats import NUMBER, Bad, Lines, line_of, number
from ciphercost.importers.formats._host import Row, reading
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

HEADER = re.compile(r"Linux \S+ \([^)\n]*\)\s+(\S+)\s+\S+\s+\((\d+) CPU\)\s*")
COLUMNS = re.compile(r"(?:\d\d:\d\d:\d\d(?: [AP]M)?|\S+:)\s+CPU\s+%us(?:e)?r\s.*")
MARK = re.compile(rf"^(?:{HEADER.pattern}|{COLUMNS.pattern})$", re.MULTILINE)
CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\s+([AP]M))?\s+(.*)")
VALUE = re.compile(NUMBER)
DAY = 86400.0
NAMES = {"%user": "user", "%usr": "user", "%nice": "nice", "%system": "system", "%sys": "system", "%iowait": "iowait"}
NAMES |= {"%steal": "steal", "%idle": "idle"}
ADDED = {"%irq": "system", "%soft": "system", "%guest": "user", "%gnice": "nice"}


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per section.

    A section begins with a line `Linux … (N CPU)`; without one, the whole text is a section.
    """
    readings: list[Reading] = []
    section: Section | None = None
    for line in lines:
        if match := HEADER.fullmatch(line):
            if section is not None:
                readings.append(section.finish())
            section = Section(lines.number, match[1], int(match[2]))
            continue
        section = section or Section(lines.number)
        section.take(line, lines.number, cut=lines.cut)
    if section is None:
        raise Bad(0, "the file is empty")
    return [*readings, section.finish()]


def day(text: str) -> float:
    """Parse `11/21/26`, `2026-11-21` or `21.11.2026` to seconds since 1970; nan if day and month are ambiguous.

    sar writes American dates in C and en_US, with a two-digit year only in C; other locales put the day first.
    """
    numbers = [int(word) for word in re.findall(r"\d+", text)]
    if len(numbers) != 3:
        return math.nan
    one, two, three = numbers
    if one > 31:
        year, month, of_month = numbers
    elif three < 100:
        year, month, of_month = 2000 + three, one, two
    elif "." in text or one > 12:
        year, month, of_month = three, two, one
    elif two > 12 or one == two:
        year, month, of_month = three, one, two
    else:
        return math.nan
    try:
        return datetime.datetime(year, month, of_month, tzinfo=datetime.UTC).timestamp()
    except ValueError:
        return math.nan


class Section:
    """The output of one call of sar, while it is read."""

    def __init__(self, line: int, date: str = "", cpus: int = 0) -> None:
        self.line, self.cpus = line, cpus
        self.day = day(date)
        self.columns: list[str] = []
        self.rows: list[Row] = []
        self.memory: list[float] = []
        self.averages = 0
        self.notes: list[Warning_] = []
        self.last = math.nan

    def take(self, line: str, number_: int, *, cut: bool) -> None:
        """Process one line of the section."""
        words = line.split()
        if not words:
            self.columns = []
            return
        match = CLOCK.fullmatch(line.strip())
        rest = match[5].split() if match else words[1:]
        if "RESTART" in line:
            self.columns = []
            self.notes.append(Warning_("restarted", "the machine restarted between two rows"))
        elif rest and not VALUE.fullmatch(rest[-1]):
            self.columns = rest if ("%idle" in rest and "CPU" in rest) or "kbmemfree" in rest else []
            if match and math.isnan(self.last):
                self.last = self.clock(match)
        elif not self.columns:
            return
        elif match is None:
            self.averages += "CPU" not in self.columns or rest[:1] == ["all"]
        elif cut:
            self.notes.append(Warning_("cut-off", f"the last line, {number_}, is cut off and was skipped"))
        else:
            self.row(rest, match, number_)

    def clock(self, match: re.Match[str]) -> float:
        hour, minute, second = (int(match[group]) for group in (1, 2, 3))
        hour = hour % 12 + 12 * (match[4] == "PM") if match[4] else hour
        at = self.day + hour * 3600 + minute * 60 + second
        while at < self.last:  # past midnight
            at += DAY
        return at

    def row(self, rest: list[str], match: re.Match[str], number_: int) -> None:
        if len(rest) != len(self.columns):
            raise Bad(
                number_,
                f"{len(rest)} values for {len(self.columns)} columns; the row is cut off or belongs to another table",
            )
        named = dict(zip(self.columns, rest, strict=True))
        if "CPU" in named and named["CPU"] != "all":
            return
        try:
            values = {name: number(text) for name, text in named.items() if name != "CPU"}
        except ValueError:
            raise Bad(number_, f"'{' '.join(rest)[:60]}' contains a word instead of a figure") from None
        if "kbmemfree" in values:
            self.memory.append(values["kbmemfree"] * 1024)
            return
        parts = dict.fromkeys(("user", "nice", "system", "iowait", "steal", "idle"), 0.0)
        for name, part in (NAMES | ADDED).items():
            parts[part] += values.get(name, 0.0)
        if not 98 <= sum(parts.values()) <= 102:
            raise Bad(
                number_,
                f"the shares of CPU time add up to {sum(parts.values()):.1f} %, not 100 %; a column is missing or wrong",
            )
        at = self.clock(match)
        # The time above the first row is when sar started, unless that line was cut off.
        seconds = at - self.last if at > self.last else 0.0
        self.last = at if math.isfinite(at) else self.last
        self.rows.append(Row(at, seconds, **parts))

    def finish(self) -> Reading:
        return reading(
            "sar",
            self.rows,
            self.memory,
            line=self.line,
            cpus=self.cpus,
            clock="local",
            averages=self.averages,
            notes=self.notes,
        )
