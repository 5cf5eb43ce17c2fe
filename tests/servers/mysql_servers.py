"""mysql_servers: what tests of MySQL and MariaDB share: which servers, started in a directory of the test, and their
own client.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ciphercost import engines, mechanisms
from ciphercost.engines import Engine, Server, StartRequest
from ciphercost.host import supervisor
from ciphercost.host.installation import Installation
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from ciphercost.model.connection import Connection
from ciphercost.model.secret import reveal
from ciphercost.model.spec import ARMS, Arm
from ciphercost.provision import dataset
from ciphercost.provision.server_pair import ServerPair

SERVERS = ("mysql@9.7", "mariadb@11.8", "mariadb@10.11")
TLS = mechanisms.get("tls")
CANARY = "canary0123456789abcdef"
OFF = {"mysql": {"tls-version": ""}, "mariadb": {"skip-ssl": "1"}}
"""Settings that disable a server's TLS completely."""

MARIADB_TAKES = {"require-secure-transport"}
"""Settings that MariaDB takes while it runs; of those that tests ask for, MySQL takes all."""
LIGHT = {"mysql": {"performance-schema": "OFF"}, "mariadb": dict[str, str]()}
"""Settings of a server that counts nothing by event: of MySQL that is a third of what it takes to start."""
LONGEST_ARGUMENT = 100_000
"""Characters. More than the kernel accepts in one argument is passed on standard input."""


class ServerCopies:
    """One server's data, made once. Tests start copies of it, with other settings."""

    def __init__(self, installation: Installation, run_supervisor: Supervisor, directory: Path, logs: Path) -> None:
        self.installation = installation
        self.engine: Engine = engines.get(installation.engine)
        self.supervisor = run_supervisor
        self.directory = directory
        self.logs = logs
        self.copies = 0
        self.secrets = directory.parent / "secrets"
        self.engine.initialise(installation, directory, run_supervisor)

    @contextmanager
    def started(self, settings: dict[str, str] | None = None, **factors: str) -> Iterator[Server]:
        """With TLS if factors are given; `settings` are added."""
        wanted = TLS.server_settings(self.engine, TLS.check(factors), self.secrets) if factors else {}
        wanted = LIGHT[self.engine.name] | wanted
        self.copies += 1
        directory = self.directory.with_name(f"copy-{self.copies}")
        dataset.copy(self.directory, directory)
        server = self.engine.start(
            StartRequest(
                self.installation, directory, self.supervisor, settings=wanted | (settings or {}), logs=self.logs
            )
        )
        try:
            yield server
        finally:
            server.stop()
            shutil.rmtree(directory)

    @contextmanager
    def altered(self, server: Server, settings: dict[str, str], **factors: str) -> Iterator[Server]:
        """With `settings`: this server of these factors, if it takes them while it runs, else another that is started."""
        if self.engine.name != "mysql" and not settings.keys() <= MARIADB_TAKES:
            with self.started(settings, **factors) as other:
                yield other
            return
        names = [each.replace("-", "_") for each in settings]
        with Agent() as agent:
            agent.connect("admin", self.fields(server, "encrypted", **factors))
            (before,) = agent.query("admin", f"SELECT {', '.join(f'@@global.{each}' for each in names)}")
            _set(agent, dict(zip(names, settings.values(), strict=True)))
            try:
                yield server
            finally:
                _set(agent, dict(zip(names, map(str, before), strict=True)))

    def forget_logins(self, server: Server) -> None:
        """Let its cache of logins be as after its start."""
        done = self.client(server, "FLUSH PRIVILEGES", *self.clear())
        assert done.returncode == 0, done.stderr

    def fields(self, server: Server, arm: str, **factors: str) -> Connection:
        """The agent's `connect` for one arm."""
        added = TLS.connection(self.engine, "plain" if arm == "plain" else "encrypted", factors, self.secrets)
        return server.connection() | added

    def client(self, server: Server, sql: str, *options: str) -> subprocess.CompletedProcess[str]:
        """The server's own client program."""
        fields = server.connection()
        program = Path(self.installation.location).parent / "bin" / self.engine.name
        target = ["-h127.0.0.1", f"-P{fields.port}", f"-u{fields.user}"]
        long = len(sql) > LONGEST_ARGUMENT
        asked = ["-BN"] if long else ["-BNe", sql]
        return subprocess.run(
            [program, "--no-defaults", *target, f"--database={fields.database}", *options, *asked],
            input=sql if long else None,
            capture_output=True,
            text=True,
            check=False,
            env={"MYSQL_PWD": reveal(fields.password), "HOME": "/nonexistent"},
        )

    def pair(self, server: Server, **factors: str) -> ServerPair:
        """What `prove` examines."""
        connect: dict[Arm, Connection] = {arm: self.fields(server, arm, **factors) for arm in ARMS}
        return ServerPair(
            connect=connect,
            servers=[server],
            by_arm={"plain": server, "encrypted": server},
            promised={"encrypted": TLS.promises(factors)},
            canary=CANARY,
        )

    def clear(self) -> list[str]:
        """Options with which that client connects unencrypted."""
        return ["--ssl-mode=DISABLED", "--get-server-public-key"] if self.engine.name == "mysql" else ["--skip-ssl"]


def _set(agent: Agent, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        agent.query("admin", f"SET GLOBAL {name} = {value if value.isalnum() else repr(value)}")
    if any(name.startswith(("tls", "ssl")) for name in variables):
        agent.query("admin", "ALTER INSTANCE RELOAD TLS")


@contextmanager
def server_copies(installation: Installation, logs: Path) -> Iterator[ServerCopies]:
    with Supervisor(run_directory.new_id()) as run_supervisor:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        yield ServerCopies(installation, run_supervisor, scratch / "data", logs)
    assert run_supervisor.problems == []
