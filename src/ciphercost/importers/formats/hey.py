"""Reads hey's summary. hey prints neither its address nor its options, so arm and rate come from elsewhere. Pure."""

from __future__ import annotations

import re

from ciphercost.importers.formats import Lines, _hey, line_of
from ciphercost.importers.formats._whole import rows
from ciphercost.model.imported import Reading

MARK = re.compile(
    r"^[^\S\n]*(?:Summary:\s*\n\s*Total:\s+[\d.]+ secs\s*$|(?:req write|resp wait|resp read):\s+[\d.]+ secs, )",
    re.MULTILINE,
)
"""oha prints the other lines too."""
OWN = _hey.OWN


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per run. A run begins with `Summary:`."""
    return _hey.runs("hey", rows(lines, "hey"))
