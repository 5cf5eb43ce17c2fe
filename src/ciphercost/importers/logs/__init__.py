"""Formats of servers' logs, one module per format. The content of a file determines its format.

Each module has `KIND` (`web` or `sql`), `recognise(head)`: how many of the first lines (bytes, without their ends) are of this format, and
`read(lines, head)`: a generator over lines. A web format yields a `Request` for each line, or the reason why the line counts for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ciphercost.model.registry import Registry
from ciphercost.model.traffic import Kind


class Format(NamedTuple):
    """One format."""

    name: str
    kind: Kind
    recognise: Callable[[Sequence[bytes]], int]
    """How many of these lines have this format."""
    read: Callable[[Iterable[bytes], Sequence[bytes]], Iterator[Any]]
    """Yields what each line says. The second argument: the first lines, which show the optional fields."""


REGISTRY = Registry(__name__, "unknown log format '{}': {}", beside=())


def names() -> list[str]:
    """Names of all formats."""
    return REGISTRY.names()


def get(name: str) -> Format:
    """Raises UsageError with the nearest name."""
    module = REGISTRY.get(name)
    return Format(name, module.KIND, module.recognise, module.read)
