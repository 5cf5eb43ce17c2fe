"""Capability: the server keeps data on disk, so encryption at rest has something to protect."""

from __future__ import annotations

import msgspec

from ciphercost.engines.capabilities import Capability


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
    """SQL that returns the server's data directory (or file); empty: SQL can't ask."""
    variables: str = ""
    """SQL that returns (name, value) of every setting in force; empty: SQL can't ask."""
    unlike: tuple[str, ...] = ()
    """Settings that always differ between two servers (ports, paths, identifiers); comparing the arms skips them.

    fnmatch patterns.
    """
    temporary: tuple[str, ...] = ()
    """Files of temporary data: fnmatch patterns relative to the directory that `initialise` created."""
    direct_by_default: bool = False
    """Whether the server bypasses the page cache by default."""
    statement_logs: str = ""
    """SQL that returns (what, fix, severity): which statements the server logs, the setting that stops it, how bad it
    is.

    `what` and `fix` are user-visible.
    """

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
