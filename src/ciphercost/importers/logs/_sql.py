"""What a reader of a database server's log yields: statements, and what happened to the connections that sent them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from ciphercost.model.spec import QueryMode

OVERLONG = "\0"
"""Begins what stands for a line that was too long to be read (`importers/log_lines.py`)."""
TOO_LONG = "lines longer than 1 MiB, with the entry that they belong to"
EMPTY = "empty statements"
BEFORE = "lines before the first entry of the log"
LONGEST = 1 << 24
"""Characters of a statement or of an entry in several lines."""
LONG_STATEMENT = f"statements longer than {LONGEST >> 20} MiB"
BANNER = "headings that the server writes when it starts"
NOT_UTF8 = "\N{REPLACEMENT CHARACTER}"
"""Stands in a text for bytes that are no UTF-8."""


class Logged(NamedTuple):
    """A statement that a client sent."""

    session: str
    """Names the connection; the same name may come again after its end."""
    line: int
    """Line of the file at which it begins."""
    sql: str
    at: float = 0.0
    """Seconds since 1970; 0: unknown."""
    sent: QueryMode = "simple"
    """How it traveled."""
    parameters: tuple[str | None, ...] | None = ()
    """Values of `$1`, `$2` …; None: the log does not hold them."""
    seconds: float = 0.0
    """How long the server took; 0: unknown."""
    calls: int = 1
    """How often it ran, in a table of counters."""


class Fact(NamedTuple):
    """What happened to a connection beside its statements."""

    session: str
    line: int
    what: Literal["begin", "end", "failed", "took"]
    """`failed`: its last statement did. `took`: `seconds` are those of its last statement."""
    at: float = 0.0
    seconds: float = 0.0
    sql: str = ""
    """Of `failed`: the statement, if the log tells it here."""


class Ignored(NamedTuple):
    """Lines that hold no statement and count for nothing."""

    line: int
    why: str
    lines: int = 1


Event = Logged | Fact | Ignored


def text(line: bytes) -> str:
    """A line without its end. Bytes that are no UTF-8 become NOT_UTF8."""
    return line.rstrip(b"\r\n").decode("utf-8", "replace")


def numbered(lines: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """The lines without their ends, each with its number from 1 on."""
    for number, line in enumerate(lines, 1):
        yield number, text(line)
