"""shops: a user's own server with tables that ciphercost did not make, and a user who may read one of them and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from ciphercost.engines import firebird
from ciphercost.host import supervisor
from ciphercost.host.installation import Installation
from ciphercost.host.run_ownership import own_file, server_user
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.jdbc.jdbc_agent import JdbcAgent
from ciphercost.model import run_directory
from ciphercost.model.slices import AgentSlice
from ciphercost.model.spec import ARMS, Arm, CellSpec
from ciphercost.plan import schedule
from ciphercost.plan.resolve import resolve
from ciphercost.prove import same_rows
from ciphercost.prove.replies import Verdict
from ciphercost.provision import server_pairs, users_server
from ciphercost.provision.experiment_resources import ExperimentResources
from userservers import UserServer, user_server

ROWS = 200
ENGINES = ["postgresql", "mysql", "mariadb", "firebird"]
PASSWORD = "me"

TABLES: dict[str, list[str]] = {
    "postgresql": [
        "CREATE ROLE owner",
        f"CREATE ROLE me LOGIN PASSWORD '{PASSWORD}'",
        "REVOKE ALL ON SCHEMA public FROM PUBLIC",
        "REVOKE ALL ON DATABASE postgres FROM PUBLIC",
        "GRANT CONNECT ON DATABASE postgres TO me",
        "GRANT USAGE ON SCHEMA public TO me",
        "CREATE TABLE orders (id bigserial PRIMARY KEY, customer text, doc jsonb, note text)",
        f"INSERT INTO orders (customer, doc, note) SELECT 'customer ' || n, '{{\"a\": 1}}', repeat('x', 100) FROM generate_series(1, {ROWS}) n",
        "ALTER TABLE orders OWNER TO owner",
        "GRANT SELECT ON orders TO me",
        "CREATE FUNCTION note_of(bigint) RETURNS text LANGUAGE sql AS $f$ SELECT note FROM orders WHERE id = $1 $f$",
        'CREATE SCHEMA "Elsewhere" AUTHORIZATION owner',
        'CREATE TABLE "Elsewhere"."Orders" AS SELECT * FROM orders',
        'GRANT USAGE ON SCHEMA "Elsewhere" TO me',
        'GRANT SELECT ON "Elsewhere"."Orders" TO me',
        "CREATE TABLE counters (id integer PRIMARY KEY, hits bigint)",
        "INSERT INTO counters SELECT n, 0 FROM generate_series(1, 100) n",
        "GRANT SELECT, UPDATE ON counters TO me",
        "ALTER SYSTEM SET log_line_prefix = '<%u>'",
        "ALTER SYSTEM SET log_statement = 'all'",
        "SELECT pg_reload_conf()",
    ],
    "mysql": [
        "CREATE DATABASE shop",
        f"CREATE USER me IDENTIFIED BY '{PASSWORD}'",
        "CREATE TABLE shop.orders (id int AUTO_INCREMENT PRIMARY KEY, customer varchar(50), note text)",
        (
            "INSERT INTO shop.orders (customer, note) WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < "
            f"{ROWS}) SELECT concat('customer ', n), repeat('x', 100) FROM c"
        ),
        "GRANT SELECT ON shop.orders TO me",
        "CREATE FUNCTION shop.note_of(which int) RETURNS text READS SQL DATA RETURN (SELECT note FROM orders WHERE id = which)",
        "GRANT EXECUTE ON FUNCTION shop.note_of TO me",
        "CREATE TABLE shop.counters (id int PRIMARY KEY, hits bigint)",
        "INSERT INTO shop.counters SELECT id, 0 FROM shop.orders WHERE id <= 100",
        "GRANT SELECT, UPDATE ON shop.counters TO me",
        "SET GLOBAL log_output = 'TABLE'",
        "SET GLOBAL general_log = 1",
    ],
    "firebird": [
        "CREATE TABLE orders (id integer NOT NULL PRIMARY KEY, customer varchar(50), note varchar(100))",
        (
            "EXECUTE BLOCK AS DECLARE n INTEGER = 1; BEGIN WHILE (n <= "
            f"{ROWS}) DO BEGIN INSERT INTO orders VALUES (:n, 'customer ' || :n, LPAD('', 100, 'x')); n = n + 1; END END"
        ),
        "GRANT SELECT ON orders TO USER me",
        (
            "CREATE FUNCTION note_of (which INTEGER) RETURNS VARCHAR(100) AS DECLARE found VARCHAR(100); "
            "BEGIN SELECT note FROM orders WHERE id = :which INTO :found; RETURN found; END"
        ),
        "GRANT EXECUTE ON FUNCTION note_of TO USER me",
        "GRANT SELECT ON orders TO FUNCTION note_of",
        "CREATE TABLE counters (id integer NOT NULL PRIMARY KEY, hits bigint)",
        "INSERT INTO counters SELECT id, 0 FROM orders WHERE id <= 100",
        "GRANT SELECT, UPDATE ON counters TO USER me",
    ],
}
TABLES["mariadb"] = TABLES["mysql"]


class Shop:
    """A user's server, reached as the user `me`."""

    def __init__(self, server: UserServer, directory: Path) -> None:
        self.server = server
        self.name = server.engine.name
        self.directory = directory
        database = "shop" if self.name in ("mysql", "mariadb") else str(server.fields.database)
        self.target = f"{self.name}:{server.mechanism}"
        self.url = server.url_for("me").removesuffix(str(server.fields.database)) + database
        self.environment = dict.fromkeys(server.environment, PASSWORD)

    @property
    def argv(self) -> tuple[str, ...]:
        return ("run", self.target, "--url", self.url, *self.server.by_ca)

    def cell(self, sql: Path, client: str = "") -> CellSpec:
        spec = CellSpec(self.name, self.server.mechanism, url=self.url, sql=str(sql), clients=2, client=client)
        return structs.replace(spec, ca=str(self.server.ca)) if self.server.by_ca else spec

    def state(self) -> list[object]:
        """The whole server; without what its log of statements says."""
        return [
            "\n".join(line for line in each.splitlines() if "general_log" not in line)
            if isinstance(each, str)
            else each
            for each in self.server.state()
        ]

    def said(self) -> list[str]:
        """The statements that `me` has sent, as the server logged them. Firebird has no such log."""
        if self.name == "postgresql":
            logs = "".join(
                path.read_text(errors="replace") for path in sorted(self.directory.glob("*")) if path.is_file()
            )
            return [line.removeprefix("<me>") for line in logs.splitlines() if line.startswith("<me>")]
        if self.name == "firebird":
            return []
        rows = self.server.ask(
            "SELECT concat(command_type, ' ', convert(argument USING utf8mb4)) FROM mysql.general_log WHERE user_host LIKE 'me[%'"
        )
        return [str(row[0]) for row in rows]


class Opened(NamedTuple):
    """What a session found before its load, and a moment of load in each arm."""

    verdict: Verdict
    schemas: dict[Arm, str]
    slices: dict[Arm, AgentSlice]


def opened(cell: CellSpec, directory: Path) -> Opened:
    """Open a session of this cell as a run does, compare the arms' rows, and make a moment of load. Raises CiphercostError."""
    run_id = run_directory.new_id()
    with supervisor.Supervisor(run_id) as run_supervisor:
        scratch = supervisor.scratch(run_id, run_supervisor)
        shared = ExperimentResources(scratch / "secrets" / "group-0")
        with (
            server_pairs.bench(resolve(cell), run_supervisor, scratch, directory, 0, shared) as bench,
            shared.session(),
        ):
            pair = server_pairs.start(bench, 1, set(), set(), schedule.arms(1, 0, 1))
            with bench.agent(pair) as agent:
                if isinstance(agent, JdbcAgent):
                    agent.enter(pair.connect, pair.note)
                users_server.ready(bench, pair)
                agent.program(bench.program)
                for arm in pair.login_order:
                    agent.connect(arm, pair.connect[arm])
                verdict = same_rows.same_rows(pair, agent, bench.rows_to_compare, 1)
                slices = {arm: agent.slice(arm, 60, discard=0.0, seed=2, operations=20) for arm in ARMS}
            return Opened(verdict, dict(bench.own_schemas), slices)


def _firebird_user(installation: Installation, directory: Path, run_supervisor: Supervisor) -> None:
    """Create the user `me`, which only SYSDBA may, who logs in without a network only."""
    script = own_file(
        directory / "me.sql",
        f"CONNECT '{directory / firebird.SECURITY}' USER 'SYSDBA';\nCREATE USER me PASSWORD '{PASSWORD}' USING PLUGIN Srp;\nCOMMIT;\n",
    )
    bindir = Path(installation.location)
    isql = next(bindir / name for name in ("isql-fb", "isql") if (bindir / name).exists())
    run_supervisor.run(
        [isql, "-q", "-bail", "-i", script],
        user=server_user(),
        cwd=directory,
        env=firebird._environment(bindir, directory),
    )


@contextmanager
def shop(name: str, directory: Path) -> Iterator[Shop]:
    """A user's own server with a table `orders` and a user `me` who may only read it."""
    with user_server(name, directory, _firebird_user if name == "firebird" else None) as server:
        server.ask(*TABLES[name])
        yield Shop(server, directory)
