"""counted_servers: servers like a user's own whose counters are read, with a load of known size and the log of what the reader sent."""

from __future__ import annotations

import grp
import os
import pwd
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import MappingProxyType

import msgspec

from asking import ask
from ciphercost import engines
from ciphercost.host import versions
from ciphercost.host.ports import free_port
from ciphercost.host.procfs import cpu_clock_ns, tree
from ciphercost.host.run_ownership import server_user
from ciphercost.load.agent import Agent
from ciphercost.model.connection import Connection
from ciphercost.model.slices import AgentSlice
from directories import let_through
from processes import listens, wait_for
from stores import store
from userservers import UserServer, user_server

TICK = 1 / os.sysconf("SC_CLK_TCK")
PORTS = 3
"""Ports that are tried: another process may take one before the server does."""
READS = ("SELECT ", "SHOW ", "START TRANSACTION READ ONLY", "COMMIT", "SET NAMES")
"""How statements of a reader may begin."""


class Counted(msgspec.Struct):
    """A server of which `ciphercost predict` knows the URL, and what the test knows besides."""

    url: str
    ca: str
    environment: Mapping[str, str]
    pid: int
    fields: Connection
    operation: str
    """A statement, request or command that reads one row or page."""
    log: Callable[[], AbstractContextManager[Callable[[], list[str]]]]
    """What the reader of the counters sends meanwhile, as the server logs it; complete when the block ends."""
    reset: str
    """What an administrator sends to reset the counters; empty: this server can't."""
    server: UserServer | None = None

    def load(self, operations: int, *, settled: bool = False) -> AgentSlice:
        """Do exactly so many operations over two connections. `settled`: until the server has counted them all."""
        before = set(tree(self.pid))
        with Agent() as agent:
            ask(agent, {"type": "program", "name": "test"})
            ask(agent, {"type": "transaction", "name": "t", "weight": 1})
            ask(agent, {"type": "statement", "transaction": "t", "sql": self.operation, "parameters": ""})
            agent.connect("load", self.fields | {"connections": 2})
            done = agent.slice("load", 60, discard=0, operations=operations)
        if settled:
            self._settled(before)
        assert (done.operations, done.errors) == (operations, 0), done.first_error
        return done

    def administrate(self, *statements: str, settled: bool = False) -> None:
        """Send statements. `settled`: until the server has counted them all."""
        before = set(tree(self.pid))
        with Agent() as agent:
            agent.connect("look", self.fields)
            for each in statements:
                agent.query("look", each)
        if settled:
            self._settled(before)

    def _settled(self, before: set[int]) -> None:
        """Wait until the server has no process besides these: a backend reports its last counts before it ends."""
        wait_for("the load's processes to end", lambda: set(tree(self.pid)) <= before)

    def cpu(self) -> float:
        """CPU seconds of its processes, ended ones too."""
        while True:
            total = 0.0
            try:
                for pid in tree(self.pid):
                    ended = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[13:15]
                    total += cpu_clock_ns(pid) / 1e9 + sum(map(int, ended)) * TICK
            except OSError:
                continue  # one has just ended, and its parent has its time now
            return total


@contextmanager
def postgresql(
    directory: Path, *, statements: bool = True, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Counted]:
    """`statements`: with pg_stat_statements. The user `sparse` may only log in."""
    loaded = {"shared_preload_libraries": "pg_stat_statements"} if statements else {}
    logged = {"log_statement": "all", "log_line_prefix": "by %u "}
    with user_server("postgresql", directory, settings={**loaded, **logged, **settings}) as server:
        server.ask("CREATE ROLE sparse LOGIN PASSWORD 'sparse'")
        if statements:
            server.ask("CREATE EXTENSION pg_stat_statements")
        log = directory / "postgresql-server.log"
        yield Counted(
            server.url_for("sparse"),
            "",
            {"PGPASSWORD": "sparse"},
            server.server.pid,
            server.fields,
            "SELECT word FROM mine.precious WHERE id = 1",
            lambda: nullcontext(
                lambda: re.findall(
                    r"^by sparse LOG:  (?:statement|execute [^:]*): (.*)$", log.read_text(), re.MULTILINE
                )
            ),
            "SELECT pg_stat_statements_reset()" if statements else "SELECT pg_stat_reset()",
            server,
        )


@contextmanager
def mysql(directory: Path, name: str = "mysql") -> Iterator[Counted]:
    """MySQL or MariaDB, with TLS. The user `sparse` may only log in."""
    with user_server(name, directory) as server:
        server.ask(
            "CREATE USER sparse IDENTIFIED BY 'sparse'", "SET GLOBAL log_output = 'TABLE'", "SET GLOBAL general_log = 1"
        )

        def uptime() -> int:
            return int(str(server.ask("SHOW GLOBAL STATUS LIKE 'Uptime_since_flush_status'")[0][1]))

        # It counts whole seconds, so a reset of its counters shows only some seconds after its start.
        wait_for("some seconds of uptime", lambda: uptime() >= 4)
        # MariaDB 11.5 and later reset the session's counters only, unless told otherwise.
        everywhere = name == "mariadb" and versions.version_key(server.installation.version) >= versions.version_key(
            "11.5"
        )

        def sent() -> list[str]:
            asked = "SELECT argument FROM mysql.general_log WHERE user_host LIKE '%sparse%' AND command_type IN ('Query', 'Execute', 'Prepare')"
            return [str(row[0]) for row in server.ask(asked)]

        yield Counted(
            f"{name}://sparse@localhost:{server.fields.port}/",
            str(server.ca),
            {"MYSQL_PWD": "sparse"},
            server.server.pid,
            server.fields,
            "SELECT word FROM mine.precious WHERE id = 1",
            lambda: nullcontext(sent),
            "FLUSH GLOBAL STATUS" if everywhere else "FLUSH STATUS",
            server,
        )


@contextmanager
def valkey(directory: Path, name: str = "valkey") -> Iterator[Counted]:
    """Valkey or Redis. The user `me` may only read some keys and INFO."""
    with store(name, directory) as found:
        found.ask("ACL SETUSER me +info")

        @contextmanager
        def monitored() -> Iterator[Callable[[], list[str]]]:
            # Its own output would count as the load's.
            with found.monitored() as lines:
                yield lambda: [line.partition('] "')[2].partition('"')[0] for line in lines]

        yield Counted(
            found.clear,
            "",
            found.environment,
            found.server.pid,
            found.fields,
            "GET mine:1",
            monitored,
            "CONFIG RESETSTAT",
        )


NGINX = """\
daemon off;
{user}
pid {directory}/nginx.pid;
error_log stderr error;
worker_processes 2;
events {{ worker_connections 64; }}
http {{
    log_format requests "$remote_port $request";
    access_log {directory}/access.log requests;
    keepalive_requests 100000;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location = /nginx_status {{ stub_status; }}
        location / {{ return 200 "the page of a user's own site\\n"; }}
    }}
}}
"""


@contextmanager
def nginx(directory: Path, program: str = "") -> Iterator[Counted]:
    """nginx with a status page, configured and started as a user does."""
    (installation, *_) = engines.get("nginx").available()
    let_through(directory)
    user = ""
    if account := server_user():
        user = f"user {pwd.getpwuid(account[0]).pw_name} {grp.getgrgid(account[1]).gr_name};"
    binary = program or str(Path(installation.location) / "nginx")
    for _ in range(PORTS):
        port = free_port("127.0.0.1")
        (directory / "nginx.conf").write_text(NGINX.format(directory=directory, port=port, user=user))
        process = subprocess.Popen([binary, "-p", directory, "-e", "stderr", "-c", directory / "nginx.conf"])
        if listens(process, port):
            break
    else:
        raise AssertionError("nginx did not start")
    with process:
        try:
            fields = Connection(driver="http", host="127.0.0.1", port=port, authority="localhost", path="/page")
            log = directory / "access.log"
            yield Counted(
                f"http://localhost:{port}/nginx_status",
                "",
                {},
                process.pid,
                fields,
                "GET",
                lambda: nullcontext(
                    lambda: [line.partition(" ")[2] for line in log.read_text().splitlines() if "nginx_status" in line]
                ),
                "",
            )
        finally:
            process.terminate()
