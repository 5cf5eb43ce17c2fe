"""Reads the screens that atop prints to a file (`atop 1 60 > FILE`), whole or only their CPU and MEM lines, as `grep` leaves them.

Skips the sample since the machine's start: the first one, unless a screen's head says otherwise. Pure.
"""

from __future__ import annotations

import datetime
import math
import re
from typing import Literal

from ciphercost.importers.formats import Bad, Lines, Nothing, line_of
from ciphercost.importers.formats._host import Row, mean, reading
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

TOOL = "atop"
HEAD = re.compile(
    r"ATOP - (?P<host>.*?)\s+(?P<at>\d{4}/\d\d/\d\d\s+\d\d:\d\d:\d\d)\s.*?(?P<elapsed>(?:\d+[dhms])+) elapsed"
)
"""The line above each sample. atop counts its seconds in days, hours, minutes and seconds, as in `1h17m48s`."""
MARK = re.compile(rf"^(?:{HEAD.pattern}|CPU \| sys +\d+% \|.*|MEM \| tot +\S+ \|.*)$", re.MULTILINE)
SINCE_BOOT = "*** System and Process Activity since Boot ***"
UNITS = {"B": 1.0, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40}
SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
SHARES = ("sys", "user", "irq", "idle", "wait")
ROUNDING = 3.0
"""Percentage points by which the sum of rounded shares may miss a multiple of 100. A sum that misses it by more lacks `steal`, for which a
screen of 80 columns has no room."""


class Sample:
    """What one screen shows."""

    def __init__(self, at: float = math.nan, seconds: float = 0.0) -> None:
        self.at, self.seconds, self.boot = at, seconds, False
        self.shares: dict[str, float] = {}
        self.free: float | None = None


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return one reading. A file of MEM lines alone gives the memory's level and no CPU."""
    samples, at = _samples(lines)
    notes = []
    headed = len(samples) > 1 and math.isfinite(samples[0].at)
    first = 0 if headed and not samples[0].boot and samples[0].seconds <= 2 * samples[1].seconds else 1
    if len(samples) <= first:
        raise Nothing(
            at,
            "there is only the first sample, which counts from the machine's start; run atop for at least two intervals",
        )
    if first and not headed:
        text = "these lines don't show how long each sample took; atop's first one counts from the machine's start, so it was skipped"
        notes.append(Warning_("since-boot", text))
    kept = samples[first:]
    rows: list[Row] = []
    memory = [sample.free for sample in kept if sample.free is not None]
    cpus = max(
        (math.ceil((sum(sample.shares.values()) - ROUNDING) / 100) for sample in samples if sample.shares), default=0
    )
    most_hidden = 0.0
    for sample in kept:
        if not sample.shares:
            continue
        shown = sum(sample.shares.values())
        hidden = 100 * cpus - shown
        if hidden <= ROUNDING:
            hidden = 0.0
        most_hidden = max(most_hidden, hidden)
        user, system = sample.shares["user"], sample.shares["sys"] + sample.shares["irq"]
        steal = sample.shares.get("steal", 0.0) + hidden
        parts = (user, 0.0, system, sample.shares["wait"], steal, sample.shares["idle"])
        rows.append(Row(sample.at, sample.seconds, *(100 * part / (shown + hidden) for part in parts)))
    if most_hidden:
        least = f"{100 * cpus - most_hidden:.0f} % of {100 * cpus} %"
        text = f"the shares on atop's screen add up to as little as {least}; the rest counts as steal, which narrow screens hide"
        notes.append(Warning_("hidden-steal", text))
    if rows:
        clock: Literal["", "local"] = "local" if any(math.isfinite(row.at) for row in rows) else ""
        return [reading(TOOL, rows, memory, line=1, cpus=cpus, clock=clock, may_average=False, notes=notes)]
    figures = {"memory_free_bytes": mean(memory)}
    return [Reading(tool=TOOL, line=1, kind="cpu", engine="machine", workload="memory", figures=figures, notes=notes)]


def _samples(lines: Lines) -> tuple[list[Sample], int]:
    """Return the samples of a text, and its last line's number. A sample begins with its head, else with a line that it has already."""
    samples: list[Sample] = []
    headed = False
    for line in lines:
        if match := HEAD.fullmatch(line.strip()):
            headed = True
            samples.append(Sample(_seconds_since_1970(match["at"], lines.number), float(_elapsed(match["elapsed"]))))
        elif SINCE_BOOT in line and samples:
            samples[-1].boot = True
        elif line.startswith("CPU |"):
            if not samples or (samples[-1].shares and not headed):
                samples.append(Sample())
            if lines.cut and not line.rstrip().endswith("|"):
                samples.pop()
                break
            samples[-1].shares = _shares(line, lines.number)
        elif line.startswith("MEM |") and (free := _fields(line).get("free")):
            if not samples or (samples[-1].free is not None and not headed):
                samples.append(Sample())
            samples[-1].free = _bytes(free, lines.number)
    if headed and samples and not samples[-1].shares and samples[-1].free is None:
        samples.pop()
    return samples, lines.number


def _fields(line: str) -> dict[str, str]:
    """Return the values of a line such as `CPU | sys 7% | user 20% |` by their names."""
    pairs = (part.split() for part in line.split("|")[1:])
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def _shares(line: str, number: int) -> dict[str, float]:
    fields = _fields(line)
    shares = {name: fields[name] for name in (*SHARES, "steal") if name in fields}
    if missing := [name for name in SHARES if name not in shares]:
        raise Bad(number, f"'{line[:60]}' lacks {', '.join(missing)}; is the line complete?")
    if not all(re.fullmatch(r"\d{1,6}%", text) for text in shares.values()):
        raise Bad(number, f"'{line[:60]}' is not a CPU line of atop")
    values = {name: float(text[:-1]) for name, text in shares.items()}
    if sum(values.values()) <= ROUNDING:
        raise Bad(number, f"no CPU time passed in the sample '{line[:60]}'")
    return values


def _bytes(text: str, number: int) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([BKMGT])", text)
    if match is None:
        raise Bad(number, f"'{text[:20]}' is not an amount of memory as atop prints it")
    return float(match[1]) * UNITS[match[2]]


def _elapsed(text: str) -> int:
    return sum(int(count) * SECONDS[unit] for count, unit in re.findall(r"(\d+)([dhms])", text))


def _seconds_since_1970(text: str, number: int) -> float:
    try:
        at = datetime.datetime.strptime(" ".join(text.split()), "%Y/%m/%d %H:%M:%S")
    except ValueError:
        raise Bad(number, f"'{text}' is not a time") from None
    return at.replace(tzinfo=datetime.UTC).timestamp()
