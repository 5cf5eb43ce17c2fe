"""Dumps of mysqldump and mariadb-dump, by the server's own client."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import MappingProxyType

from ciphercost.engines._dumps import files, reasons
from ciphercost.engines._dumps.portions import COPY, portions
from ciphercost.engines._dumps.postgresql import refused
from ciphercost.engines._network import DATABASE_FILE
from ciphercost.engines.capabilities.dumps import Dump, DumpColumn, DumpTarget, LoadsDumps, Rows, Tool, is_users
from ciphercost.host import versions
from ciphercost.host.run_ownership import own_file
from ciphercost.model.errors import MissingServer, UsageError
from ciphercost.model.secret import reveal

DATABASE = "ciphercost"
"""Of ciphercost's own on each server that it starts."""
MARK_TABLE = "ciphercost_made_by"
"""Table in each of our databases on a server you already run: holds the run's id.

MySQL has no comments on databases.
"""
TITLES = {"mysql": "MySQL", "mariadb": "MariaDB"}
PROGRAMS = {"mysql": ("mysql",), "mariadb": ("mariadb", "mysql")}
"""Names of the client, best first."""
COMPLETE = b"-- Dump completed"
LOAD_SETTINGS = {
    "innodb-flush-log-at-trx-commit": "0",
    "innodb-buffer-pool-size": "512M",
    "sync-binlog": "0",
    "max-allowed-packet": "1G",
    "general-log": "OFF",
    "slow-query-log": "OFF",
}
SECONDS = 24 * 3600.0
BYTES_TYPES = {
    *("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "bit", "vector"),
    *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geomcollection"),
    "geometrycollection",
}
"""Types whose values are no text."""
SYSTEM = ("mysql", "sys", "information_schema", "performance_schema")
_DATABASE = re.compile(rb"(?m)^-- Current Database: `((?:[^`\n]|``)+)`|^(?:USE|use) `?((?:[^`;\n]|``)+)`?;")
OPTIONS = """\
[client]
host={host}
port={port}
user={user}
password={password}
default-character-set=utf8mb4
max-allowed-packet=1G
"""


class LoadsMysqlDumps(LoadsDumps):
    """`LoadsDumps` of both engines."""

    load_settings = MappingProxyType(LOAD_SETTINGS)

    def dump_of(self, path: Path) -> Dump:
        return recognised(path, self.name)

    def load_dump(self, dump: Dump, target: DumpTarget) -> list[str]:
        return load(dump, target, self.name, DATABASE)

    def table_rows(self, query: Callable[[str], Rows]) -> dict[str, int]:
        return table_rows(query, MARK_TABLE)

    def table_columns(self, query: Callable[[str], Rows], table: str) -> list[DumpColumn]:
        return table_columns(query, table)

    def read_table(self, query: Callable[[str], Rows], table: str, texts: Sequence[str]) -> Iterator[Rows]:
        return read_table(query, table, texts)


def recognised(path: Path, engine: str) -> Dump:
    """What the file is. Raises UsageError if it is no complete dump that this engine's client reads."""
    ends = files.Ends(path)
    files.refuse_others(ends, engine)
    if not ends.is_text:
        raise UsageError(f"{ends.where}: is no SQL text; make the dump with mysqldump or mariadb-dump")
    match = files.MYSQLS.search(ends.text)
    if match and COMPLETE not in ends.tail and "--skip-comments" not in ends.text:
        raise UsageError(
            f"{ends.where}, line {files.last_line(path)}: the dump ends here, without its last line ('{COMPLETE.decode()}'): it is truncated; {files.AGAIN}"
        )
    version = re.search(r"(?m)^-- Server version\s+(\d[\w.]*)", ends.text)
    vendor = match[1] if match else "another program"
    return Dump(path, f"SQL text of {vendor}", ends.size, version[1] if version else "")


def load(dump: Dump, target: DumpTarget, engine: str, database: str) -> list[str]:
    """`LoadsDumps.load_dump`. `database`: the target's, for a dump that names none."""
    title, version = TITLES[engine], target.installation.version
    if dump.version and title in dump.form:
        theirs, ours = (".".join(map(str, versions.version_key(text)[:2])) for text in (dump.version, version))
        files.refuse_newer(
            dump.option,
            theirs,
            ours,
            title,
            f"write {engine}@{theirs}, or name the programs of such a server with --bindir",
        )
    names = databases(dump, engine)
    if names:
        # With the server's own defaults: a dump's CREATE DATABASE would switch encryption off for all its tables.
        target.query(f"CREATE DATABASE IF NOT EXISTS {quoted(names[0])} CHARACTER SET utf8mb4")
        own_file(target.directory / DATABASE_FILE, names[0])
    else:
        names = [database]
    tool = target.run(_command(target, engine, names[0]), dump, stdin=dump.path, timeout=SECONDS)
    if tool.status:
        raise _refusal(dump, tool)
    notes = [*_make_accounts(names[0], target), *_other_engines(names[0], target)]
    for (table,) in target.query(_tables(names[0])):
        target.query(f"ANALYZE TABLE {quoted(names[0])}.{quoted(str(table))}")
    return notes


def databases(dump: Dump, engine: str) -> list[str]:
    """The one database that a dump names; none if it names none. Raises UsageError for several, and for the server's own."""
    found: dict[str, int] = {}
    with dump.path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            # mysqldump writes rows in lines that begin with INSERT or a parenthesis.
            if engine == "mysql" and line.startswith((b"/*!40000 DROP DATABASE", b"DROP DATABASE")):
                raise UsageError(
                    f"{dump.option}, line {number}: drops its database and makes it again, with encryption as it was there (ENCRYPTION='N'); dump "
                    "without --add-drop-database"
                )
            if line[:3] in (b"-- ", b"USE", b"use") and (match := _DATABASE.match(line)):
                found.setdefault((match[1] or match[2]).decode(errors="replace").replace("``", "`"), number)
    for name, number in found.items():
        if name.lower() in SYSTEM:
            raise UsageError(
                f"{dump.option}, line {number}: holds the server's own database {name}, which would replace its users; dump yours alone, "
                "with --databases NAME instead of --all-databases"
            )
    if len(found) > 1:
        first, second = list(found.items())[:2]
        raise UsageError(
            f"{dump.option}, line {second[1]}: holds a second database ({first[0]}, {second[0]}), and --sql runs in one; dump one of them"
        )
    return list(found)


def _command(target: DumpTarget, engine: str, database: str) -> list[str | Path]:
    """The client. In binary mode it runs no command of its own but `delimiter`, so a dump starts no program."""
    bindir = Path(target.installation.location)
    places = (bindir, bindir.parent / "bin", bindir.parent.parent / "bin")
    program = next(
        (path for name in PROGRAMS[engine] for place in places if os.access(path := place / name, os.X_OK)), None
    )
    if program is None:
        raise MissingServer(
            f"--dump: the server in {bindir} comes without its client ({PROGRAMS[engine][0]}); install it beside the server, or run "
            f"`ciphercost install {engine}`"
        )
    connection = target.connection
    assert connection is not None
    text = OPTIONS.format(
        host=connection.host, port=connection.port, user=connection.user, password=reveal(connection.password)
    )
    text += "ssl-mode=DISABLED\nget-server-public-key\n" if engine == "mysql" else "skip-ssl\n"
    options = own_file(target.work / "client.cnf", text)
    return [
        program,
        f"--defaults-file={options}",
        "--binary-mode",
        "--batch",
        "--silent",
        "--init-command=SET SESSION sql_log_bin = 0",
        database,
    ]


def _make_accounts(database: str, target: DumpTarget) -> list[str]:
    """Make the accounts that views, triggers and routines run as: without them, statements that use those would fail."""
    parts = [
        f"SELECT DEFINER FROM information_schema.{table} WHERE {column} = {literal(database)}"
        for table, column in (("VIEWS", "TABLE_SCHEMA"), ("TRIGGERS", "TRIGGER_SCHEMA"), ("ROUTINES", "ROUTINE_SCHEMA"))
    ]
    wanted = dict.fromkeys(str(row[0]) for row in target.query(" UNION ".join(parts)))
    known = {str(row[0]) for row in target.query("SELECT CONCAT(User, '@', Host) FROM mysql.user")}
    missing = [account for account in wanted if account not in known]
    for account in missing:
        user, _, host = account.rpartition("@")
        named = f"{literal(user)}@{literal(host)}"
        target.query(f"CREATE USER {named} ACCOUNT LOCK")
        target.query(f"GRANT ALL PRIVILEGES ON {quoted(database)}.* TO {named}")
    return [f"accounts that the dump names and that were created locked: {', '.join(missing)}"] if missing else []


def _other_engines(database: str, target: DumpTarget) -> list[str]:
    rows = target.query(
        f"SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = {literal(database)} AND TABLE_TYPE = 'BASE TABLE' "
        "AND ENGINE NOT IN ('InnoDB', 'Aria') ORDER BY 1"
    )
    listed = ", ".join(f"{table} ({engine})" for table, engine in rows)
    return (
        [f"tables that the server's own encryption at rest leaves readable, because they do not use InnoDB: {listed}"]
        if rows
        else []
    )


def table_rows(query: Callable[[str], Rows], own: str) -> dict[str, int]:
    """`LoadsDumps.table_rows`, of the connection's database. `own`: a table of ciphercost's there."""
    names = [str(row[0]) for row in query(_tables("")) if is_users(str(row[0])) and row[0] != own]
    return {name: int(str(query(f"SELECT COUNT(*) FROM {quoted(name)}")[0][0])) for name in names}


def table_columns(query: Callable[[str], Rows], table: str) -> list[DumpColumn]:
    """`LoadsDumps.table_columns`."""
    asked = (
        "SELECT COLUMN_NAME, COLUMN_TYPE, DATA_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() "
        f"AND TABLE_NAME = {literal(table)} ORDER BY ORDINAL_POSITION"
    )
    return [
        DumpColumn(
            str(name),
            str(type_),
            "" if str(kind).lower() in BYTES_TYPES else f"CAST({quoted(str(name))} AS CHAR CHARACTER SET utf8mb4)",
        )
        for name, type_, kind in query(asked)
    ]


def read_table(query: Callable[[str], Rows], table: str, texts: Sequence[str]) -> Iterator[Rows]:
    """`LoadsDumps.read_table`, by a numbered copy: the server has no cursors for clients."""
    names = [f"v{number}" for number in range(len(texts))]
    listed = ", ".join(f"{text} AS {name}" for text, name in zip(texts, names, strict=True))
    key = "ciphercost_number bigint AUTO_INCREMENT PRIMARY KEY"
    query(f"CREATE TABLE {COPY} ({key}) DEFAULT CHARACTER SET utf8mb4 AS SELECT {listed} FROM {quoted(table)}")
    yield from portions(
        lambda done, count: query(
            f"SELECT {', '.join(names)} FROM {COPY} WHERE ciphercost_number > {done} ORDER BY ciphercost_number LIMIT {count}"
        )
    )


def _tables(database: str) -> str:
    schema = literal(database) if database else "DATABASE()"
    return f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {schema} AND TABLE_TYPE = 'BASE TABLE' ORDER BY 1"


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


_ERROR = re.compile(r"ERROR (\d+)(?: \((\w{5})\))?(?: at line (\d+))?[^:]*: (.*)")


def _refusal(dump: Dump, tool: Tool) -> Exception:
    """The error for a load that failed: the line, the reason, and what to do."""
    match = next((found for line in reversed(tool.output.splitlines()) if (found := _ERROR.search(line))), None)
    if match is None:
        return refused(dump, "", "", f"the client ended with status {tool.status}")
    code, state, line, message = match.groups()
    place = f", line {line}" if line else ""
    number = f"error {code}, SQLSTATE {state}" if state else f"error {code}"
    words = reasons.words(reasons.MYSQL, code, message)
    return refused(dump, place, words and f"{words} ({number})", f"the server refused it ({number})")
