"""Reads `sadf -d` of sysstat: columns separated by `;`, with `-u` and optionally `-r`. Pure."""

from __future__ import annotations

import datetime
import math
import re
from typing import Literal

from ciphercost.importers.formats import Bad, Lines, line_of, number
from ciphercost.importers.formats._host import Row, reading
from ciphercost.importers.formats.sar import ADDED, NAMES
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

MARK = re.compile(r"^# hostname;interval;timestamp;", re.MULTILINE)
STAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?: (UTC))?")


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return one reading of all rows. Skips a last line that is cut off, and the sections that report a restart."""
    columns: list[str] = []
    rows: list[Row] = []
    memory: list[float] = []
    notes: list[Warning_] = []
    clock: Literal["utc", "local"] = "utc"
    one_cpu = False
    for line in lines:
        if not line.strip():
            continue
        words = line.split(";")
        if line.startswith("#"):
            columns = [word.strip("# ") for word in words]
            continue
        if "LINUX-RESTART" in line:
            notes.append(Warning_("restarted", "the machine restarted between two rows"))
            continue
        if lines.cut:
            notes.append(Warning_("cut-off", f"the last line, {lines.number}, is cut off and was skipped"))
            continue
        if len(words) != len(columns):
            raise Bad(
                lines.number,
                f"{len(words)} values for {len(columns)} columns; import only the output of sadf -d",
            )
        named = dict(zip(columns, words, strict=True))
        at, utc = stamp(named["timestamp"], lines.number)
        clock = clock if utc else "local"
        try:
            if "%idle" in named:
                if named.get("CPU", "-1") != "-1":
                    one_cpu = True
                    continue
                parts = dict.fromkeys(("user", "nice", "system", "iowait", "steal", "idle"), 0.0)
                for name, part in (NAMES | ADDED).items():
                    parts[part] += number(named.get(name, "0"))
                if not 98 <= sum(parts.values()) <= 102:
                    raise Bad(lines.number, f"the shares of CPU time add up to {sum(parts.values()):.1f} %, not 100 %")
                rows.append(Row(at, number(named["interval"]), **parts))
            elif "kbmemfree" in named:
                memory.append(number(named["kbmemfree"]) * 1024)
        except ValueError:
            raise Bad(lines.number, f"'{line[:60]}' contains a word instead of a figure") from None
    if not rows and one_cpu:
        raise Bad(lines.number, "there are only rows of single CPUs; run sadf -d with -u and without -P")
    return [reading("sadf", rows, memory, line=1, clock=clock, notes=notes)]


def stamp(text: str, line: int) -> tuple[float, bool]:
    """Return (seconds since 1970, whether in UTC)."""
    if text.isdecimal() and len(text) < 12:
        return float(text), True
    match = STAMP.fullmatch(text)
    if match is None:
        return math.nan, False
    try:
        parts = [int(match[group]) for group in range(1, 7)]
        return datetime.datetime(*parts, tzinfo=datetime.UTC).timestamp(), match[7] is not None  # type: ignore[arg-type,misc]
    except ValueError:
        raise Bad(line, f"'{text}' is not a time") from None
