"""A user's SQLite file, copied table by table into an arm's file by the SQLite inside the agent."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ciphercost.engines._dumps import files
from ciphercost.engines._dumps.portions import COPY, portions
from ciphercost.engines.capabilities.dumps import Dump, DumpColumn, DumpTarget, Rows, is_users
from ciphercost.model.errors import AgentError, RunError, UsageError

MAGIC = b"SQLite format 3\0"
FORM = "SQLite file"
ENCODINGS = {0: "UTF-8", 1: "UTF-8", 2: "UTF-16le", 3: "UTF-16be"}
TABLES = (
    "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
    "ORDER BY 1"
)


def recognised(path: Path) -> Dump:
    """What the file is. Raises UsageError if it is no whole database."""
    ends = files.Ends(path)
    files.refuse_others(ends, "sqlite")
    if not ends.head.startswith(MAGIC):
        what = "SQL text" if ends.is_text else "no SQLite file, or an encrypted one"
        fix = (
            f"make a database of it: sqlite3 shop.db < {path}"
            if ends.is_text
            else "decrypt it first, or name another file"
        )
        raise UsageError(f"{ends.where}: is {what}; {fix}")
    page = int.from_bytes(ends.head[16:18], "big")
    pages, encoding = int.from_bytes(ends.head[28:32], "big"), int.from_bytes(ends.head[56:60], "big")
    whole = pages * (65536 if page == 1 else page)
    # The count is valid only if the file was last written by a version that keeps it.
    if ends.head[24:28] == ends.head[92:96] and ends.size < whole:
        raise UsageError(
            f"{ends.where}: has {ends.size:,} bytes, but its header counts {whole:,}: it is truncated; copy it again, with "
            f"sqlite3 … \"VACUUM INTO 'copy.db'\""
        )
    for suffix, what in (("-wal", "a write-ahead log"), ("-journal", "a journal")):
        beside = path.with_name(path.name + suffix)
        if beside.exists() and beside.stat().st_size:
            raise UsageError(
                f"{ends.where}: has {what} beside it ({beside.name}), so some of its rows are not in it yet, or it is in use; name a copy: "
                f"sqlite3 {path} \"VACUUM INTO 'copy.db'\""
            )
    if ENCODINGS.get(encoding, "") != "UTF-8":
        raise UsageError(
            f"{ends.where}: holds its texts in {ENCODINGS.get(encoding, 'an unknown encoding')}, and only UTF-8 is loaded; convert it: "
            f"sqlite3 {path} .dump | sqlite3 copy.db"
        )
    return Dump(path, FORM, ends.size)


def load(dump: Dump, target: DumpTarget) -> list[str]:
    """`LoadsDumps.load_dump`, from a copy: the user's file is not opened as a database."""
    source = target.work / "source.db"
    shutil.copyfile(dump.path, source)
    target.read(dump.size // 10)
    try:
        target.query(f"ATTACH DATABASE '{source}' AS source KEY ''")
        if target.query("PRAGMA source.quick_check(1)") != [["ok"]]:
            raise damaged(dump)
        target.query("PRAGMA foreign_keys = OFF")  # tables come in the order of their creation
        ((user_version,),) = target.query("PRAGMA source.user_version")
        ((application,),) = target.query("PRAGMA source.application_id")
        analysed = target.query("SELECT 1 FROM source.sqlite_master WHERE name = 'sqlite_stat1'")
        target.read(dump.size // 5)
        target.query("SELECT sqlcipher_export('main', 'source')")
        target.query(f"PRAGMA main.user_version = {user_version}")
        target.query(f"PRAGMA main.application_id = {application}")
        target.query("DETACH DATABASE source")
        target.query("PRAGMA foreign_keys = ON")
        if analysed:  # as the user's planner has it
            target.query("ANALYZE")
        target.query("PRAGMA wal_checkpoint(TRUNCATE)")
    except AgentError as error:
        text = str(error)
        if "malformed" in text or "not a database" in text:
            raise damaged(dump) from None
        if "disk is full" in text:
            raise RunError(
                f"{dump.option}: does not fit on this disk; free some space, or set CIPHERCOST_SCRATCH to a directory on a larger disk"
            ) from None
        if "no such module" in text:
            module = text.rpartition("no such module:")[2].split()[:1]
            raise UsageError(
                f"{dump.option}: has a virtual table of the module {''.join(module)}, which the SQLite in ciphercost's agent lacks; drop that table "
                "in a copy"
            ) from None
        raise UsageError(
            f"{dump.option}: SQLite could not copy its tables ({error.code}); load it by hand to see why: sqlite3 {dump.path} .dump | sqlite3 copy.db"
        ) from None
    return []


def damaged(dump: Dump) -> UsageError:
    return UsageError(
        f"{dump.option}: its pages are damaged (PRAGMA quick_check); restore it from a backup, or recover what is left: "
        f"sqlite3 {dump.path} .recover | sqlite3 copy.db"
    )


def table_rows(query: Callable[[str], Rows]) -> dict[str, int]:
    """`LoadsDumps.table_rows`."""
    names = [str(row[0]) for row in query(TABLES) if is_users(str(row[0]))]
    return {name: int(str(query(f"SELECT count(*) FROM main.{quoted(name)}")[0][0])) for name in names}


def table_columns(query: Callable[[str], Rows], table: str) -> list[DumpColumn]:
    """`LoadsDumps.table_columns`. A column of any type may hold bytes, so its values are looked at."""
    # Hidden columns of virtual tables (1) are no data; generated ones (2, 3) are.
    literal = "'" + table.replace("'", "''") + "'"
    found = query(f"SELECT name, type FROM pragma_table_xinfo({literal}) WHERE hidden <> 1 ORDER BY cid")
    columns = []
    for name_, type_ in found:
        name = quoted(str(name_))
        holds_bytes = query(f"SELECT 1 FROM main.{quoted(table)} WHERE typeof({name}) = 'blob' LIMIT 1")
        columns.append(
            DumpColumn(
                str(name_),
                "blob" if holds_bytes else str(type_ or "").lower() or "no type",
                "" if holds_bytes else f"CAST({name} AS text)",
            )
        )
    return columns


def read_table(query: Callable[[str], Rows], table: str, texts: Sequence[str]) -> Iterator[Rows]:
    """`LoadsDumps.read_table`, by a copy, since a table need not have numbers of its rows."""
    names = [f"v{number}" for number in range(len(texts))]
    listed = ", ".join(f"{text} AS {name}" for text, name in zip(texts, names, strict=True))
    query(f"CREATE TABLE {COPY} AS SELECT {listed} FROM main.{quoted(table)}")
    yield from portions(
        lambda done, count: query(
            f"SELECT {', '.join(names)} FROM {COPY} WHERE rowid > {done} ORDER BY rowid LIMIT {count}"
        )
    )


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
