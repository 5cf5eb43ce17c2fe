"""The agent's mysql driver on real servers: how it logs in, what it binds, what it rolls back.

Packets are tested in Rust.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Unpack

import pytest

from asking import ask
from ciphercost import engines, mechanisms
from ciphercost.engines import Server, StartRequest
from ciphercost.host import supervisor
from ciphercost.host.installation import Installation
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from ciphercost.model.connection import Changes, TlsMode, TlsVersion
from ciphercost.model.errors import AgentError
from ciphercost.model.secret import Secret
from ciphercost.model.slices import AgentSlice

ROWS = 2000
TLS_MODES: tuple[TlsMode, ...] = ("off", "require")


@pytest.fixture(scope="module", params=["mysql", "mariadb"])
def server(
    request: pytest.FixtureRequest,
    require_server: Callable[..., Installation],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    """A server with TLS and a table `items` of `ROWS` rows."""
    installation, engine, tls = require_server(request.param), engines.get(request.param), mechanisms.get("tls")
    run_id = run_directory.new_id()
    with Supervisor(run_id) as run_supervisor:
        scratch = supervisor.scratch(run_id, run_supervisor)
        engine.initialise(installation, scratch / "data", run_supervisor)
        settings = tls.server_settings(engine, tls.check({}), scratch / "secrets")
        logs = tmp_path_factory.mktemp("logs")
        running = engine.start(
            StartRequest(installation, scratch / "data", run_supervisor, settings=settings, logs=logs)
        )
        with Agent() as agent:
            agent.connect("loader", running.connection())
            agent.query("loader", "CREATE TABLE items (id INTEGER PRIMARY KEY, name VARCHAR(50), stock INTEGER)")
            values = ",".join(f"({number}, 'n{number}', 0)" for number in range(1, ROWS + 1))
            agent.query("loader", f"INSERT INTO items VALUES {values}; SET GLOBAL max_allowed_packet = 1 << 30")
        yield running
        running.stop()


@pytest.fixture
def agent() -> Iterator[Agent]:
    with Agent() as started:
        yield started


def program(agent: Agent, *statements: tuple[str, str], **variables: Mapping[str, Any]) -> None:
    """A program of one transaction; each statement comes with the names of its parameters."""
    ask(agent, {"type": "program", "name": "test"})
    for name, fields in variables.items():
        ask(agent, {"type": "variable", "name": name, **fields})
    ask(agent, {"type": "transaction", "name": "only", "weight": 1})
    for sql, parameters in statements:
        ask(agent, {"type": "statement", "transaction": "only", "sql": sql, "parameters": parameters})


def run(agent: Agent, arm: str, operations: int) -> AgentSlice:
    return agent.slice(arm, 60, discard=0, seed=1, operations=operations)


ID: Mapping[str, Any] = {"kind": "uniform", "low": 1, "high": ROWS}


def is_mariadb(agent: Agent, arm: str) -> bool:
    return "MariaDB" in str(agent.query(arm, "SELECT version()"))


def test_the_answer_says_how_the_login_went(agent: Agent, server: Server) -> None:
    fields = server.connection()

    def auth(**more: Unpack[Changes]) -> str:
        return str(agent.connect("b", fields | {"user": "other", "password": Secret("secret")} | more).auth)

    agent.connect("a", fields)
    agent.query("a", "CREATE USER other@'127.0.0.1' IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO other@'127.0.0.1'")
    if is_mariadb(agent, "a"):
        assert auth() == auth(tls="require") == "mysql_native_password"
    else:
        assert auth() == "caching_sha2_password full (RSA)"
        assert auth() == auth(tls="require") == "caching_sha2_password fast"
        agent.query("a", "FLUSH PRIVILEGES")
        assert auth(tls="require") == "caching_sha2_password full (TLS)"
        agent.query("a", "FLUSH PRIVILEGES")
        assert auth(connections=3) == "caching_sha2_password fast", "the last connection's"
    for tls in TLS_MODES:
        with pytest.raises(AgentError, match="Access denied") as refused:
            auth(password=Secret("wrong"), tls=tls)
        assert refused.value.code == "1045 (28000)"


def test_ed25519_lets_in(agent: Agent, server: Server) -> None:
    fields = server.connection()
    agent.connect("a", fields)
    if not is_mariadb(agent, "a"):
        return  # MySQL does not have this plugin
    agent.query("a", "INSTALL SONAME 'auth_ed25519'")
    agent.query("a", "CREATE USER signer@'127.0.0.1' IDENTIFIED VIA ed25519 USING PASSWORD('any length of password')")
    signer = fields | {"user": "signer", "database": "", "password": Secret("any length of password")}
    assert agent.connect("b", signer).auth == "client_ed25519"
    with pytest.raises(AgentError, match="Access denied"):
        agent.connect("b", signer | {"password": Secret("another")})


def test_a_bound_integer_finds_its_row_by_the_index(agent: Agent, server: Server) -> None:
    agent.connect("a", server.connection())
    program(agent, ("SELECT name FROM items WHERE id = $1", "id"), id=ID)
    agent.query("a", "FLUSH STATUS")
    assert run(agent, "a", 100).rows == 100
    read = {name: int(value or 0) for name, value in agent.query("a", "SHOW SESSION STATUS LIKE 'Handler_read_%'")}
    assert read["Handler_read_key"] >= 100
    assert read["Handler_read_rnd_next"] < ROWS, "a scan of the table"


def test_both_arms_and_every_kind_of_connection_return_the_same_rows(agent: Agent, server: Server) -> None:
    fields = server.connection()
    program(
        agent,
        ("SELECT $2, '$1', id, stock, NULL FROM items WHERE id IN ($1, 1) AND $2 <> 'it''s' LIMIT $3", "id note most"),
        id=ID,
        note={"kind": "text", "length": 300},
        most={"kind": "constant", "value": "2"},
    )
    kinds: dict[str, Changes] = {"one": {}, "polled": {"connections": 5}}
    for per_request in (False, True):
        seen = []
        for kind in kinds.values():
            for tls in TLS_MODES:
                agent.connect("a", fields | kind | {"tls": tls, "per_request": per_request})
                done = run(agent, "a", 50)
                assert (done.operations, done.errors, done.connects) == (50, 0, 50 * per_request), done.first_error
                seen.append((done.rows, done.checksum))
        assert len(set(seen)) == 1


def test_rows_of_several_packets_pass_and_are_the_same(agent: Agent, server: Server) -> None:
    fields = server.connection()
    program(agent, ("SELECT repeat('a', 20000000), id FROM items WHERE id <= 2", ""))
    seen = []
    for tls in ("off", "require"):
        agent.connect("a", fields | {"tls": tls})
        done = run(agent, "a", 1)
        assert done.bytes_received > 40_000_000
        seen.append((done.rows, done.checksum))
    assert seen[0] == seen[1]
    assert seen[0][0] == 2
    with pytest.raises(AgentError, match="longer than 16 MiB"):
        agent.query("a", "SELECT repeat('a', 20000000)")
    assert agent.query("a", "SELECT 1") == [["1"]]


@pytest.mark.parametrize("more", [{}, {"connections": 3}, {"per_request": True}])
def test_a_failed_operation_is_rolled_back(agent: Agent, server: Server, more: Changes) -> None:
    agent.connect("a", server.connection() | more)
    program(
        agent,
        ("BEGIN", ""),
        ("UPDATE items SET stock = 7 WHERE id = $1", "id"),
        ("INSERT INTO items (id) VALUES ($1)", "id"),
        ("COMMIT", ""),
        id={"kind": "uniform", "low": 1, "high": 1},
    )
    done = run(agent, "a", 4)
    assert (done.operations, done.errors) == (0, 4)
    assert done.first_error.startswith("1062 (23000): Duplicate entry")
    assert agent.query("a", "SELECT count(*) FROM items WHERE stock = 7") == [["0"]]


def test_several_statements_are_for_queries_and_never_for_load(agent: Agent, server: Server) -> None:
    agent.connect("a", server.connection() | {"per_request": True})
    assert agent.query("a", "SELECT 1; SELECT 'a;b' AS x, NULL; SET @x = 1") == [["a;b", None]]
    with pytest.raises(AgentError, match="SQL syntax"):
        agent.query("a", "SELECT 1; SELEC 2")
    program(agent, ("SELECT 1; SELECT 2", ""))
    assert run(agent, "a", 2).errors == 2


@pytest.mark.parametrize(
    "more", [{}, {"connections": 3}, {"per_request": True}, {"per_request": True, "connections": 3}]
)
def test_every_connection_begins_with_its_setup(agent: Agent, server: Server, more: Changes) -> None:
    setup = "SET SESSION lock_wait_timeout = 77; SELECT 'not; counted'; SET @greeted = 'yes'"
    agent.connect("a", server.connection() | {"setup": setup} | more)
    for row in agent.query("a", "SELECT @@lock_wait_timeout, @greeted", everywhere=True):
        assert row == ["77", "yes"]
    program(agent, ("SELECT id FROM items WHERE id = @@lock_wait_timeout AND @greeted = 'yes'", ""))
    done = run(agent, "a", 6)
    assert (done.operations, done.errors, done.rows) == (6, 0, 6), done.first_error
    agent.connect("b", server.connection())
    assert agent.query("b", "SELECT @greeted") == [[None]]


@pytest.mark.parametrize("connections", [1, 3])
def test_a_setup_that_fails_within_a_slice_fails_the_operation(agent: Agent, server: Server, connections: int) -> None:
    agent.connect("b", server.connection())
    agent.query("b", "CREATE TABLE greeting (word VARCHAR(9))")
    setup = "SELECT word FROM greeting"
    agent.connect("a", server.connection() | {"setup": setup, "per_request": True, "connections": connections})
    agent.query("b", "DROP TABLE greeting")
    program(agent, ("SELECT 1", ""))
    done = run(agent, "a", 4)
    assert (done.operations, done.errors, done.rows) == (0, 4, 0)
    assert done.first_error.startswith("setup: 1146 (42S02)")


def test_a_setup_that_fails_is_the_connections_failure(agent: Agent, server: Server) -> None:
    once: Changes = {"per_request": True}
    for more in (Changes(), once):
        with pytest.raises(AgentError, match=r"setup: .*nobody_knows") as refused:
            agent.connect("a", server.connection() | {"setup": "SET SESSION nobody_knows = 1"} | more)
        assert refused.value.code.startswith("1193")


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_connections_side_by_side_resume_their_sessions(agent: Agent, server: Server, version: TlsVersion) -> None:
    agent.connect(
        "a",
        server.connection()
        | {"tls": "require", "tls_max": version, "resumption": True, "per_request": True, "connections": 4},
    )
    program(agent, ("SELECT 1", ""))
    for _ in range(5):  # a busy machine may bring the first ticket late
        done = run(agent, "a", 60)
        assert done.connects == 60
        if done.resumed >= 56:
            break
    assert done.resumed >= 56, "four may begin before the first ticket has come"


def test_a_session_that_is_killed_ends_the_slice_and_the_arm(agent: Agent, server: Server) -> None:
    agent.connect("a", server.connection() | {"tls": "require"})
    number = agent.query("a", "SELECT connection_id()")[0][0]
    agent.connect("b", server.connection())
    agent.query("b", f"KILL {number}")
    program(agent, ("SELECT 1", ""))
    with pytest.raises(AgentError, match=r"^connection lost"):
        run(agent, "a", 1)
    with pytest.raises(AgentError) as gone:
        agent.query("a", "SELECT 1")
    assert gone.value.code == "no-arm"


def test_mariadb_describes_the_columns_of_a_prepared_statement_only_once(agent: Agent, server: Server) -> None:
    """As for its own client library. A description takes more bytes than the rest of this answer."""
    long = "name" * 15
    program(agent, (f"SELECT id AS {long} FROM items WHERE id = $1", "id"), id=ID)
    agent.connect("a", server.connection())
    done = run(agent, "a", 100)
    assert (done.operations, done.errors, done.rows) == (100, 0, 100), done.first_error
    assert (done.bytes_received / done.operations < len(long)) == is_mariadb(agent, "a")
    # A described result again, after the table has changed.
    agent.query("a", "ALTER TABLE items MODIFY id BIGINT")
    changed = run(agent, "a", 100)
    agent.query("a", "ALTER TABLE items MODIFY id INTEGER")
    assert (changed.operations, changed.errors, changed.rows) == (100, 0, 100), changed.first_error
