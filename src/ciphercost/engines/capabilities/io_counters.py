"""Capability: the server counts what it reads from its files and writes to them, by kind of file."""

from __future__ import annotations

from ciphercost.engines.capabilities import Capability


class CountsIo(Capability):
    """A server whose own counters tell how many bytes passed between its cache and its files.

    What the disk reads and writes is something else: a page from the kernel's page cache is decrypted too, and copies of a page that
    are written to several files are encrypted once.
    """

    missing = "does not count the bytes that it reads and writes"

    io_counters: str
    """SQL that returns (kind of file, bytes read, bytes written) since the start, a row for each kind. Mechanisms name the kinds."""
    counts_by_connection: bool = False
    """Whether each connection has counters of its own."""
