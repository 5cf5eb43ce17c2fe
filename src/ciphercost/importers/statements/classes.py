"""Operations that are alike, counted, each with some samples to replay. Pure.

Two operations are alike if their statements have the same shapes in the same order; a shape that repeats at once counts once, so that a
loop of three and a loop of five are alike.
"""

from __future__ import annotations

import random
import zlib
from itertools import groupby

import msgspec

from ciphercost.importers.quantised import Histogram
from ciphercost.importers.statements.transactions import Operation
from ciphercost.model.spec import QueryMode

SAMPLES = 24
"""Operations of a class that are kept at most, each with the same chance."""
MOST_CLASSES = 5000
"""Classes that are counted; what else comes is left out."""
TOO_MANY = f"beyond the first {MOST_CLASSES:,} kinds of operations"


class Written(msgspec.Struct, frozen=True):
    """A statement to replay."""

    sql: str
    parameters: tuple[str | None, ...] = ()


class Class(msgspec.Struct):
    """Operations that are alike."""

    shapes: tuple[str, ...]
    count: int = 0
    statements: int = 0
    """Statements of all of them."""
    writes: bool = False
    times: Histogram = msgspec.field(default_factory=lambda: Histogram(1e-6))
    """Seconds that the server took, if logged."""
    sent: dict[QueryMode, int] = {}
    """How often each way of sending was used."""
    samples: list[tuple[Written, ...]] = []
    file: str = ""
    line: int = 0
    """Where the first of them begins."""

    @property
    def verb(self) -> str:
        """The word that says best what they do: that of the first statement which is no BEGIN."""
        words = [shape.lstrip("( ").partition(" ")[0].partition("(")[0] for shape in self.shapes]
        telling = [
            word
            for word in words
            if word not in ("begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release")
        ]
        return (telling or words)[0].upper()


class Classes:
    """Counts operations by class."""

    def __init__(self) -> None:
        self._by_shapes: dict[tuple[str, ...], Class] = {}
        self._draws: dict[tuple[str, ...], random.Random] = {}

    def add(self, operation: Operation, file: str) -> bool:
        """Count an operation. False: there are too many classes for a new one."""
        steps = operation.steps
        shapes = (
            (steps[0].shape,) if len(steps) == 1 else tuple(shape for shape, _ in groupby(step.shape for step in steps))
        )
        found = self._by_shapes.get(shapes)
        if found is None:
            if len(self._by_shapes) >= MOST_CLASSES:
                return False
            writes = any(step.sort == "write" for step in steps)
            found = self._by_shapes[shapes] = Class(shapes, writes=writes, file=file, line=operation.at.line)
            # The seed depends on nothing but the class, so the same log gives the same samples.
            self._draws[shapes] = random.Random(zlib.crc32("\n".join(shapes).encode()))  # noqa: S311 - nothing secret
        calls = operation.at.calls if len(steps) == 1 else 1
        found.count += calls
        found.statements += sum(step.logged.calls for step in steps)
        if (seconds := operation.seconds) > 0:
            found.times.add(seconds, calls)
        sent = steps[-1].logged.sent if len(steps) < 2 else steps[1].logged.sent
        found.sent[sent] = found.sent.get(sent, 0) + calls
        place = len(found.samples) if len(found.samples) < SAMPLES else self._draws[shapes].randrange(found.count)
        if place < SAMPLES:
            written = tuple(Written(step.logged.sql, step.logged.parameters or ()) for step in steps)
            found.samples[place : place + 1] = [written]
        return True

    def ordered(self) -> list[Class]:
        """All classes, the most frequent first."""
        return sorted(self._by_shapes.values(), key=lambda each: (-each.count, each.shapes))
