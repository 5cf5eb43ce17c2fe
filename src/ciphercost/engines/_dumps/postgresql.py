"""Dumps of pg_dump: plain text by psql, the others by pg_restore."""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ciphercost.engines._dumps import files, reasons, sql_scan
from ciphercost.engines._dumps.portions import portions
from ciphercost.engines.capabilities.dumps import Dump, DumpColumn, DumpTarget, Rows, Tool, is_users
from ciphercost.host import versions
from ciphercost.host.run_ownership import hand_over, own_file, server_user
from ciphercost.model.errors import MissingServer, RunError, UsageError
from ciphercost.model.secret import reveal

PLAIN, CUSTOM, TAR, DIRECTORY = (
    "pg_dump, plain text",
    "pg_dump, custom format",
    "pg_dump, tar format",
    "pg_dump, directory format",
)
COMPLETE = b"PostgreSQL database dump complete"
"""The last comment of a plain dump, by which a whole one is recognised."""
MAGIC = b"PGDMP"
WITHOUT_ALGORITHM = (1, 15)
"""Before this version of the format, the header has a level of compression as a number, then one byte for its algorithm."""
QUIET = {"log_min_messages": "fatal", "log_min_error_statement": "panic", "log_statement": "none"}
"""An error would put the statement and its values into the log."""
LOAD_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "wal_recycle": "off",
    "maintenance_work_mem": "256MB",
    **QUIET,
}
SECONDS = 24 * 3600.0
TABLES = (
    "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' "
    "AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND c.relpersistence <> 't' "
    "AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass AND d.deptype = 'e') ORDER BY 1, 2"
)
"""Ordinary tables and partitions, without those of extensions."""


def recognised(path: Path) -> Dump:
    """What the file is. Raises UsageError if it is no complete dump."""
    ends = files.Ends(path, "toc.dat")
    files.refuse_others(ends, "postgresql")
    where = ends.where
    if path.is_dir():
        return Dump(path, DIRECTORY, ends.size, _archive_version(ends.head, where))
    if ends.head.startswith(MAGIC):
        return Dump(path, CUSTOM, ends.size, _archive_version(ends.head, where))
    if ends.head.startswith(b"toc.dat\0"):
        files.check_tar(path)
        return Dump(path, TAR, ends.size, _archive_version(ends.head[512:], where))
    if not ends.is_text:
        raise UsageError(f"{where}: is neither SQL text nor a dump that pg_restore reads; make one with pg_dump")
    if files.PG_CLUSTER in ends.text:
        raise UsageError(
            f"{where}: is of pg_dumpall, with all roles and databases of a server; dump one database with pg_dump"
        )
    if files.PG_PLAIN in ends.text and COMPLETE not in ends.tail:
        raise UsageError(
            f"{where}, line {files.last_line(path)}: the dump ends here, without pg_dump's last line ('{COMPLETE.decode()}'): it is truncated; {files.AGAIN}"
        )
    from_version = re.search(r"(?m)^-- Dumped from database version (\d[\w.]*)", ends.text)
    return Dump(path, PLAIN, ends.size, from_version[1] if from_version else "")


def _archive_version(header: bytes, where: str) -> str:
    """The version of the server that an archive is from, by its header (`ReadHead` of pg_backup_archiver.c); empty if it has none."""
    if not header.startswith(MAGIC) or len(header) < 64:
        raise UsageError(f"{where}: begins like a dump of pg_dump and is damaged or truncated; {files.AGAIN}")
    major, minor, _, integer, _, _ = struct.unpack_from("6B", header, 5)
    at = 11

    def number() -> int:
        nonlocal at
        value = int.from_bytes(header[at + 1 : at + 1 + integer], "little")
        value, at = (-value if header[at] else value), at + 1 + integer
        return value

    def text() -> str:
        nonlocal at
        length = max(0, number())
        value, at = header[at : at + length].decode(errors="replace"), at + length
        return value

    if (major, minor) >= WITHOUT_ALGORITHM:
        at += 1
    else:
        number()
    for _ in range(7):  # when it was made
        number()
    text()  # the database's name
    return match[0] if (match := re.match(r"\d[\w.]*", text())) else ""


def load(dump: Dump, target: DumpTarget, name: str) -> list[str]:
    """`LoadsDumps.load_dump`. `name`: the target's database."""
    installation = target.installation
    ours = str(versions.version_key(installation.version)[0])
    theirs = dump.version.partition(".")[0]
    if theirs:
        files.refuse_newer(
            dump.option,
            theirs,
            ours,
            "PostgreSQL",
            f"write postgresql@{theirs}, or name the programs of such a server with --bindir",
        )
    programs = _programs(Path(installation.location), int(ours))
    connection = target.connection
    assert connection is not None
    words = [connection.host, str(connection.port), name, connection.user, reveal(connection.password)]
    passwords = own_file(target.work / "pgpass", ":".join(str(word) for word in words) + "\n")
    env = {"PGPASSFILE": str(passwords), "PGSSLMODE": "disable", "PGCONNECT_TIMEOUT": "30", "PGAPPNAME": "ciphercost"}
    place = f"host={connection.host} port={connection.port} user={connection.user} dbname={name}"
    text = dump.path if dump.form == PLAIN else _schema_of(dump, target, programs)
    needs = sql_scan.scan(text, dump.option, whole=dump.form == PLAIN)
    _refuse_missing(dump, needs, target, installation.version)
    notes = _make_roles(needs, target)
    if needs.makes_public:
        target.query("DROP SCHEMA public")
    if dump.form == PLAIN:
        command: list[str | Path] = [
            programs / "psql",
            "-X",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-v",
            "VERBOSITY=verbose",
            "-o",
            "/dev/null",
        ]
        tool = target.run([*command, "-d", place, "-f", "-"], dump, stdin=dump.path, env=env, timeout=SECONDS)
    else:
        fixed = (
            ["--exit-on-error", "--no-tablespaces", "--no-table-access-method"]
            if int(ours) >= 15
            else ["--exit-on-error", "--no-tablespaces"]
        )
        command = [programs / "pg_restore", *fixed, "-d", place]
        tool = _by_pg_restore(command, dump, target, env)
    if tool.status:
        raise _refusal(dump, tool)
    _find_tables(target, name)
    return notes


def _programs(bindir: Path, major: int) -> Path:
    """The directory of psql and pg_restore: the server's own, or another of at least its version. Raises MissingServer."""
    places = [bindir, *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    places += [Path(found).resolve().parent for program in ("pg_restore",) if (found := shutil.which(program))]
    for place in places:
        if all((place / program).exists() for program in ("psql", "pg_restore")):
            number = re.fullmatch(r"\d+", place.parent.name)
            if place == bindir or (number and int(number[0]) >= major):
                return place
    raise MissingServer(
        f"--dump: the server in {bindir} comes without psql and pg_restore, and none of version {major} or later was found; install "
        f"postgresql-client-{major}, or run `ciphercost install postgresql@{major} --from debian`"
    )


def _schema_of(dump: Dump, target: DumpTarget, programs: Path) -> Path:
    """The statements of an archive without its rows, in a file."""
    file = target.work / "schema.sql"
    command: list[str | Path] = [programs / "pg_restore", "--schema-only", "--no-tablespaces", "-f", file]
    tool = _by_pg_restore(command, dump, target, {}, silent=True)
    if tool.status:
        raise _refusal(dump, tool)
    return file


def _by_pg_restore(
    command: list[str | Path], dump: Dump, target: DumpTarget, env: dict[str, str], *, silent: bool = False
) -> Tool:
    """Run pg_restore on an archive: on its standard input, which needs no right to read the user's file, or on a directory."""
    quiet = (
        DumpTarget(target.installation, target.directory, target.supervisor, target.work, lambda _: None)
        if silent
        else target
    )
    if dump.form != DIRECTORY:
        return quiet.run(
            [*command, f"-F{'t' if dump.form == TAR else 'c'}"], dump, stdin=dump.path, env=env, timeout=SECONDS
        )
    readable = dump.path.absolute()
    if server_user() is not None:
        readable = target.work / "dump"
        if not readable.exists():
            shutil.copytree(dump.path, readable)
            hand_over(readable)
    here = Dump(readable, dump.form, dump.size)
    return quiet.run([*command, "-Fd", readable], here, env=env, timeout=SECONDS)


def _refuse_missing(dump: Dump, needs: sql_scan.Needs, target: DumpTarget, version: str) -> None:
    """Raises UsageError that lists all extensions that the server lacks."""
    known = {str(row[0]) for row in target.query("SELECT name FROM pg_available_extensions")}
    missing = {name: line for name, line in needs.extensions.items() if name not in known}
    if not missing:
        return
    line = f", line {min(missing.values())}" if dump.form == PLAIN else ""
    several = "extensions" if len(missing) > 1 else "extension"
    raise UsageError(
        f"{dump.option}{line}: needs the {several} {', '.join(sorted(missing))}, which PostgreSQL {version} in "
        f"{target.installation.location} lacks; install {'them' if len(missing) > 1 else 'it'} there or name another server with --bindir, or "
        "dump without: pg_dump --exclude-extension (from version 17)"
    )


def _make_roles(needs: sql_scan.Needs, target: DumpTarget) -> list[str]:
    known = {str(row[0]) for row in target.query("SELECT rolname FROM pg_roles")}
    missing = [name for name in needs.roles if name not in known]
    for name in missing:
        target.query(f"CREATE ROLE {quoted(name)} NOLOGIN")
    return (
        [f"roles that the dump names and that were created without login: {', '.join(sorted(missing))}"]
        if missing
        else []
    )


def _find_tables(target: DumpTarget, name: str) -> None:
    """Let statements find tables of every schema by their names alone, those in `public` first; then analyse them."""
    schemas = dict.fromkeys(str(row[0]) for row in target.query(TABLES))
    if set(schemas) - {"public"}:
        path = ", ".join(quoted(schema) for schema in ("public", *(schema for schema in schemas if schema != "public")))
        target.query(f"ALTER DATABASE {quoted(name)} SET search_path = {path}")
    target.query("VACUUM ANALYZE")


def table_rows(query: Callable[[str], Rows]) -> dict[str, int]:
    """`LoadsDumps.table_rows`: a table in another schema than `public` has its name before it."""
    tables = [(str(schema), str(table)) for schema, table in query(TABLES) if is_users(str(table))]
    return {
        table if schema == "public" else f"{schema}.{table}": int(
            str(query(f"SELECT count(*) FROM ONLY {quoted(schema)}.{quoted(table)}")[0][0])
        )
        for schema, table in tables
    }


def table_columns(query: Callable[[str], Rows], table: str) -> list[DumpColumn]:
    """`LoadsDumps.table_columns`."""
    asked = (
        f"SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a WHERE a.attrelid = {_literal(_full_name(query, table))}::regclass "
        "AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
    )
    found = [(str(name), str(type_)) for name, type_ in query(asked)]
    return [DumpColumn(name, type_, "" if type_ == "bytea" else f"{quoted(name)}::text") for name, type_ in found]


def read_table(query: Callable[[str], Rows], table: str, texts: Sequence[str]) -> Iterator[Rows]:
    """`LoadsDumps.read_table`, by a cursor."""
    name = _full_name(query, table)
    query("BEGIN")
    query(f"DECLARE ciphercost_rows NO SCROLL CURSOR FOR SELECT {', '.join(texts)} FROM ONLY {name}")
    yield from portions(lambda _, count: query(f"FETCH FORWARD {count} FROM ciphercost_rows"))
    query("ROLLBACK")


def _full_name(query: Callable[[str], Rows], table: str) -> str:
    """A table's name with its schema, quoted. `table`: a name of `table_rows`."""
    for schema, name in query(TABLES):
        if table == (name if schema == "public" else f"{schema}.{name}"):
            return f"{quoted(str(schema))}.{quoted(str(name))}"
    raise KeyError(table)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_LINE = re.compile(r"psql:<stdin>:(\d+): (?:ERROR|FATAL|error): ?(.*)")
_CODE = re.compile(r"^\s*([0-9A-Z]{5}): (.*)", re.DOTALL)
_ENTRY = re.compile(r"from TOC entry \d+; \d+ \d+ ([A-Z][A-Z ]+?) (\S+) (\S+)")
_CONTEXT = re.compile(r"CONTEXT:  COPY (\S+), line (\d+)(?:, column (\w+))?")
_COPY = re.compile(r"COPY failed for table \"([^\"]+)\"")


def _refusal(dump: Dump, tool: Tool) -> Exception:
    """The error for a load that failed: the line or the object, the reason, and what to do."""
    lines = tool.output.splitlines()
    errors = [line for line in lines if "ERROR" in line or "FATAL" in line or "error:" in line]
    message = errors[-1] if errors else (lines or [""])[-1]
    place, code = "", ""
    if match := next((found for line in reversed(lines) if (found := _LINE.match(line))), None):
        place, message = f", line {match[1]}", match[2]
    elif match := next((found for line in reversed(lines) if (found := _COPY.search(line))), None):
        place = f", rows of {match[1]}"
    elif match := next((found for line in reversed(lines) if (found := _ENTRY.search(line))), None):
        place = f", {match[1].lower()} {match[3]}"
    if match := next((found for line in reversed(lines) if (found := _CONTEXT.match(line))), None):
        place += f", row {match[2]} of {match[1]}" + (f", column {match[3]}" if match[3] else "")
    if match := _CODE.match(message):
        code, message = match[1], match[2]
    words = reasons.words(reasons.POSTGRESQL, code, message)
    sql = f" (SQLSTATE {code})" if code else ""
    return refused(dump, place, words and f"{words}{sql}", f"the server refused it{sql}")


def refused(dump: Dump, place: str, words: str, otherwise: str) -> Exception:
    """The error for a dump that a server refused. `words`: the reason; empty: it is `otherwise`."""
    if "disk" in words:
        return RunError(
            f"{dump.option}{place}: {words}; free some space, or set CIPHERCOST_SCRATCH to a directory on a larger disk"
        )
    if "truncated" in words or "incomplete" in words:
        return UsageError(f"{dump.option}{place}: {words}; {files.AGAIN}")
    return UsageError(
        f"{dump.option}{place}: {words or otherwise}; load it into an empty database by hand to see the server's own message, and fix or "
        "dump it again"
    )
