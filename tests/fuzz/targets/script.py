"""The user's own statements (`--sql`), in pgbench's script language."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ciphercost.load import script


def parse(data: bytes, place: Path) -> None:
    script.parse(data.decode(errors="replace"), {"rows": 1000, "scale": 1})


def seeds(place: Path) -> Iterator[bytes]:
    yield b"\\set n random(1, 100 * :scale)\nSELECT :n + 1, 'a;b' -- x;\n; SELECT $$ ; $$;\n"
    yield b"\\set a random_zipfian(1, :rows, 1.1)\nBEGIN;\nUPDATE t SET n = n + 1 WHERE id = :a;\nCOMMIT;\n\\sleep 2 ms\n"
    yield b"INSERT INTO t VALUES ('it''s', E'\\'', \"q\"); /* ; */ WITH x AS (SELECT 1) SELECT * FROM x;"
    yield b"\\set w debug(1 / 0)\n\\set t text(10)\nSELECT :t;"
