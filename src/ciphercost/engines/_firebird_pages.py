"""Counts the bytes that user tables and their indexes occupy in a Firebird database file. Not an engine.

The server reports neither figure, and the file grows in larger steps than its tables. But every page states its type
and its table (On-Disk Structure 13, ods.h), so this counts the data and index pages of tables that are not the server's
own.
"""

from __future__ import annotations

import struct
from pathlib import Path

DATA, INDEX = 5, 7
"""Page types: the first byte of a page."""
PAGE_SIZE_AT, RELATION_AT = 16, {DATA: 20, INDEX: 28}
"""Offsets of two-byte numbers: the page size in the first page, and the table's number in other pages, by type."""
FIRST_OF_USERS = 128
"""Number of the first user table; lower numbers are the server's own tables."""


def sizes(file: Path) -> tuple[int, int]:
    """Return (bytes of tables, bytes of indexes). Raises OSError."""
    with file.open("rb") as opened:
        (size,) = struct.unpack_from("<H", opened.read(PAGE_SIZE_AT + 2), PAGE_SIZE_AT)
        opened.seek(0)
        pages = {DATA: 0, INDEX: 0}
        while len(page := opened.read(size)) == size > 0:
            kind = page[0]
            if kind in pages and struct.unpack_from("<H", page, RELATION_AT[kind])[0] >= FIRST_OF_USERS:
                pages[kind] += 1
    return pages[DATA] * size, pages[INDEX] * size
