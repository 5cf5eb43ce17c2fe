"""stores: a key-value store like a user's own: two ports, keys that ciphercost did not make, and a user who may read some of them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ciphercost import engines, mechanisms
from ciphercost.engines import Server, StartRequest
from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.host import pki, run_ownership, supervisor
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from ciphercost.model.secret import reveal
from ciphercost.model.spec import CellSpec

PASSWORD = "it's mine"
KEYS = 50
USER = f'ACL SETUSER me reset on ">{PASSWORD}" ~mine:* +get'


class Store:
    """A running store, reached as the user `me`, who may GET the keys `mine:…` and nothing else."""

    def __init__(self, name: str, server: Server, ca: Path) -> None:
        self.name = name
        self.server = server
        self.ca = ca
        self.target = f"{name}:tls"
        self.fields = server.connection()
        self.port, self.tls_port = self.fields.port, server.other_ports["tls"]["port"]
        self.clear = f"{name}://me@localhost:{self.port}"
        self.encrypted = f"{name}s://me@localhost:{self.tls_port}/0"
        self.environment = {"REDISCLI_AUTH": PASSWORD}

    @property
    def urls(self) -> tuple[str, ...]:
        return ("--url", self.clear, "--url", self.encrypted)

    def cell(self, sql: Path) -> CellSpec:
        return CellSpec(
            self.name, "tls", url=f"{self.clear} {self.encrypted}", ca=str(self.ca), sql=str(sql), clients=2
        )

    def ask(self, *commands: str) -> list[str | None]:
        """The values of the last command's answer, asked by the administrator."""
        return self.answers(*commands)[-1]

    def answers(self, *commands: str) -> list[list[str | None]]:
        """The values of each command's answer."""
        with Agent() as agent:
            agent.connect("look", self.fields)
            return [[row[0] for row in agent.query("look", each)] for each in commands]

    def state(self) -> list[object]:
        """Every key with its type, value and expiry, every user, every setting, and every refusal by rights."""
        keys = sorted(str(each) for each in self.ask("KEYS *"))
        commands = [f"{word} {each}" for each in keys for word in ("TYPE", "GET", "TTL")]
        return [keys, *self.answers(*commands, "ACL LIST", "CONFIG GET *", "ACL LOG")]

    @contextmanager
    def monitored(self) -> Iterator[list[str]]:
        """The lines of MONITOR, as the administrator sees them; complete when the block ends."""
        lines: list[str] = []
        with (
            socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection,
            connection.makefile("rwb") as stream,
        ):
            stream.write(f"AUTH {reveal(self.fields.password)}\r\nMONITOR\r\n".encode())
            stream.flush()
            assert stream.readline() == b"+OK\r\n"
            assert stream.readline() == b"+OK\r\n"

            def read() -> None:
                for line in stream:
                    lines.append(line.decode(errors="replace").strip())
                    if "the-end-of-it" in lines[-1]:
                        return

            reader = threading.Thread(target=read)
            reader.start()
            try:
                yield lines
            finally:
                self.ask("ECHO the-end-of-it")
                reader.join(60)


@contextmanager
def store(name: str, directory: Path) -> Iterator[Store]:
    """A store with both ports and a certificate by an authority of its own."""
    engine = engines.get(name)
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        made = pki.Pki(scratch / "secrets", certificate="ecdsa-p256")
        run_ownership.hand_over(scratch / "secrets")
        ca = directory / "ca.pem"
        ca.write_bytes(made.ca.read_bytes())
        installation = engine.find()
        engine.initialise(installation, scratch / "server", run_supervisor)
        settings = HasTls.of(engine).tls_settings(made, mechanisms.get("tls").check({}))
        server = engine.start(
            StartRequest(installation, scratch / "server", run_supervisor, settings=settings, logs=directory)
        )
        try:
            found = Store(name, server, ca)
            found.ask(USER, *(f"SET mine:{n} value-{n:04}" for n in range(1, KEYS + 1)), "SET others:1 secret")
            yield found
        finally:
            server.stop()
