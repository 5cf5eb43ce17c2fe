"""The user's own rows (`--csv`): delimiter, quotes, and the types of columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ciphercost.load import tables


def parse(data: bytes, place: Path) -> None:
    path = place / "rows.csv"
    path.write_bytes(data)
    for dialect in ("postgresql", "firebird"):
        program = tables.program(path, "mixed-crud", dialect)
        for number, _ in enumerate(program.load):
            if number > 50:
                break


def seeds(place: Path) -> Iterator[bytes]:
    yield b'id,word,when\n1,"a ""b"", c",2024-01-02\n2,,2024-02-30T10:00:00\n'
    yield "n;größe\n1,5;Ü\n-2,25;\n".encode("latin-1")
    yield b"\xef\xbb\xbfa\tb\n1\t2\n3\t4\n"
    yield b"x|y\n9223372036854775807|1e400\n-0|nan\n"
