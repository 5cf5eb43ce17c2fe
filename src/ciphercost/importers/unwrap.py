"""Removes what a terminal, a mail or a log added to a tool's lines: colours, overwritten progress, indentation, quote
marks, time stamps, names of containers. Pure.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ciphercost.importers import formats

COLOUR = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""Control sequences of a terminal."""
LONGEST_PREFIX = 120
SEARCHED_LINES = 400
LEAST_SHARE = 0.5
"""Share of the lines, from the first one with the prefix on, that must begin with it."""
NAMES = (
    r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)",
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)",
    r"(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|trace|debug|info|notice|warn|warning|error)",
    r"(?:stdout|stderr|STDOUT|STDERR)",
    r"(?:AM|PM)",
)
"""Words of a prefix that differ from line to line."""


class Wrapping(NamedTuple):
    """What precedes each line of a tool's output in a file."""

    prefix: re.Pattern[str] | None = None

    def off(self, line: str) -> str:
        """Return the line as the tool printed it, without indentation. Its end, if any, is a line feed."""
        end = "\n" if line.endswith("\n") else ""
        text = without_colours(line.rstrip("\r\n"))
        text = text.rpartition("\r")[2].strip(" \t\xa0\ufeff")
        if self.prefix and (match := self.prefix.match(text)):
            text = text[match.end() :].strip(" \t\xa0")
        return text + end


def without_colours(line: str) -> str:
    return COLOUR.sub("", line) if "\x1b" in line else line


def wrapping(head: str) -> Wrapping:
    """Return what precedes the lines of a text: nothing if a tool's mark begins one of its lines, else what precedes a
    mark, if most lines begin like that.
    """
    bare = Wrapping()
    all_lines = [bare.off(line) for line in head.split("\n")[:SEARCHED_LINES]]
    if formats.recognised("\n".join(all_lines)):
        return bare
    lines = [line for line in all_lines if line]
    marks = formats.marks()
    for at, line in enumerate(lines):
        for cut in re.finditer(r"(?<=[\s>|:\]])(?=[^\s>|:])", line[:LONGEST_PREFIX]):
            if not any(mark.match(line[cut.start() :]) for mark in marks):
                continue
            prefix = re.compile(alike(line[: cut.start()]))
            if sum(1 for text in lines[at:] if prefix.match(text)) >= max(2, LEAST_SHARE * len(lines[at:])):
                return Wrapping(prefix)
    return bare


def alike(prefix: str) -> str:
    """Return a pattern for prefixes that differ only in numbers, dates and log levels."""
    pattern = ""
    for part in re.findall(r"[.,]\d+|\d+|[^\W\d_]+|\s+|.", prefix):
        if part.isspace():
            pattern += r"\s*"
        elif part.isdigit():
            pattern += r"\d+"
        elif part[0] in ".," and part[1:].isdigit():
            pattern += r"(?:[.,]\d+)?"
        else:
            pattern += next((names for names in NAMES if re.fullmatch(names, part)), re.escape(part))
    return pattern
