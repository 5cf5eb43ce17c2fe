"""Statements that users bring, run on a table of theirs by a user who may read it and nothing else."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import cases
from conftest import RequireServer
from test_real import SHORT, measured
from userservers import CATALOGUE, UserServer, user_server

ORDERS = {
    "postgresql": [
        "CREATE ROLE owner",
        "CREATE TABLE orders (id bigserial PRIMARY KEY, customer text, doc jsonb, note text)",
        "INSERT INTO orders (customer, note) SELECT 'customer ' || i, 'note ' || i FROM generate_series(1, 20000) i",
        "ALTER TABLE orders OWNER TO owner",
        "CREATE FUNCTION note_of(bigint) RETURNS text LANGUAGE sql AS $f$ SELECT note FROM orders WHERE id = $1 $f$",
        "CREATE ROLE me LOGIN PASSWORD 'reads'",
        "GRANT SELECT ON orders TO me",
        "GRANT SELECT, INSERT, UPDATE ON pgbench_accounts, pgbench_tellers, pgbench_branches, pgbench_history TO me",
    ],
    "mariadb": [
        "CREATE TABLE orders (id int AUTO_INCREMENT PRIMARY KEY, customer varchar(50), note text)",
        "INSERT INTO orders (customer, note) SELECT concat('customer ', seq), concat('note ', seq) FROM seq_1_to_20000",
        "CREATE USER me IDENTIFIED BY 'reads'",
        "GRANT SELECT ON orders TO me",
    ],
}
"""What an owner made before ciphercost came."""


class Owned(NamedTuple):
    """A server, and its state before any run on it."""

    server: UserServer
    state: list[object]


@pytest.fixture(scope="module")
def servers(
    tmp_path_factory: pytest.TempPathFactory, require_server: RequireServer
) -> Iterator[Callable[[str], Owned]]:
    """By name: a server with the table, started when it is first asked for, and its state then."""
    with contextlib.ExitStack() as open_:

        @functools.cache
        def started(name: str) -> Owned:
            require_server(name)
            server = open_.enter_context(user_server(name, tmp_path_factory.mktemp(name)))
            if name == "postgresql":
                server.pgbench("-i", "-q")  # as its users do
            server.ask(*ORDERS[name])
            return Owned(server, server.state())

        yield started


@pytest.mark.parametrize("case", cases.of("statements"), ids=lambda case: f"{case.input}-{case.server}")
def test_a_statement(
    case: cases.Case,
    servers: Callable[[str], Owned],
    tmp_path: Path,
    record_property: cases.Record,
) -> None:
    server, before = servers(case.server)
    done = measured(
        "run", f"{case.server}:tls", "--url", server.url_for("me"), *server.by_ca, "--sql", str(case.path), *SHORT,
        cwd=tmp_path,
        **dict.fromkeys(server.environment, "reads"),
    )  # fmt: skip
    case.judge(done, record_property)
    kept = len(CATALOGUE[case.server]) if case.writes else None
    assert server.state()[:kept] == before[:kept]
