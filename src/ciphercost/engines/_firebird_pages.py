"""_firebird_pages: a Firebird database's file -> bytes of the tables and the indexes that its users made. Not an engine itself.

The server counts neither, and a file grows in larger steps than its tables. But each page names its kind and the table that it is of
(On-Disk Structure 13, ods.h): pages of rows and pages of indexes, of tables that are not the server's own.
"""

from __future__ import annotations

import struct
from pathlib import Path

DATA, INDEX = 5, 7
"""Kinds of pages, by their first byte."""
PAGE_SIZE_AT, RELATION_AT = 16, {DATA: 20, INDEX: 28}
"""Where two bytes name the page size, in the first page, and the table, in the others."""
FIRST_OF_USERS = 128
"""Number of the first table that is not the server's own."""


def sizes(file: Path) -> tuple[int, int]:
    """Bytes of tables, bytes of indexes. Raises OSError."""
    with file.open("rb") as opened:
        (size,) = struct.unpack_from("<H", opened.read(PAGE_SIZE_AT + 2), PAGE_SIZE_AT)
        opened.seek(0)
        pages = {DATA: 0, INDEX: 0}
        while len(page := opened.read(size)) == size > 0:
            kind = page[0]
            if kind in pages and struct.unpack_from("<H", page, RELATION_AT[kind])[0] >= FIRST_OF_USERS:
                pages[kind] += 1
    return pages[DATA] * size, pages[INDEX] * size
