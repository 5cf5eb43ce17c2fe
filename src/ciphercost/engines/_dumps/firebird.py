"""Backups of gbak, restored by the installation's own gbak into a cluster whose server is stopped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ciphercost.engines._dumps import files, reasons
from ciphercost.engines._dumps.portions import portions
from ciphercost.engines._dumps.postgresql import quoted, refused
from ciphercost.engines.capabilities.dumps import Dump, DumpColumn, DumpTarget, Rows, Tool, is_users
from ciphercost.model.errors import MissingServer, UsageError

FORM = "backup of gbak"
SECONDS = 24 * 3600.0
TABLES = (
    "SELECT TRIM(RDB$RELATION_NAME) FROM RDB$RELATIONS WHERE COALESCE(RDB$SYSTEM_FLAG, 0) = 0 AND RDB$VIEW_BLR IS NULL "
    "AND COALESCE(RDB$RELATION_TYPE, 0) = 0 ORDER BY 1"
)


def recognised(path: Path) -> Dump:
    """What the file is. Raises UsageError if it is no backup of gbak."""
    ends = files.Ends(path)
    files.refuse_others(ends, "firebird")
    if not files.is_gbak(ends.head):
        what = "a database's own file" if ends.head[:1] == b"\x01" else "no backup of gbak"
        raise UsageError(f"{ends.where}: is {what}; make a backup: gbak -b DATABASE shop.fbk")
    return Dump(path, FORM, ends.size)


def load(dump: Dump, target: DumpTarget, file: Path, owner: str, environment: Mapping[str, str]) -> list[str]:
    """`LoadsDumps.load_dump`: replaces the cluster's empty database `file`."""
    program = Path(target.installation.location) / "gbak"
    if not program.exists():
        raise MissingServer(
            f"--dump: the server in {program.parent} comes without gbak; install its utilities beside it"
        )
    command: list[str | Path] = [program, "-rep", "-user", owner, "stdin", file]
    tool = target.run(command, dump, stdin=dump.path, env=environment, timeout=SECONDS)
    if tool.status:
        raise _refusal(dump, tool)
    return []


def table_rows(query: Callable[[str], Rows]) -> dict[str, int]:
    """`LoadsDumps.table_rows`."""
    names = [str(row[0]) for row in query(TABLES) if is_users(str(row[0]))]
    return {name: int(str(query(f"SELECT COUNT(*) FROM {quoted(name)}")[0][0])) for name in names}


TYPES = {
    7: "smallint",
    8: "integer",
    10: "float",
    12: "date",
    13: "time",
    14: "char",
    16: "bigint",
    23: "boolean",
    24: "decfloat",
    25: "decfloat",
    26: "int128",
    27: "double",
    28: "time with time zone",
    29: "timestamp with time zone",
    35: "timestamp",
    37: "varchar",
    261: "blob",
}
"""RDB$FIELD_TYPE."""
OCTETS = 1
"""The character set of bytes."""
LONGEST = 8191
"""Characters of the longest varchar in UTF-8."""
ROW_BYTES = 60_000
"""Most bytes of a row of an answer by its types; the server's limit is 64 KB."""


def table_columns(query: Callable[[str], Rows], table: str) -> list[DumpColumn]:
    """`LoadsDumps.table_columns`."""
    literal = "'" + table.replace("'", "''") + "'"
    found = query(
        "SELECT TRIM(r.RDB$FIELD_NAME), f.RDB$FIELD_TYPE, COALESCE(f.RDB$FIELD_SUB_TYPE, 0), COALESCE(f.RDB$CHARACTER_SET_ID, 0), "
        "COALESCE(f.RDB$DIMENSIONS, 0), COALESCE(f.RDB$CHARACTER_LENGTH, 0) "
        "FROM RDB$RELATION_FIELDS r JOIN RDB$FIELDS f ON f.RDB$FIELD_NAME = r.RDB$FIELD_SOURCE "
        f"WHERE r.RDB$RELATION_NAME = {literal} ORDER BY r.RDB$FIELD_POSITION"
    )
    return [_column(str(name), *(int(str(value)) for value in values)) for name, *values in found]


def _column(name: str, kind: int, sub_type: int, character_set: int, dimensions: int, letters: int) -> DumpColumn:
    title = "array" if dimensions else TYPES.get(kind, f"type {kind}")
    column = quoted(name)
    if (
        dimensions
        or kind not in TYPES
        or (kind == 261 and sub_type != 1)
        or (kind in (14, 37) and character_set == OCTETS)
    ):
        return DumpColumn(name, title, "")
    if kind == 14:  # padded with blanks
        column = f"TRIM(TRAILING FROM {column})"
    length = min(LONGEST, letters or LONGEST) if kind in (14, 37, 261) else 64
    return DumpColumn(
        name, "text blob" if kind == 261 else title, f"CAST({column} AS VARCHAR({length}) CHARACTER SET UTF8)"
    )


def read_table(query: Callable[[str], Rows], table: str, texts: Sequence[str]) -> Iterator[Rows]:
    """`LoadsDumps.read_table`. Nobody writes, so the natural order stays the same from portion to portion.

    Several questions ask for a row if one would be longer than the server's limit.
    """
    groups: list[list[str]] = []
    taken = ROW_BYTES
    for text in texts:
        size = 8 + 4 * int(text.rpartition("VARCHAR(")[2].partition(")")[0])
        if taken + size > ROW_BYTES:
            groups.append([])
            taken = 0
        groups[-1].append(text)
        taken += size
    yield from portions(lambda done, count: _together(query, table, groups, done, count))


def _together(query: Callable[[str], Rows], table: str, groups: Sequence[Sequence[str]], done: int, count: int) -> Rows:
    parts = [query(f"SELECT FIRST {count} SKIP {done} {', '.join(group)} FROM {quoted(table)}") for group in groups]
    return [[value for part in row for value in part] for row in zip(*parts, strict=True)]


_TABLE = re.compile(r"restoring data for table (\S+)")


def _refusal(dump: Dump, tool: Tool) -> Exception:
    """The error for a restore that failed: the table, the reason, and what to do."""
    lines = [line for line in tool.output.splitlines() if line.strip()]
    errors = [line for line in lines if "ERROR" in line]
    tables = [match[1] for line in lines if (match := _TABLE.search(line))]
    place = f", rows of {tables[-1]}" if tables else ""
    text = "\n".join(errors or lines)
    if match := re.search(r"[Ee]xpected backup version ([\d., or]*\d)\W+[Ff]ound (\d+)", text):
        return UsageError(
            f"{dump.option}: has gbak's format {match[2]}, and this server's reads up to {match[1]}: it is from a newer Firebird; use that "
            "version with --bindir, or make the backup with an older gbak"
        )
    words = reasons.words(reasons.FIREBIRD, "", text)
    return refused(dump, place, words, f"gbak ended with status {tool.status}")
