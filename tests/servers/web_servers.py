"""web_servers: what tests of web servers share: which servers, started on documents of the test, and an agent's
requests.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from asking import ask
from ciphercost import engines, mechanisms
from ciphercost.engines import Server, StartRequest
from ciphercost.engines._web.family import Web
from ciphercost.host import supervisor
from ciphercost.host.installation import Installation
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from ciphercost.model.connection import Connection
from ciphercost.provision import dataset

SERVERS = ("nginx@1.22", "nginx@1.26", "apache@2.4", "caddy@2.11", "haproxy@3.0")
TLS = mechanisms.get("tls")
CANARY = "canary0123456789abcdef"
DOCUMENTS = {"/1KB": 1000, "/100KB": 100_000, "/empty": 0, "/deep/er/page.html": 10_000, "/250MB": 250_000_000}


class Site:
    """One server's documents, made once. Tests start the server on them as often as needed, with other settings."""

    def __init__(
        self,
        installation: Installation,
        run_supervisor: Supervisor,
        scratch: Path,
        logs: Path,
        documents: Mapping[str, int],
    ) -> None:
        self.installation = installation
        engine = engines.get(installation.engine)
        assert isinstance(engine, Web)
        self.engine = engine
        self.supervisor = run_supervisor
        self.directory = scratch / "template"
        self.logs = logs
        self.secrets = scratch / "secrets"
        self.copies = 0
        engine.initialise(installation, self.directory, run_supervisor)
        self.documents = scratch / "documents"
        most = engine.largest_document or max(documents.values(), default=0)
        fitting = {path: size for path, size in documents.items() if size <= most}
        engine.lay_out(self.directory, self.documents, fitting, CANARY)

    @contextmanager
    def started(
        self,
        factors: Mapping[str, str] | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        cpus: set[int] | None = None,
    ) -> Iterator[Server]:
        """With TLS if factors are given; `settings` are added."""
        wanted = TLS.server_settings(self.engine, TLS.check(factors), self.secrets) if factors else {}
        self.copies += 1
        directory = self.directory.with_name(f"copy-{self.copies}")
        dataset.copy(self.directory, directory)
        server = self.engine.start(
            StartRequest(
                self.installation,
                directory,
                self.supervisor,
                cpus=cpus,
                settings=wanted | dict(settings or {}),
                logs=self.logs,
            )
        )
        try:
            yield server
        finally:
            server.stop()
            shutil.rmtree(directory)

    def fields(self, server: Server, arm: str, factors: Mapping[str, str] | None = None) -> Connection:
        """The agent's `connect` for one arm: `plain`, `encrypted` or `no-sendfile`."""
        if arm == "encrypted":
            added = TLS.connection(self.engine, "encrypted", factors or {}, self.secrets)
            return server.connection() | added | server.other_ports["tls"]
        return server.connection() | {"tls": "off"} | server.other_ports.get(arm, {})


@contextmanager
def site(installation: Installation, logs: Path, documents: Mapping[str, int] = DOCUMENTS) -> Iterator[Site]:
    with Supervisor(run_directory.new_id()) as run_supervisor:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        yield Site(installation, run_supervisor, scratch, logs, documents)
    assert run_supervisor.problems == []


def program(agent: Agent, *requests: str) -> None:
    """What an operation is: these requests, one after the other."""
    ask(agent, {"type": "program", "name": "test"})
    ask(agent, {"type": "transaction", "name": "t", "weight": 1})
    for each in requests:
        ask(agent, {"type": "statement", "transaction": "t", "sql": each, "parameters": ""})
