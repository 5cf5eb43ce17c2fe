"""The same scripts through the real pgbench and through ciphercost's agent: the server must have logged the same statements.

One server runs both. The scripts draw nothing that a seed decides, so each statement has one right text.
"""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ciphercost.load import script, sql_text
from ciphercost.load.agent import Agent
from ciphercost.load.program import Program
from ciphercost.model.spec import QueryMode
from conftest import RequireServer
from pgbench_scripts import Scripts
from userservers import UserServer, user_server

FILES, SCRIPTS_EACH = 5, 40
"""Many scripts in few files: a process runs each file once."""
LOG = {
    "log_statement": "all",
    "logging_collector": "on",
    "log_destination": "jsonlog",
    "log_directory": "statements",
    "log_filename": "all.log",
    "fsync": "off",
}
MARKS = itertools.count()
PATIENCE = 60.0
"""Seconds until the server has written its log."""
_PARAMETER = re.compile(r"\$(\d+) = (?:'((?:[^']|'')*)'|NULL)")
_MESSAGE = re.compile(r"(?:statement|execute [^:]*): (.*)", re.DOTALL)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, require_server: RequireServer) -> Iterator[UserServer]:
    require_server("postgresql", "18")
    with user_server("postgresql", tmp_path_factory.mktemp("same"), settings=LOG, version="18") as running:
        yield running


class Log:
    """What the server logs from now on."""

    def __init__(self, server: UserServer) -> None:
        assert server.server.directory is not None
        (self._path,) = server.server.directory.rglob("all.json")
        self._server = server
        self._mark()
        self._from = self._path.stat().st_size

    def _mark(self) -> None:
        """Wait until everything so far is in the file: another process of the server writes it."""
        mark = f"mark {next(MARKS)}"
        self._server.ask(f"SELECT '{mark}'")
        deadline = time.monotonic() + PATIENCE
        while mark not in self._path.read_text():
            assert time.monotonic() < deadline, f"{mark} is not in the server's log"
            time.sleep(0.01)

    def statements(self) -> list[str]:
        """The statements of clients, with their parameters' values in them."""
        self._mark()
        with self._path.open("rb") as file:
            file.seek(self._from)
            entries = [json.loads(line) for line in file]
        found = [
            filled(message[1], entry.get("detail", ""))
            for entry in entries
            if (message := _MESSAGE.match(entry["message"])) and entry.get("backend_type") == "client backend"
        ]
        return [sql for sql in found if not sql.startswith("SELECT 'mark ")]


def filled(sql: str, detail: str) -> str:
    """A statement with values in place of `$1`, without what does not matter: blanks at its ends, and the `;`."""
    values = {number: text.replace("''", "'") for number, text in _PARAMETER.findall(detail)}
    tokens = sql_text.tokens(sql, "postgresql", "log")
    text = "".join(values[token.text[1:]] if token.kind == "place" else token.text for token in tokens)
    # The agent writes -5 as (-5), so that a minus before it makes no comment.
    return re.sub(r"\((-[\d.e+]+)\)", r"\1", text.strip().rstrip(";").rstrip())


def by_pgbench(server: UserServer, path: Path, mode: QueryMode) -> None:
    server.pgbench("-n", "-M", mode, "-f", path, "-t", "1")


def by_agent(server: UserServer, path: Path, mode: QueryMode) -> None:
    parsed = script.parse(path.read_text(), {}, path.name, dialect="postgresql", simple=mode == "simple")
    program = Program(
        name=path.name,
        load=(),
        check="",
        transactions=((path.name, 1, parsed),),
        read_only=True,
        per_request=False,
        clients=1,
        parameters={},
        mode=mode,
    )
    with Agent() as agent:
        agent.program(program.seeded(1))
        agent.connect("plain", server.fields | {"connections": 1, "threads": 1})
        answer = agent.slice("plain", 60, discard=0.0, seed=1, operations=1)
        assert (answer.errors, answer.operations) == (0, 1), answer.first_error


def first_difference(ours: list[str], theirs: list[str]) -> str:
    """The place and both texts; empty: they are the same."""
    for number, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if one != other:
            return f"statement {number}: ciphercost sent {one!r}, pgbench {other!r}"
    return "" if len(ours) == len(theirs) else f"ciphercost sent {len(ours)} statements, pgbench {len(theirs)}"


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_pgbench_and_ciphercost_send_the_same_statements(server: UserServer, mode: QueryMode, tmp_path: Path) -> None:
    sent = 0
    for seed in range(FILES):
        scripts = Scripts(seed, simple=mode == "simple")
        path = tmp_path / f"{seed}.sql"
        path.write_text("".join(scripts.script() for _ in range(SCRIPTS_EACH)))
        logged = []
        for run in (by_agent, by_pgbench):
            log = Log(server)
            run(server, path, mode)
            logged.append(log.statements())
        assert first_difference(*logged) == "", path.read_text()
        sent += len(logged[0])
    assert sent > FILES * SCRIPTS_EACH
