"""Capability: the server keeps data on disk, so encryption at rest has something to protect."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from ciphercost.engines.capabilities import Capability
from ciphercost.model.constrained_types import CANARY_TABLE


class Spill(msgspec.Struct, frozen=True):
    """Statements that make a server write temporary data, which the disk witness then searches for."""

    name: str
    """What is written: `temporary table`, `sort`, …"""
    statements: tuple[str, ...]
    """Run in this order on one connection, which stays open while the witness searches the files."""
    during: bool = False
    """True: the last statement runs for a while, and the data exists only while it runs."""


class StoresData(Capability):
    """A server with a data directory, a cache in front of it, and temporary files."""

    missing = "stores no data on disk"

    home: str = ""
    """Statement whose last value is the server's data directory (or file); empty: no statement can ask."""
    variables: str = ""
    """Statement that returns every setting in force, for `pairs`; empty: no statement can ask."""
    on_disk: Mapping[str, str] = MappingProxyType({})
    """Settings of both arms with which the server keeps its data on disk as it changes; none: it always does."""
    persistence: str = ""
    """Statement that asks the server how it does that, for `persists`; empty: nothing is to be asked."""
    make_canaries: tuple[str, ...] = (f"CREATE TABLE {CANARY_TABLE} (word varchar(100))",)
    """Statements that make room for canaries."""
    first_canary: str = f"SELECT word FROM {CANARY_TABLE}"
    """Statement that returns the canary as its only row, as long as there is one."""
    no_cache: str = ""
    """Why `--cache` has nothing to resize or to empty; empty: it has. Follows the engine's name in the error; user-visible."""
    unlike: tuple[str, ...] = ()
    """Settings that always differ between two servers (ports, paths, identifiers); comparing the arms skips them.

    fnmatch patterns.
    """
    sizes: str = ""
    """SQL that returns one row: bytes of tables, bytes of indexes; empty: there is none, or an arm has a schema of its own."""
    temporary: tuple[str, ...] = ()
    """Files of temporary data: fnmatch patterns relative to the directory that `initialise` created."""
    direct_by_default: bool = False
    """Whether the server bypasses the page cache by default."""
    statement_logs: str = ""
    """SQL that returns (what, fix, severity): which statements the server logs, the setting that stops it, how bad it
    is.

    `what` and `fix` are user-visible.
    """

    def keep_canary(self, word: str) -> str:
        """Return a statement that stores a word after those that are there. Pure."""
        return f"INSERT INTO {CANARY_TABLE} VALUES ('{word}')"

    def pairs(self, rows: list[list[str | None]]) -> list[tuple[str | None, str | None]]:
        """Return the (name, value) of every setting among the rows of `variables`. Pure."""
        return [(name, value) for name, value in rows]

    def persists(self, rows: list[list[str | None]]) -> tuple[bool, str]:  # noqa: ARG002
        """Judge the rows of `persistence`: (whether it keeps its data on disk as it changes, how). Pure."""
        return True, ""

    def does_direct_io(self, version: str) -> bool:  # noqa: ARG002
        """Whether this version of the server can bypass the page cache (direct I/O) for its data."""
        return False

    def spills(self, word: str) -> tuple[Spill, ...]:  # noqa: ARG002
        """Return ways to make the server write temporary data that contains this word; empty: none is known."""
        return ()

    def cache_settings(self, size: int, *, direct: bool) -> dict[str, str]:  # noqa: ARG002
        """Return settings for a buffer pool of `size` bytes (0: the server's default), with or without direct I/O.

        Raises UsageError if this server's cache size can't be set.
        """
        return {}
