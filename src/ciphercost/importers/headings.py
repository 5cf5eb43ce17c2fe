"""Finds what lines above a run that the tool did not print say of it: arm, rate, warm-up. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import NamedTuple

from ciphercost.importers.arm_words import arm_in
from ciphercost.importers.formats import Bad, set_rate
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_
from ciphercost.model.spec import Arm

OWN_LINE = re.compile(
    r"\s*(?:Running .* test @|progress: |transaction type|SQL script|TLS Protocol|Cipher|Server Temp Key|Application protocol|pgbench"
    r"|This is ApacheBench|Copyright |Licensed to |Benchmarking |SSL/TLS Protocol:|TLS Server Name:|Document )"
    r"(?!.*\bPGSSLMODE=).*",
    re.IGNORECASE,
)
"""Lines printed by the tools that contain TLS words but state no arm, or that are read elsewhere."""
MAY_TELL = re.compile(r"plain|clear|enc|tls|ssl|tde|http|cipher|luks|fscrypt|secure|baseline|crypt", re.IGNORECASE)
VERSION_LINE = re.compile(r"\s*(?:pgbench \(|(?:pgbench|sysbench) \d)")
COMMAND = re.compile(
    r"(?:^|[\s/;&|=])(?:wrk2?|pgbench|sysbench|h2load|hey|oha|k6|autocannon|memtier_benchmark|(?:redis|valkey)-benchmark|ycsb(?:\.sh)?"
    r"|fio|cassandra-stress|kafka-producer-perf-test(?:\.sh)?)\s.*"
)
RATE = re.compile(
    r"\s(?:-R\s*|--rate[ =]|--rps[ =]|--throughput[ =]|--overallRate[ =]|--rate-limiting[ =]|--?rate_iops[ =]|-target\s+|throttle=|fixed=)(\d[\d.]*[kKmM]?)"
    r"(?:/s)?\b"
    r"|(?<![\w-])(?:hey|oha)\s.*?\s-q\s*(\d[\d.]*)\b"
)
"""The rate option on a command line of these tools. In others `-q` means quiet."""
LONGEST_HEADING = 300
WARM_UP = re.compile(
    r"(?<!after[-_ ])(?<!without[-_ ])(?<!no[-_ ])(?<![a-z])(?:warm(?:ing)?[-_ ]?up|primer|priming)(?![a-z])",
    re.IGNORECASE,
)
"""Words of a script that say that the next run is none to count, such as TechEmpower's `Running Primer json`."""
TOOLS_WARM_UP = re.compile(
    r"spawning thread #\d+|Warm-up (?:started|phase is over)|Warming up for \d|Thread calibration|.*--warm-?up",
    re.IGNORECASE,
)
"""Lines that tools print, or options, about a warm-up that is not in their figures."""
SLAPS_TITLE = "Benchmark"
COUNTS = re.compile(r"\b(?:measur\w+|benchmark\w*|actual|concurrency|queries|real run)\b", re.IGNORECASE)
"""Words of a line between a warm-up without output and a run that counts."""


class Heading(NamedTuple):
    """A line above a run that no tool printed: a shell's echo, or a title."""

    line: int
    text: str
    arm: Arm | None
    """The arm that the line states."""
    rate: str | None
    """The rate that a command sets, or empty. None: the line is not a command."""
    warm_up: bool | None = None
    """Whether the line calls the next run a warm-up (True), or one that counts (False). None: it says neither."""


def heading(line: str, number: int, own: re.Pattern[str] | None = None) -> Heading | None:
    """Return what a line that no tool printed says about the runs below it; None: nothing. Pure.

    `own`: lines that the file's tool prints.
    """
    if len(line) > LONGEST_HEADING or (own and own.fullmatch(line.strip())):
        return None
    # `pgbench (16.2)` and `sysbench 1.0.20` are the tools' own first lines, not commands.
    command = None if VERSION_LINE.match(line) else COMMAND.search(line)
    rate = (match[1] or match[2] if (match := RATE.search(line)) else "") if command else None
    printed_by_tool = OWN_LINE.fullmatch(line.rstrip()) and not command
    arm = arm_in(line) if MAY_TELL.search(line) and not printed_by_tool else None
    warm_up = None
    if not (command or printed_by_tool or TOOLS_WARM_UP.match(line) or line.strip() == SLAPS_TITLE):
        warm_up = True if WARM_UP.search(line) else False if COUNTS.search(line) else None
    return Heading(number, line.strip(), arm, rate, warm_up) if arm or command or warm_up is not None else None


def measured(readings: list[Reading], headings: list[Heading]) -> list[Reading]:
    """Return the runs without those that a line above calls a warm-up, with a note on them. Raises Bad if none is left."""
    kept: list[Reading] = []
    left: list[Reading] = []
    about_warm_up = [heading for heading in headings if heading.warm_up is not None]
    lines_about_it = [heading.line for heading in about_warm_up]
    begins = [0, *(reading.line for reading in readings)]
    for after, reading in zip(begins, readings, strict=False):
        at = bisect_left(lines_about_it, reading.line) - 1
        warm_up = at >= 0 and lines_about_it[at] > after and about_warm_up[at].warm_up
        (left if warm_up else kept).append(reading)
    if not left:
        return readings
    lines = ", ".join(str(reading.line) for reading in left[:5]) + (" …" if len(left) > 5 else "")
    runs = f"{len(left)} run{'s' * (len(left) > 1)}"
    if not kept:
        raise Bad(
            left[0].line,
            f"the lines above call every run a warm-up ({runs}), so there is no result; if they are results, remove these lines",
        )
    which = f"that begins on line {lines} was" if len(left) == 1 else f"that begin on lines {lines} were"
    text = f"{runs} {which} left out, because the lines above say warm-up or primer"
    kept[0].notes.append(Warning_("warm-up", text))
    return kept


def under_headings(readings: list[Reading], headings: list[Heading]) -> None:
    """Apply the lines above each run: a rate that was set and, in a file with both arms, the arm. Changes the readings.

    Raises Bad if a file states both arms but not the arm of each run.
    """
    arms = [heading for heading in headings if heading.arm]
    commands = [heading for heading in headings if heading.rate is not None]
    lines_of_arms, lines_of_commands = ([heading.line for heading in found] for found in (arms, commands))
    both = len({heading.arm for heading in arms}) == 2
    for reading in readings:
        above = bisect_left(lines_of_commands, reading.line)
        if above and commands[above - 1].rate not in ("", "0"):
            set_rate(reading, str(commands[above - 1].rate))
        above = bisect_left(lines_of_arms, reading.line)
        if both and not above:
            text = f"its file has runs of both arms (line {arms[0].line} says {arms[0].arm}), but nothing above this run states its arm"
            raise Bad(reading.line, f"{text}; put each arm into its own file")
        if both:
            reading.names = [arms[above - 1].text]
