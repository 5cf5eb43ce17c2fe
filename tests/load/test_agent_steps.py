"""Scripts that decide, run by the agent on real servers: what it binds and captures, retries, query modes, pipelines.

What steps do without a server is in `agents/vectors/steps.jsonl` and `sqlite-steps.jsonl`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import pytest

from asking import ask
from ciphercost import engines
from ciphercost.engines import StartRequest
from ciphercost.host import supervisor
from ciphercost.host.installation import Installation
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from ciphercost.model.connection import Changes, Connection
from ciphercost.model.errors import AgentError
from ciphercost.model.slices import AgentSlice

SERVERS = ("postgresql", "mysql", "firebird", "duckdb")
"""One for each driver of SQL; SQLite's is in the vectors."""
TRUE = {"postgresql": "t", "mysql": "1", "firebird": "TRUE", "duckdb": "true"}
OPERATIONS = 3


class Site(NamedTuple):
    name: str
    fields: Connection
    logs: Any


@pytest.fixture(scope="module", params=SERVERS)
def site(
    request: pytest.FixtureRequest,
    require_server: Callable[..., Installation],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    engine = engines.get(request.param)
    installation = require_server(request.param)
    with Supervisor(run_directory.new_id()) as run_supervisor:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        engine.initialise(installation, scratch / "data", run_supervisor)
        logs = tmp_path_factory.mktemp("logs")
        running = engine.start(StartRequest(installation, scratch / "data", run_supervisor, logs=logs))
        with Agent() as agent:
            agent.connect("a", running.connection())
            agent.query("a", "CREATE TABLE seen (n INTEGER NOT NULL, txt VARCHAR(40), x DOUBLE PRECISION, b BOOLEAN)")
            agent.query("a", "CREATE TABLE pairs (id INTEGER NOT NULL PRIMARY KEY, v INTEGER)")
            agent.query("a", "INSERT INTO pairs VALUES (1, 0)")
            agent.query("a", "INSERT INTO pairs VALUES (2, 0)")
        yield Site(request.param, running.connection(), logs)
        running.stop()


@pytest.fixture
def agent(site: Site) -> Iterator[Agent]:
    with Agent() as started:
        started.connect("look", site.fields)
        started.query("look", "DELETE FROM seen")
        yield started


def step(do: str, expression: str = "", variable: str = "") -> dict[str, str]:
    fields = {"expression": expression, "variable": variable}
    return {"type": "step", "do": do, **{name: value for name, value in fields.items() if value}}


def statement(sql: str, parameters: str = "", into: str | None = None) -> dict[str, str]:
    return {"type": "statement", "sql": sql, "parameters": parameters, **({} if into is None else {"into": into})}


def run(
    agent: Agent,
    site: Site,
    body: list[dict[str, str]],
    operations: int = OPERATIONS,
    connection: Changes | None = None,
    **travels: Any,
) -> AgentSlice:
    """Run a transaction of these steps and statements; every name that is no other variable's is a computed one."""
    ask(agent, {"type": "program", "name": "steps", **travels})
    ask(agent, {"type": "variable", "name": "n", "kind": "sequence", "low": 1})
    ask(agent, {"type": "variable", "name": "me", "kind": "client"})
    for name in ("a", "x", "o_top", "o_txt", "nothing", "yes"):
        ask(agent, {"type": "variable", "name": name, "kind": "computed"})
    ask(agent, {"type": "transaction", "name": "t", "weight": 1})
    for message in body:
        ask(agent, {**message, "transaction": "t"})
    agent.connect("arm", msgspec.structs.replace(site.fields, **(connection or {})))
    return agent.slice("arm", 60, discard=0, seed=1, operations=operations)


def script(name: str) -> list[dict[str, str]]:
    """Stores what it computes; a row gives a number and a text; branches and sleep stand within a transaction."""
    number = "CAST($1 AS INTEGER)" if name == "firebird" else "$1"
    return [
        step("set", "(+ (* :n 2) 1)", "a"),
        step("set", "(/ :a 4.0)", "x"),
        step("set", "null", "nothing"),
        step("set", "(< 1 2)", "yes"),
        statement("BEGIN"),
        statement(f"SELECT 40 + {number} AS top, 'it''s' AS txt FROM pairs WHERE id = 1", "n", into="o_"),
        step("if", "(< 41 :o_top)"),
        statement("INSERT INTO seen VALUES ($1, $2, $3, $4)", "o_top o_txt x yes"),
        step("sleep", "2000"),
        step("else"),
        statement("INSERT INTO seen VALUES ($1, $2, $3, $4)", "o_top nothing nothing nothing"),
        step("endif"),
        statement("COMMIT"),
    ]


@pytest.mark.parametrize("connection", [{}, {"connections": 3}, {"per_request": True}])
def test_values_are_bound_and_captured_whatever_their_type(agent: Agent, site: Site, connection: Changes) -> None:
    done = run(agent, site, script(site.name), connection=connection)
    assert (done.operations, done.errors, done.rows) == (OPERATIONS, 0, OPERATIONS), done.first_error
    stored = [
        (row[0], row[1], row[2] and float(row[2]), row[3])
        for row in agent.query("look", "SELECT * FROM seen ORDER BY n")
    ]
    true = TRUE[site.name]
    assert stored == [("41", None, None, None), ("42", "it's", 1.25, true), ("43", "it's", 1.75, true)]


@pytest.mark.parametrize("mode", ["simple", "extended"])
def test_statements_travel_as_asked_or_are_refused(agent: Agent, site: Site, mode: str) -> None:
    if site.name == "postgresql" or (site.name, mode) == ("mysql", "simple"):
        done = run(agent, site, script(site.name), mode=mode)
        assert (done.operations, done.errors) == (OPERATIONS, 0), done.first_error
        stored = [(row[0], row[1]) for row in agent.query("look", "SELECT n, txt FROM seen ORDER BY n")]
        assert stored == [("41", None), ("42", "it's"), ("43", "it's")]
    else:
        with pytest.raises(AgentError) as refused:
            run(agent, site, script(site.name), mode=mode)
        assert refused.value.code == "statement"


def test_an_error_between_statements_rolls_back(agent: Agent, site: Site) -> None:
    body = [
        statement("BEGIN"),
        statement("INSERT INTO seen VALUES (9, 'never', 0, NULL)"),
        step("set", "(/ 1 0)", "a"),
        statement("COMMIT"),
    ]
    done = run(agent, site, body)
    assert (done.operations, done.errors) == (0, OPERATIONS)
    assert "division by zero" in done.first_error
    assert agent.query("look", "SELECT count(*) FROM seen") == [["0"]]


MEETINGS = 20
"""How often two transactions are begun, until both have waited for each other: on a busy machine one may end before the other begins."""


# The others find deadlocks after ten seconds, or have none.
@pytest.mark.parametrize("site", ["postgresql", "mysql"], indirect=True)
def test_a_deadlock_is_begun_again_as_often_as_allowed(agent: Agent, site: Site) -> None:
    one, other = (statement(f"UPDATE pairs SET v = v + 1 WHERE id = {number}") for number in (1, 2))
    # Both wait until the other has its first row.
    wait = step("sleep", "20000")
    body = [
        statement("BEGIN"),
        *([statement("SET LOCAL deadlock_timeout = '10ms'")] if site.name == "postgresql" else []),
        step("if", "(= :me 0)"), one, wait, other, step("else"), other, wait, one, step("endif"),
        statement("COMMIT"),
    ]  # fmt: skip
    before = [int(row[0] or 0) for row in agent.query("look", "SELECT v FROM pairs ORDER BY id")]
    stored = 0
    for _ in range(MEETINGS):
        once = run(agent, site, body, operations=4, connection={"connections": 2})
        assert (once.operations + once.errors, once.retries) == (4, 0)
        stored += once.operations
        if once.errors:
            break
    assert once.errors > 0
    for _ in range(MEETINGS):
        often = run(agent, site, body, operations=4, connection={"connections": 2}, tries=100)
        assert (often.operations, often.errors) == (4, 0), often.first_error
        stored += often.operations
        if often.retries:
            break
    assert often.retries > 0
    after = [int(row[0] or 0) for row in agent.query("look", "SELECT v FROM pairs ORDER BY id")]
    assert after == [value + stored for value in before], "what was rolled back is not stored"


def test_a_pipeline_is_sent_at_once_on_postgresql_and_refused_elsewhere(agent: Agent, site: Site) -> None:
    body = [
        step("startpipeline"),
        statement("SELECT id FROM pairs"),
        step("set", "5", "a"),
        statement("INSERT INTO seen VALUES ($1, 'piped', 0, NULL)", "a"),
        step("syncpipeline"),
        statement("SELECT id FROM pairs"),
        step("endpipeline"),
        statement("SELECT id FROM pairs"),
    ]
    if site.name != "postgresql":
        with pytest.raises(AgentError) as refused:
            run(agent, site, body)
        assert refused.value.code == "statement"
        return
    kinds: tuple[Changes, ...] = ({}, {"connections": 3}, {"per_request": True})
    for connection in kinds:
        agent.query("look", "DELETE FROM seen")
        done = run(agent, site, body, connection=connection)
        assert (done.operations, done.errors, done.rows) == (OPERATIONS, 0, 6 * OPERATIONS), done.first_error
        assert agent.query("look", "SELECT count(*) FROM seen WHERE n = 5") == [[str(OPERATIONS)]]
    single = run(agent, site, body)
    apart = run(agent, site, [message for message in body if "pipeline" not in message.get("do", "")])
    assert single.segments_sent < apart.segments_sent
    failing = [
        step("startpipeline"),
        statement("SELECT 1 / (id - 1) FROM pairs"),
        statement("SELECT 2"),
        step("endpipeline"),
    ]
    done = run(agent, site, failing)
    assert (done.operations, done.errors) == (0, OPERATIONS)
    assert done.error_kinds == f"22012={OPERATIONS}"
    assert run(agent, site, body).errors == 0
