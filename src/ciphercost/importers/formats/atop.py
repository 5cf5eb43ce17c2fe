"""Reads `atop -P CPU,MEM` (or `-P ALL`): parseable lines.

Skips the first sample, which counts from the machine's start. Pure.
"""

from __future__ import annotations

import re

from ciphercost.importers.formats import Bad, Lines, line_of
from ciphercost.importers.formats._host import Row, reading
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

LINE = r"[A-Za-z]{3} \S+ \d{9,11} \d{4}/\d\d/\d\d \d\d:\d\d:\d\d \d+ "
MARK = re.compile(rf"^(?:RESET|SEP|{LINE}.*)$", re.MULTILINE)
SURE = re.compile(rf"^{LINE}", re.MULTILINE)


def recognise(head: str) -> int:
    return line_of(MARK, head) if SURE.search(head) else 0


def read(lines: Lines) -> list[Reading]:
    """Return one reading.

    Fields of CPU: interval, ticks per second, CPUs, then ticks of system, user, nice, idle, wait, irq, softirq, steal.
    """
    rows: list[Row] = []
    memory: list[float] = []
    notes: list[Warning_] = []
    reset, cpus = False, 0
    for line in lines:
        words = line.split()
        if words[:1] == ["RESET"]:
            reset = True
        elif words[:1] == ["SEP"]:
            reset = False
        elif words[:1] in (["CPU"], ["MEM"]):
            if lines.cut:
                notes.append(Warning_("cut-off", f"the last line, {lines.number}, is cut off and was skipped"))
                continue
            if reset:
                continue
            try:
                values = [int(word) for word in words[5:17]]
                at = float(words[2])
            except (ValueError, IndexError):
                raise Bad(lines.number, f"'{line[:60]}' is not a line of atop -P") from None
            if len(values) < (11 if words[0] == "CPU" else 4) or not values[0]:
                raise Bad(lines.number, f"'{line[:60]}' has fewer figures than atop -P {words[0]} prints")
            if words[0] == "MEM":
                memory.append(float(values[1] * values[3]))
                continue
            interval, _, cpus, system, user, nice, idle, wait, irq, soft, steal = values[:11]
            whole = system + user + nice + idle + wait + irq + soft + steal
            if whole <= 0:
                raise Bad(lines.number, "no CPU time passed in this sample")
            shares = [100 * ticks / whole for ticks in (user, nice, system + irq + soft, wait, steal, idle)]
            rows.append(Row(at, float(interval), *shares))
    if not rows:
        raise Bad(lines.number, "there is only the first sample, which counts from the machine's start; run atop -P CPU,MEM "
                  "for at least two intervals")  # fmt: skip
    return [reading("atop", rows, memory, line=1, cpus=cpus, clock="utc", notes=notes)]
