"""behind: the real servers behind the middle, and the commands that reach them through it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ciphercost import engines
from ciphercost.runs import archive
from middle import direct
from middle.middle import Upgrade
from middle.mysql import Mysql
from middle.postgresql import Postgresql
from userservers import user_server
from web_servers import site

CLI = Path(sys.executable).parent / "ciphercost"
COMMANDS = ("prove", "run", "clean", "calibrate", "predict")
"""Every command that takes the address of a server; `tests/commands/test_server_commands.py` holds it against their options."""
CONNECTING = ("prove", "run", "clean", "predict")
"""Those that connect to a server whose authority the user names. Both arms of the others are unencrypted, so they take no --ca."""
CLIENTS = {
    "postgresql": ("rust", "jdbc"),
    "mysql": ("rust", "jdbc"),
    "mariadb": ("rust", "jdbc"),
    "nginx": ("rust",),
    "valkey": ("rust",),
}
"""By server: the clients that ciphercost has for it."""
DATABASES = ("postgresql", "mysql", "mariadb")
REPOSITORY = Path(__file__).parents[2]
RUNS = {
    "postgresql": REPOSITORY / "tests" / "records" / "postgresql-tls.tar.xz",
    "mysql": REPOSITORY / "book" / "runs" / "12-mysql-tls.tar.xz",
    "mariadb": REPOSITORY / "book" / "runs" / "13-mariadb-tls.tar.xz",
}
"""Runs from which `predict` tells what the server's load would cost."""


def takes(command: str, server: str, client: str) -> bool:
    """Whether a command reaches this server, by this client. Pure."""
    if command == "predict":  # of nginx it reads another page, of Valkey another URL
        return server in RUNS and client == "rust"
    if command == "clean":  # nothing of ours is ever on other servers, and the command makes no load
        return server in DATABASES and client == "rust"
    # Valkey is a server of ours here.
    return command != "calibrate" or server != "valkey"


QUICK = ("--quick", "--time", "4s", "--no-latency", "--no-progress", "-o", "out")


class Behind(NamedTuple):
    """A server. `port(encrypted)`: where it listens. `argv(command, port, ca, cells)`: a command that reaches it at another
    port; `cells`: the mechanisms of the cells of `run`, on a database.
    """

    name: str
    upgrade: Upgrade
    port: Callable[[bool], int]
    argv: Callable[[str, int, Path | None, Sequence[str]], Sequence[str]]
    environment: dict[str, str]
    ca: Path | None = None
    """The authority of the server's own certificate. None: ciphercost made it."""


@contextmanager
def server(name: str, directory: Path) -> Iterator[Behind]:
    """A running server; its logs are in the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    with {"nginx": _nginx, "valkey": _valkey}.get(name, partial(_database, name))(directory) as behind:
        yield behind


@contextmanager
def _database(name: str, directory: Path) -> Iterator[Behind]:
    record = archive.unpack(RUNS[name], directory)
    with user_server(name, directory) as database:

        def argv(command: str, port: int, ca: Path | None, cells: Sequence[str]) -> Sequence[str]:
            url = database.url_for(str(database.fields.user), port)
            options = ("--url", url, "--ca", str(ca))
            load = ("--for", "1s", "--rate", "1000/s", "--cpu", "1ms")
            return {
                "predict": ("predict", str(record), *options, *load),
                "prove": ("prove", url, "--ca", str(ca)),
                "run": ("run", *(f"{name}:{mechanism}" for mechanism in cells), *options, *QUICK),
                "clean": ("clean", "--engine", name, *options),
                "calibrate": ("calibrate", name, *options, *QUICK),
            }[command]

        upgrade = Postgresql() if name == "postgresql" else Mysql()
        yield Behind(name, upgrade, lambda encrypted: database.fields.port, argv, database.environment, database.ca)


@contextmanager
def _nginx(directory: Path) -> Iterator[Behind]:
    with (
        site(engines.get("nginx").find(), directory, {"/index.html": 500}) as pages,
        pages.started({"certificate": "ecdsa-p256"}) as running,
    ):
        plain = running.connection().port
        encrypted = running.other_ports["tls"]["port"]

        def argv(command: str, port: int, ca: Path | None, cells: Sequence[str]) -> Sequence[str]:
            urls = [f"{scheme}://localhost:{port}/index.html" for scheme in ("http", "https")]
            options = ("--url", urls[0], "--url", urls[1], "--ca", str(ca))
            return {
                "prove": ("prove", urls[1], "--ca", str(ca)),
                "run": ("run", "url:tls", *options, *QUICK),
                "calibrate": ("calibrate", "url", *options, *QUICK),
            }[command]

        yield Behind(
            "nginx",
            direct.HTTP,
            lambda wanted: encrypted if wanted else plain,
            argv,
            {},
            pages.secrets / "tls-ecdsa-p256" / "ca.pem",
        )


@contextmanager
def _valkey(directory: Path) -> Iterator[Behind]:
    """Valkey takes no URL, so `own_server.py` starts one and puts the middle before its port for TLS."""
    ports = directory / "port"

    def argv(command: str, port: int, ca: Path | None, cells: Sequence[str]) -> Sequence[str]:
        start = (str(Path(__file__).with_name("own_server.py")), "valkey", str(port), str(ca or ""), str(ports))
        return (*start, "prove", "valkey:tls") if command == "prove" else (*start, "run", "valkey:tls", *QUICK)

    yield Behind("valkey", direct.RESP, lambda encrypted: int(ports.read_text()), argv, {})
