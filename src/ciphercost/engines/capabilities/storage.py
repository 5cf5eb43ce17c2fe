"""storage: servers that keep data on disk, so that encryption at rest has something to protect."""

from __future__ import annotations

import msgspec

from ciphercost.engines.capabilities import Capability


class Spill(msgspec.Struct, frozen=True):
    """How to make a server write temporary data, for the proof to look for."""

    name: str
    """`temporary table`, `sort`, …"""
    statements: tuple[str, ...]
    """Run in this order on a connection of their own, which stays open while the files are searched."""
    during: bool = False
    """The last statement runs for a while, and the data is there only while it does."""


class StoresData(Capability):
    """A server with a data directory, a cache in front of it and temporary files."""

    missing = "keeps nothing"

    home: str = ""
    """SQL that returns the directory (or file) that the server keeps its data in; empty: it can't be asked."""
    variables: str = ""
    """SQL that returns (name, value) of every setting in force; empty: it can't be asked."""
    unlike: tuple[str, ...] = ()
    """Settings that differ between any two servers (ports, paths, identifiers): fnmatch patterns, left out when arms are compared."""
    temporary: tuple[str, ...] = ()
    """Files of temporary data: fnmatch patterns, relative to the directory that `initialise` made."""
    direct_by_default: bool = False
    """Whether it bypasses the page cache unless told otherwise."""
    statement_logs: str = ""
    """SQL that returns (what, fix, severity): what the server logs of the statements it is sent, in words, and the setting that stops it."""

    def does_direct_io(self, version: str) -> bool:  # noqa: ARG002
        """Whether this version of the server can bypass the page cache when it reads and writes data."""
        return False

    def spills(self, word: str) -> tuple[Spill, ...]:  # noqa: ARG002
        """Ways to make the server write temporary data that holds this word. Empty: none is known."""
        return ()

    def cache_settings(self, size: int, *, direct: bool) -> dict[str, str]:  # noqa: ARG002
        """Settings for a buffer pool of `size` bytes (0: the server's own default), with or without direct I/O.

        Raises UsageError where this server's cache can't be sized.
        """
        return {}
