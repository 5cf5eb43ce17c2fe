"""firebird: a Firebird server for tests, with the fields that reach it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ciphercost.engines import StartRequest
from ciphercost.engines.firebird import ENGINE, FirebirdServer
from ciphercost.host import supervisor
from ciphercost.host.installation import Installation
from ciphercost.model import run_directory
from ciphercost.model.connection import Connection


@contextmanager
def started(installation: Installation, **settings: str) -> Iterator[FirebirdServer]:
    """A separate server with a separate supervisor."""
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
        directory = supervisor.scratch(run_supervisor.run_id, run_supervisor) / "data"
        ENGINE.initialise(installation, directory, run_supervisor)
        server = ENGINE.start(
            StartRequest(installation, directory, run_supervisor, settings=settings, logs=directory.parent)
        )
        assert isinstance(server, FirebirdServer)
        yield server
        server.stop()


def url(server: FirebirdServer, name: str = "") -> str:
    """The URL of a server's database, by its path, as if the server were the user's own."""
    fields: Connection = server.connection()
    assert server.directory is not None
    database: Path | str = name or server.directory / "database.fdb"
    return f"firebird://{fields.user}@localhost:{fields.port}/{database}"
