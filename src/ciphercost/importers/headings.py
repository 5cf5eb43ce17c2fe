"""headings: the lines above a run that are not the tool's own -> the arm and the rate that they state. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from ciphercost.importers.arm_words import arm_in
from ciphercost.importers.formats import Bad, set_rate
from ciphercost.model.imported import Reading
from ciphercost.model.spec import Arm

OWN_LINE = re.compile(
    r"\s*(?:Running .* test @|progress: |transaction type|SQL script|TLS Protocol|Cipher|Server Temp Key|Application protocol|pgbench)"
    r"(?!.*\bPGSSLMODE=).*",
    re.IGNORECASE,
)
"""Lines of a tool's own, with words of TLS in them that tell of no arm, or are read elsewhere."""
MAY_TELL = re.compile(r"plain|clear|enc|tls|ssl|tde|http|cipher|luks|fscrypt|secure|baseline|crypt", re.IGNORECASE)
VERSION_LINE = re.compile(r"\s*(?:pgbench \(|(?:pgbench|sysbench) \d)")
COMMAND = re.compile(r"(?:^|[\s/;&|=])(?:wrk2?|pgbench|sysbench|h2load)\s.*")
RATE = re.compile(r"\s(?:-R\s*|--rate[ =]|--rps[ =])(\d[\d.]*[kKmM]?)\b")
"""On the command line of wrk2, pgbench, sysbench or h2load."""
LONGEST_HEADING = 300


class Heading(NamedTuple):
    """A line above a run that is no tool's own: a shell's echo, or a title."""

    line: int
    text: str
    arm: Arm | None
    """That it tells of."""
    rate: str | None
    """Of a command: the rate that it sets, or empty. None: no command."""


def heading(line: str, number: int) -> Heading | None:
    """What a line that is no tool's own tells of the runs below it; None: nothing. Pure."""
    if len(line) > LONGEST_HEADING:
        return None
    # `pgbench (16.2)` and `sysbench 1.0.20` are the tools' own first lines, and no commands.
    command = None if VERSION_LINE.match(line) else COMMAND.search(line)
    rate = (match[1] if (match := RATE.search(line)) else "") if command else None
    arm = arm_in(line) if MAY_TELL.search(line) and not (OWN_LINE.fullmatch(line.rstrip()) and not command) else None
    return Heading(number, line.strip(), arm, rate) if arm or command else None


def under_headings(readings: list[Reading], headings: list[Heading]) -> None:
    """Give each run what the lines above it tell: a rate that was set, and, in a file of both arms, its arm. Changes the readings.

    Raises Bad where a file tells of both arms, and not of each of its runs.
    """
    both = len({each.arm for each in headings if each.arm}) == 2
    for reading in readings:
        above = [each for each in headings if each.line < reading.line]
        commands = [each for each in above if each.rate is not None]
        if commands and commands[-1].rate not in ("", "0", None):
            set_rate(reading, str(commands[-1].rate))
        told = [each for each in above if each.arm]
        if both and not told:
            other = next(each for each in headings if each.arm)
            text = f"its file has runs of both arms (line {other.line} tells of {other.arm}), and nothing above this one tells of its arm"
            raise Bad(reading.line, f"{text}: give each arm a file of its own")
        if both:
            reading.names = [told[-1].text]
