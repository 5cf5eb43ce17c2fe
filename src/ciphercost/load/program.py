"""program: What an agent is given to do: statements, weights, and what fills an arm's tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from ciphercost.load import script
from ciphercost.load.codec import PLAIN, Codec
from ciphercost.model.slices import Arrivals

BATCH = 100_000
"""Rows that one statement of a load makes on the server: one transaction of 5,000,000 would fill logs and memory of some."""
_BATCHED = re.compile(r":first\b")
_EACH = re.compile(r":row\b")
TOGETHER = 256 * 1024
"""Characters of statements for one row each that are sent together, unless a single one is longer."""


class Step(NamedTuple):
    """One statement of a load, and what to call it where it fails (the statement itself, or the lines of a file)."""

    sql: str
    where: str


class Load:
    """The statements of a load, made anew each time they are gone through: of millions of rows a batch at a time is held."""

    def __init__(
        self, text: str, parameters: Mapping[str, int | str], where: str, more: Callable[[], Iterable[str]] = tuple
    ) -> None:
        """`more`: makes the statements that follow those of `text`. Raises UsageError for a name that is no parameter."""
        self._parts = [part for each in text.split(";\n") if (part := each.strip())]
        self._parameters = parameters
        self._where = where
        self._more = more
        for part in self._parts:
            self._fill(part, 1)

    def __iter__(self) -> Iterator[Step]:
        for part in self._parts:
            if _EACH.search(part):
                yield from self._row_by_row(part)
                continue
            rows = int(self._parameters.get("rows", 0)) if _BATCHED.search(part) else 1
            for first in range(1, rows + 1, BATCH):
                sql = self._fill(part, first)
                yield Step(sql, sql)
        for sql in self._more():
            yield Step(sql, sql)

    def _row_by_row(self, part: str) -> Iterator[Step]:
        """A statement for each row, as many together as TOGETHER allows."""
        rows = int(self._parameters.get("rows", 0))
        held: list[str] = []
        length = 0
        for row in range(1, rows + 1):
            held.append(self._fill(part, row))
            length += len(held[-1])
            if length > TOGETHER or row == rows:
                yield Step(";\n".join(held), held[0])
                held, length = [], 0

    def _fill(self, part: str, first: int) -> str:
        last = min(first + BATCH - 1, int(self._parameters.get("rows", 0)))
        known: dict[str, int | str] = dict(self._parameters)
        if _BATCHED.search(part):
            known |= {"first": first, "last": last}
        if _EACH.search(part):
            known |= {"row": first, "filler": "x" * int(self._parameters.get("size", 0))}
        return script.fill(part, known, self._where)


class Tables(msgspec.Struct, frozen=True):
    """What fills an arm's tables, and what reads them."""

    load: Iterable[Step]
    """Can be gone through more than once, and may be too long to hold."""
    check: str
    codec: Codec = PLAIN
    """By which the rows that `check` gives are read, where the application itself opens them."""

    def read(self, rows: list[list[str | None]]) -> list[list[str | None]]:
        """The check's rows as texts. Raises AgentError where a sealed value does not open."""
        return [[self.codec.read(value) for value in row] for row in rows]


class Program(msgspec.Struct, frozen=True):
    """A workload made ready for one server: nothing is left to look up."""

    name: str
    load: Iterable[Step]
    """Can be gone through more than once, and may be too long to hold."""
    check: str
    transactions: tuple[tuple[str, int, script.Script], ...]
    read_only: bool
    per_request: bool
    clients: int
    parameters: dict[str, int | str]
    sealed: Tables | None = None
    """The encrypted arm's, where its secrets are encrypted in its statements; None: both arms' are the same."""
    documents: dict[str, int] = {}
    """Of a web server: bytes of each path."""
    key: str = ""
    """Hexadecimal digits: what the agent seals and opens with. For the agent alone; in no record."""
    arrivals: Arrivals = "even"
    """When the requests of an open loop are due."""
    think_s: float = 0.0
    """Seconds that an operation thinks in an open loop, on average."""
    loop: bool = False
    """What an operation is to server and wire is counted, whoever the client is."""

    def tables(self, arm: str) -> Tables:
        """What fills and reads this arm's tables."""
        return self.sealed if self.sealed and arm == "encrypted" else Tables(self.load, self.check)
