"""Formats of servers' logs, one module per format. The content of a file determines its format.

Each module has `KIND` (`web` or `sql`), `recognise(head)`: how many of the first lines are of this format, and `read(lines, head, zones)`: a
generator that yields exactly one item for each line, in order: what the line says, or a text that says why it counts for nothing.
Lines are bytes without their ends. Of a web log an item is a `Request`; of a SQL log it is whatever its own collector takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ciphercost.model.registry import Registry
from ciphercost.model.traffic import Kind


class More(NamedTuple):
    """What only some logs say of a request."""

    seconds: float = -1.0
    """Time that the server took; below 0: not logged."""
    bytes_in: int = -1
    """Bytes of the request; below 0: not logged."""
    connection: bytes = b""
    """Number of its connection; empty: not logged."""
    nth: int = 0
    """Which request of its connection it is, from 1; 0: not logged."""
    tls: bytes | None = None
    """Protocol of TLS, empty or `-` where it was not encrypted. None: not logged."""
    resumed: bool | None = None
    """Whether its connection resumed a session. None: not logged."""


Request = tuple[int, bytes, bytes, bytes, bytes, bytes, bytes, More | None]
"""Seconds since 1970, client's address, method, path with query, status, bytes of the answer (`-`: none), protocol, and what only some logs say.

A plain tuple: naming its fields would take longer than all else that is done with a line.
"""


class Format(NamedTuple):
    """One format."""

    name: str
    kind: Kind
    recognise: Callable[[Sequence[bytes]], int]
    """How many of these lines have this format."""
    read: Callable[[Iterable[bytes], Sequence[bytes], set[str]], Iterator[Any]]
    """Yields what each line says. Its arguments: the lines; the first ones, which show the optional fields; a set that gets the time zones seen
    (`+0200`; empty: none is written).
    """
    dialect: Callable[[Sequence[bytes]], str] = lambda _: ""
    """Whose SQL the statements of a log are, by its first lines; empty: it is a web log."""


REGISTRY = Registry(__name__, "unknown log format '{}': {}")


def names() -> list[str]:
    """Names of all formats."""
    return REGISTRY.names()


def get(name: str) -> Format:
    """Raises UsageError with the nearest name."""
    module = REGISTRY.get(name)
    dialect = getattr(module, "dialect", lambda _: getattr(module, "DIALECT", ""))
    return Format(name, module.KIND, module.recognise, module.read, dialect)
