"""The user's own statements (`--sql`), in pgbench's script language."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ciphercost.load import commands, script
from ciphercost.model.errors import UsageError

DIALECTS = ("", "postgresql", "mysql", "sqlite", "duckdb", "firebird", "h2")


def parse(data: bytes, place: Path) -> None:
    """The first byte chooses whose statements these are."""
    parameters: dict[str, int | str] = {"rows": 1000, "scale": 1}
    text = data[1:].decode(errors="replace")
    which = data[0] % (len(DIALECTS) + 1) if data else 0
    if which == len(DIALECTS):
        commands.parse(text, parameters)
        return
    try:
        parsed = script.parse(text, parameters, dialect=DIALECTS[which])
    except UsageError:
        script.parse(data.decode(errors="replace"), parameters)
        return
    assert isinstance(parsed.read_only, bool)


def seeds(place: Path) -> Iterator[bytes]:
    yield b"\1\\set n random(1, 100 * :scale)\nSELECT :n + 1, 'a;b' -- x;\n; SELECT $$ ; $$;\n"
    yield b"\0\\set a random_zipfian(1, :rows, 1.1)\nBEGIN;\nUPDATE t SET n = n + 1 WHERE id = :a;\nCOMMIT;\n\\sleep 2 ms\n"
    yield b"\1INSERT INTO t VALUES ('it''s', E'\\'', \"q\"); /* ; */ WITH x AS (SELECT 1) SELECT * FROM x;"
    yield b"\2SELECT `a;b`, 'it\\'s;', 5--1; # ; x\n-- ; y\nBEGIN NOT ATOMIC SELECT 1; END"
    yield b"\5EXECUTE BLOCK AS BEGIN n = :n; END; SELECT q'{it's;}' FROM t"
    yield b"\7\\set id random(1, 9)\nGET user::id:name; SET 'a b' :id\n# c\n"
    yield b"\0\\set w debug(1 / 0)\n\\set t text(10)\nSELECT :t;"
