"""SQLite and SQLCipher, embedded in the agent. There is no server: a directory holds the database file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ciphercost.engines import Server, StartRequest
from ciphercost.engines._dumps import sqlite as dumps
from ciphercost.engines._embedded import Embedded
from ciphercost.engines.capabilities.backups import EXPORT, VACUUM, BacksUp, Backup, BackupRequest
from ciphercost.engines.capabilities.dumps import Dump, DumpColumn, DumpTarget, LoadsDumps, Rows
from ciphercost.engines.capabilities.io_counters import CountsIo
from ciphercost.engines.capabilities.storage import Spill
from ciphercost.host.installation import Installation
from ciphercost.load import agent
from ciphercost.model.connection import Connection
from ciphercost.model.errors import MissingServer, UsageError

PRAGMAS = (
    "page_size",
    "journal_mode",
    "synchronous",
    "cache_size",
    "cache_spill",
    "temp_store",
    "locking_mode",
    "auto_vacuum",
    "encoding",
    "foreign_keys",
    "secure_delete",
    "journal_size_limit",
    "threads",
)
"""Settings of a connection or a file that SQL can read."""


class SqliteDirectory(Server):
    """Stands for a server: the directory of the database file."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def connection(self) -> Connection:
        assert self.directory is not None
        return Connection(driver="sqlite", path=str(self.directory / "database.sqlite"))

    def stop(self) -> None:
        """Nothing to stop: the agent's connections are the database."""


LEAST_CACHE_KIB = 64
"""Sixteen pages: with fewer, pages of one statement evict each other."""


class Sqlite(Embedded, CountsIo, LoadsDumps, BacksUp):
    name = "sqlite"
    title = "SQLite / SQLCipher (embedded)"
    driver = "sqlite"
    dialect = "sqlite"
    home = "SELECT file FROM pragma_database_list WHERE name = 'main'"
    variables = " UNION ALL ".join(f"SELECT '{name}', {name} FROM pragma_{name}" for name in PRAGMAS)
    temporary = ("etilqs_*",)
    backup_tools = (VACUUM, EXPORT)
    sizes = (
        "SELECT sum(CASE m.type WHEN 'table' THEN s.pgsize END), sum(CASE m.type WHEN 'index' THEN s.pgsize END) FROM dbstat s "
        "JOIN sqlite_master m ON m.name = s.name"
    )
    # The agent adds these functions. They count pages that pass between a connection's cache and its file or WAL; a checkpoint, which
    # copies pages as they are, is no part of it.
    io_counters = "SELECT 'pages', ciphercost_pages_read() * page_size, ciphercost_pages_written() * page_size FROM pragma_page_size"
    counts_by_connection = True

    def spills(self, word: str) -> tuple[Spill, ...]:
        """A sort and a temporary table, each twice: with the connection's setting (memory) and in files, the default of
        many builds.

        SQLite unlinks these files as soon as it creates them, in SQLITE_TMPDIR, TMPDIR or /var/tmp, outside the data
        directory. The word is not part of the sort's key. The sort is several times the 2 MB that SQLite keeps of it in memory.
        """
        count = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {})"
        rows = f"SELECT n * 7919 % 1000003 AS k, '{word}' AS w FROM c"
        sort = f"{count.format(100_000)} SELECT k, w FROM ({rows}) ORDER BY k LIMIT 1 OFFSET 99999"
        table = f"CREATE TEMP TABLE ciphercost_spill AS {count.format(50_000)} {rows}"
        files = "PRAGMA temp_store = 1"
        return (
            Spill("sort", (sort,), during=True),
            Spill("temporary table", (table,)),
            Spill("sort where temp_store is files (SQLite's default)", (files, sort), during=True),
            Spill("temporary table where temp_store is files (SQLite's default)", (files, table)),
        )

    def cache_settings(self, size: int, *, direct: bool) -> dict[str, str]:  # noqa: ARG002
        """Pragmas of a connection; each connection has its own cache.

        SQLite has no direct I/O. Memory-mapped files are off because they would bypass that cache.
        """
        if not size:
            return {}
        return {"cache_size": str(-max(size // 1024, LEAST_CACHE_KIB)), "mmap_size": "0"}

    def backup(self, request: BackupRequest) -> Backup:
        """`VACUUM INTO`; with SQLCipher its own export, which both arms have: `VACUUM INTO` refuses a plain file with a reserved end of each page.

        The export is encrypted with the key of the database.
        """
        file, to = request.target / "backup.sqlite", request.connection
        if not (to.key or to.reserve):
            return Backup(statement=f"VACUUM INTO '{file}'", tool=VACUUM)
        key = "" if to.key else " KEY ''"
        export = f"ATTACH DATABASE '{file}' AS backup{key}; SELECT sqlcipher_export('backup'); DETACH DATABASE backup"
        return Backup(statement=export, tool=EXPORT)

    def dump_of(self, path: Path) -> Dump:
        return dumps.recognised(path)

    def load_dump(self, dump: Dump, target: DumpTarget) -> list[str]:
        return dumps.load(dump, target)

    def table_rows(self, query: Callable[[str], Rows]) -> dict[str, int]:
        return dumps.table_rows(query)

    def table_columns(self, query: Callable[[str], Rows], table: str) -> list[DumpColumn]:
        return dumps.table_columns(query, table)

    def read_table(self, query: Callable[[str], Rows], table: str, texts: Sequence[str]) -> Iterator[Rows]:
        return dumps.read_table(query, table, texts)

    def available(self) -> Iterable[Installation]:
        """List the one inside the agent. Only the agent knows its version."""
        with contextlib.suppress(MissingServer):
            return [Installation(self.name, "", "library", agent.find())]
        return []

    def find(self, version: str = "", *, url: str = "", bindir: str = "") -> Installation:
        if url or bindir:
            raise UsageError("sqlite runs inside the agent and takes neither --url nor --bindir: leave them out")
        if version:
            raise UsageError(f"sqlite@{version}: only the SQLite inside the agent is available. Leave the version out.")
        return Installation(self.name, "", "library", agent.find())

    def install(self, version: str = "", source: str = "") -> Installation:  # noqa: ARG002
        """Nothing to fetch: it comes with the agent."""
        return self.find(version)

    def start(self, request: StartRequest) -> Server:
        return SqliteDirectory(request.directory)


ENGINE = Sqlite()
