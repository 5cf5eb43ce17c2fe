"""The agent's `setup` on real servers: it is split into statements as PostgreSQL, MySQL and MariaDB do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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

POSTGRESQL = r"""
SET my.first = 'a;''b'; -- ; no end
SELECT E'it\'s; one', '\', $$;'$$, $t$ $$;$$ $t$ /* ; /* ; */ */;
DO $do$ BEGIN PERFORM 1; PERFORM set_config('my.second', E'c\';', false); END $do$;
CREATE OR REPLACE FUNCTION pg_temp.third() RETURNS text AS $$ BEGIN PERFORM 1; RETURN 'd;'; END $$ LANGUAGE plpgsql;
"""
MYSQL = r"""
SET @first = 'a;''b'; -- ; no end
SET @second = 'c\';', @`odd;` = "\";" # ; no end
/* ; */;
/*!40101 SET @third = 'd;' */;
"""
# What the setup set in a session, and the expected value.
LEFT = {
    "postgresql": (
        POSTGRESQL,
        "SELECT current_setting('my.first'), current_setting('my.second'), pg_temp.third()",
        ["a;'b", "c';", "d;"],
    ),
    "mysql": (MYSQL, "SELECT @first, @second, @third", ["a;'b", "c';", "d;"]),
    "mariadb": (MYSQL, "SELECT @first, @second, @third", ["a;'b", "c';", "d;"]),
}

Site = tuple[str, Connection]


@pytest.fixture(scope="module", params=list(LEFT))
def site(
    request: pytest.FixtureRequest,
    require_server: Callable[..., Installation],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    """A server's name, and the fields that connect the agent to it."""
    engine, installation = engines.get(request.param), require_server(request.param)
    with Supervisor(run_directory.new_id()) as run_supervisor:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        engine.initialise(installation, scratch / "data", run_supervisor)
        running = engine.start(
            StartRequest(installation, scratch / "data", run_supervisor, logs=tmp_path_factory.mktemp("logs"))
        )
        yield engine.name, running.connection()
        running.stop()


@pytest.fixture
def agent() -> Iterator[Agent]:
    with Agent() as started:
        yield started


def run(agent: Agent, sql: str, operations: int) -> tuple[int, int, str]:
    """Return operations, rows, and the first error."""
    ask(agent, {"type": "program", "name": "test"})
    ask(agent, {"type": "transaction", "name": "only", "weight": 1})
    ask(agent, {"type": "statement", "transaction": "only", "sql": sql, "parameters": ""})
    done = agent.slice("a", 60, discard=0, seed=1, operations=operations)
    return done.operations, done.rows, done.first_error


@pytest.mark.parametrize("more", [{}, {"per_request": True}, {"per_request": True, "connections": 3}])
def test_a_setup_is_cut_where_the_server_ends_statements(agent: Agent, site: Site, more: Changes) -> None:
    name, fields = site
    setup, look, wanted = LEFT[name]
    agent.connect("a", fields | {"setup": setup} | more)
    assert agent.query("a", look) == [wanted]
    # With one connection per operation, the setup is part of the operation.
    assert run(agent, look, 4) == (4, 4, "")


@pytest.mark.parametrize("per_request", [False, True])
def test_a_backslash_means_what_the_server_says(agent: Agent, site: Site, per_request: bool) -> None:
    name, fields = site
    agent.connect("owner", fields)
    if name == "postgresql":
        # In this setup a backslash is an escape if the server's settings say so, and otherwise an ordinary character.
        change, back = (
            "ALTER ROLE CURRENT_USER SET standard_conforming_strings = off",
            "ALTER ROLE CURRENT_USER RESET ALL",
        )
        setup, look, wanted = r"SET my.word = 'a\';b'; SELECT 1", "SELECT current_setting('my.word')", "a';b"
    else:
        change, back = "SET GLOBAL sql_mode = 'NO_BACKSLASH_ESCAPES'", "SET GLOBAL sql_mode = DEFAULT"
        setup, look, wanted = r"SET @word = 'a\'; SET @other = ';b'", "SELECT CONCAT(@word, @other)", "a\\;b"
    agent.query("owner", change)
    try:
        agent.connect("a", fields | {"setup": setup, "per_request": per_request})
        assert agent.query("a", look) == [[wanted]]
    finally:
        agent.query("owner", back)


def test_the_body_of_a_routine_is_one_statement(agent: Agent, site: Site) -> None:
    name, fields = site
    if name == "postgresql":
        body = "RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE 1 WHEN 1 THEN 7 END; END"
        setup, look = f"SELECT 1; CREATE OR REPLACE FUNCTION seven() {body}; SELECT 2", "SELECT seven()"
    else:
        body = "READS SQL DATA BEGIN IF 1 THEN SET @a = 1; END IF; RETURN CASE 1 WHEN 1 THEN 7 END; END"
        setup = f"DROP FUNCTION IF EXISTS seven; CREATE FUNCTION seven() RETURNS INT {body}; SELECT 2"
        look = "SELECT seven()"
        agent.connect("owner", fields)
        if name == "mysql":
            agent.query("owner", "SET GLOBAL log_bin_trust_function_creators = 1")
    agent.connect("a", fields | {"setup": setup})
    assert agent.query("a", look) == [["7"]]
