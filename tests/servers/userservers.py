"""userservers: a server like a user's own: started in a temporary directory, reached by URL, compared before and after."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import other_tools
from ciphercost import engines, mechanisms
from ciphercost.engines import Server, StartRequest
from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host import pki, run_ownership, supervisor
from ciphercost.host.installation import Installation
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from ciphercost.model.connection import Connection
from ciphercost.model.errors import AgentError
from ciphercost.model.secret import reveal

ENGINES = ["postgresql", "mysql", "mariadb", "firebird"]
"""Servers that the tests of a user's own server run on. To add one, add its name here and to the tables below."""

CATALOGUE: dict[str, list[str]] = {
    "postgresql": [
        "SELECT nspname, nspowner::regrole, nspacl, obj_description(oid, 'pg_namespace') FROM pg_namespace ORDER BY 1",
        "SELECT relnamespace::regnamespace, relname, relkind, relowner::regrole, relacl FROM pg_class ORDER BY 1, 2",
        "SELECT datname, datdba::regrole, datacl FROM pg_database ORDER BY 1",
        "SELECT * FROM pg_authid ORDER BY rolname",
        "SELECT * FROM pg_auth_members ORDER BY 1, 2, 3",
        "SELECT * FROM pg_db_role_setting ORDER BY 1, 2",
        "SELECT name, setting, source FROM pg_settings ORDER BY 1",
        "SELECT pronamespace::regnamespace, proname, pronargs FROM pg_proc ORDER BY 1, 2, 3, oid",
        "SELECT extname, extversion FROM pg_extension ORDER BY 1",
    ],
    "mysql": [
        "SELECT * FROM information_schema.schemata ORDER BY schema_name",
        "SELECT table_schema, table_name, table_type, table_comment FROM information_schema.tables ORDER BY 1, 2",
        "SELECT * FROM mysql.user ORDER BY user, host",
        "SELECT * FROM mysql.db ORDER BY user, host, db",
        "SELECT * FROM performance_schema.global_variables WHERE variable_name NOT LIKE 'gtid%' ORDER BY 1",
    ],
    "mariadb": [
        "SELECT * FROM information_schema.schemata ORDER BY schema_name",
        "SELECT table_schema, table_name, table_type, table_comment FROM information_schema.tables ORDER BY 1, 2",
        "SELECT * FROM mysql.user ORDER BY user, host",
        "SELECT * FROM mysql.db ORDER BY user, host, db",
        "SELECT * FROM information_schema.global_variables WHERE variable_name NOT LIKE 'gtid%' ORDER BY 1",
    ],
    "firebird": [
        "SELECT rdb$relation_name, rdb$owner_name FROM rdb$relations ORDER BY 1",
        "SELECT sec$user_name, sec$active, sec$admin FROM sec$users ORDER BY 1",
        "SELECT rdb$config_name, rdb$config_value FROM rdb$config ORDER BY 1",
    ],
}
"""Everything of a server that a run could leave changed, if no dump shows it."""
MINE: dict[str, list[str]] = {
    "postgresql": [
        "CREATE SCHEMA mine",
        "CREATE TABLE mine.precious (id integer PRIMARY KEY, word text)",
        "INSERT INTO mine.precious VALUES (1, 'keep')",
        "CREATE ROLE somebody",
    ],
    "mysql": [
        "CREATE DATABASE mine",
        "CREATE TABLE mine.precious (id integer PRIMARY KEY, word text)",
        "INSERT INTO mine.precious VALUES (1, 'keep')",
        "CREATE USER somebody",
    ],
    "firebird": ["CREATE TABLE precious (id integer NOT NULL PRIMARY KEY, word varchar(20))"],
}
MINE["mariadb"] = MINE["mysql"]
"""What the user already has there."""
LIMITED: dict[str, list[str]] = {
    "postgresql": ["CREATE ROLE limited LOGIN PASSWORD 'limited'"],
    "mysql": ["CREATE USER limited IDENTIFIED BY 'limited'", "GRANT SELECT ON ciphercost.* TO limited"],
}
LIMITED["mariadb"] = LIMITED["mysql"]
"""A user who may log in and create nothing."""
UNMARKED: dict[str, str] = {
    "postgresql": "CREATE SCHEMA ciphercost_mine",
    "mysql": "CREATE DATABASE ciphercost_mine",
    "mariadb": "CREATE DATABASE ciphercost_mine",
}
"""A schema that looks like ciphercost's and isn't."""


def _mysqldump(program: Path, fields: Connection) -> list[str | Path]:
    """What only statistics of the server's own change is left out."""
    what = [
        "--all-databases",
        "--routines",
        "--events",
        "--triggers",
        "--hex-blob",
        "--skip-comments",
        "--skip-dump-date",
    ]
    own = [f"--ignore-table=mysql.innodb_{name}_stats" for name in ("table", "index")]
    return [program, "--host=127.0.0.1", f"--port={fields.port}", f"--user={fields.user}", *what, *own]


DUMPS: dict[str, Callable[[Path, Connection], list[str | Path]]] = {
    "postgresql": lambda bindir, fields: [
        bindir / "pg_dumpall", "-h", "127.0.0.1", "-p", str(fields.port), "-U", str(fields.user),
    ],
    "mysql": lambda bindir, fields: [
        *_mysqldump(bindir.parent / "bin" / "mysqldump", fields), "--set-gtid-purged=OFF",
    ],
    "mariadb": lambda _, fields: _mysqldump((other_tools.dumps() or Path()) / "mariadb-dump", fields),
    "firebird": lambda bindir, fields: [
        bindir / "isql-fb", "-x", "-user", str(fields.user), f"127.0.0.1/{fields.port}:{fields.database}",
    ],
}  # fmt: skip
"""By engine: the command that dumps a whole server; of Firebird, the definitions of a database. Arguments: the directory of the
server's programs, and the fields of `connect`.
"""


class UserServer:
    """A running server of which `ciphercost` knows only the URL."""

    def __init__(self, name: str, installation: Installation, start: Callable[[], Server], ca: Path) -> None:
        self.engine = engines.get(name)
        self.installation = installation
        self.ca = ca
        self.ca_at_server = ca
        """The same file, where the server can read it."""
        self._start = start
        self._started()
        self.mechanism = next(iter(TakesUrl.of(self.engine).schemes.values()))
        self.by_ca = ["--ca", str(ca)] if self.mechanism == "tls" else []
        """Flags that name the server's authority, if it has one."""
        self.environment = {TakesUrl.of(self.engine).password_from: reveal(self.fields.password)}

    def _started(self) -> None:
        self.server = self._start()
        self.fields = self.server.connection()
        self.url = self.url_for(str(self.fields.user))

    def restart(self) -> None:
        """Stop it in order and start it with the same data. It may get another port, and so another URL."""
        self.server.stop()
        self._started()

    def url_for(self, user: str, port: int = 0, host: str = "localhost") -> str:
        scheme = next(iter(TakesUrl.of(self.engine).schemes))
        return f"{scheme}://{user}@{host}:{port or self.fields.port}/{self.fields.database}"

    def ask(self, *statements: str) -> list[list[str | None]]:
        """The last statement's rows."""
        rows: list[list[str | None]] = []
        with self._agent() as agent:
            agent.connect("look", self.fields)
            for each in statements:
                rows = agent.query("look", each)
        return rows

    def pgbench(self, *options: str | Path) -> None:
        """Run PostgreSQL's own pgbench on it as its owner. Fails the test if pgbench does."""
        where = ["-h", "127.0.0.1", "-p", str(self.fields.port), "-U", str(self.fields.user), str(self.fields.database)]
        done = subprocess.run(
            [Path(self.installation.location) / "pgbench", *options, *where],
            env={**os.environ, "PGPASSWORD": reveal(self.fields.password)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    @contextmanager
    def _agent(self) -> Iterator[Agent]:
        """An agent. If the server refuses it or is silent, the error says what each of the server's threads is doing."""
        with Agent() as agent:
            try:
                yield agent
            except AgentError as error:
                error.add_note(_doing(self.server.pid))
                raise

    def schemas(self) -> dict[str, str]:
        """Schemas with ciphercost's prefix, with their marks."""
        with self._agent() as agent:
            return OwnSchema.of(self.engine).schemas(agent, self.fields)

    def mark(self, name: str) -> str | None:
        """The mark of the schema of this name; None if there is none."""
        with self._agent() as agent:
            return OwnSchema.of(self.engine).schema(agent, self.fields, name)

    def make(self, name: str, mark: str) -> None:
        with self._agent() as agent:
            OwnSchema.of(self.engine).make_schema(agent, self.fields, name, mark)

    def drop(self, name: str) -> None:
        with self._agent() as agent:
            OwnSchema.of(self.engine).drop_schema(agent, self.fields, name)

    def state(self) -> list[object]:
        """The whole server, as its catalogue and (if there is such a program) its own dump show it."""
        with self._agent() as agent:
            agent.connect("look", self.fields)
            seen: list[object] = [agent.query("look", each) for each in CATALOGUE[self.engine.name]]
        # If a scratch schema is a separate database, it is a file.
        files = sorted(path.name for path in (self.server.directory or Path()).rglob("*.fdb"))
        return [*seen, *files, *self._dump()]

    def _dump(self) -> list[str]:
        """The lines of a dump by the server's own tool."""
        argv = DUMPS[self.engine.name](Path(self.installation.location), self.fields)
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            check=False,
            env=self._for_dumps(),
            stdin=subprocess.DEVNULL,
            timeout=60,
        )
        assert done.returncode == 0, f"{argv[0]}: {done.stderr}"
        # \restrict and \unrestrict carry a word that is random for each dump.
        return [line for line in done.stdout.splitlines() if "restrict " not in line]

    def _for_dumps(self) -> dict[str, str]:
        """The environment of a tool that dumps, with the password where that tool looks for it."""
        password = reveal(self.fields.password)
        return {**os.environ, "PGPASSWORD": password, "MYSQL_PWD": password, "ISC_PASSWORD": password}


def _doing(pid: int) -> str:
    """By thread of a process: its name, its state (S sleeps, D waits for a disk, T is stopped) and where in the kernel it waits."""
    lines = [f"threads of process {pid}:"]
    for thread in sorted(Path(f"/proc/{pid}/task").glob("*")):
        with contextlib.suppress(OSError):
            name, state = (thread / "stat").read_text().split("(", 1)[1].rsplit(") ", 1)
            lines.append(f"{thread.name} {name} {state[0]} {(thread / 'wchan').read_text()}")
    return "\n".join(lines)


@contextmanager
def user_server(
    name: str,
    directory: Path,
    prepare: Callable[[Installation, Path, supervisor.Supervisor], None] | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    version: str = "",
) -> Iterator[UserServer]:
    """A server that encrypts, with some of the user's data on it. Its CA's certificate is in the directory.

    `prepare`: called with the server's own directory before the server is started; `settings`: instead of those that make it
    encrypt; `version`: empty: the first that is found.
    """
    engine = engines.get(name)
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        ca = directory / "ca.pem"
        own, at_server = dict(settings or {}), ca
        if "tls" in mechanisms.of(engine):
            made = pki.Pki(scratch / "secrets", certificate="ecdsa-p256")
            run_ownership.hand_over(scratch / "secrets")
            ca.write_bytes(made.ca.read_bytes())
            at_server = made.ca
            own = own or HasTls.of(engine).tls_settings(made, mechanisms.get("tls").check({}))
        installation = engine.find(version)
        engine.initialise(installation, scratch / "server", run_supervisor)
        if prepare:
            prepare(installation, scratch / "server", run_supervisor)
        start = partial(
            engine.start,
            StartRequest(installation, scratch / "server", run_supervisor, settings=own or {}, logs=directory),
        )
        found = UserServer(name, installation, start, ca)
        found.ca_at_server = at_server
        try:
            found.ask(*MINE[name])
            yield found
        finally:
            found.server.stop()
