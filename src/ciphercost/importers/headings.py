"""Finds the arm and the rate stated in lines above a run that the tool did not print. Pure."""

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
"""Lines printed by the tools that contain TLS words but state no arm, or that are read elsewhere."""
MAY_TELL = re.compile(r"plain|clear|enc|tls|ssl|tde|http|cipher|luks|fscrypt|secure|baseline|crypt", re.IGNORECASE)
VERSION_LINE = re.compile(r"\s*(?:pgbench \(|(?:pgbench|sysbench) \d)")
COMMAND = re.compile(r"(?:^|[\s/;&|=])(?:wrk2?|pgbench|sysbench|h2load)\s.*")
RATE = re.compile(r"\s(?:-R\s*|--rate[ =]|--rps[ =])(\d[\d.]*[kKmM]?)\b")
"""The rate option on a command line of wrk2, pgbench, sysbench or h2load."""
LONGEST_HEADING = 300


class Heading(NamedTuple):
    """A line above a run that no tool printed: a shell's echo, or a title."""

    line: int
    text: str
    arm: Arm | None
    """The arm that the line states."""
    rate: str | None
    """The rate that a command sets, or empty. None: the line is not a command."""


def heading(line: str, number: int) -> Heading | None:
    """Return what a line that no tool printed says about the runs below it; None: nothing. Pure."""
    if len(line) > LONGEST_HEADING:
        return None
    # `pgbench (16.2)` and `sysbench 1.0.20` are the tools' own first lines, not commands.
    command = None if VERSION_LINE.match(line) else COMMAND.search(line)
    rate = (match[1] if (match := RATE.search(line)) else "") if command else None
    arm = arm_in(line) if MAY_TELL.search(line) and not (OWN_LINE.fullmatch(line.rstrip()) and not command) else None
    return Heading(number, line.strip(), arm, rate) if arm or command else None


def under_headings(readings: list[Reading], headings: list[Heading]) -> None:
    """Apply the lines above each run: a rate that was set and, in a file with both arms, the arm. Changes the readings.

    Raises Bad if a file states both arms but not the arm of each run.
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
            text = f"its file has runs of both arms (line {other.line} says {other.arm}), but nothing above this run states its arm"
            raise Bad(reading.line, f"{text}; put each arm into its own file")
        if both:
            reading.names = [told[-1].text]
