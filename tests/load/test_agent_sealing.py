"""The agent as an application that encrypts its own data, on every kind of server: what it binds, opens, counts, and
refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

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

KEY = bytes(range(32))
MARK = b"\xc1\x01"
SECRET = {
    "postgresql": "bytea",
    "mysql": "varbinary(500)",
    "mariadb": "varbinary(500)",
    "firebird": "varchar(500) character set octets",
    "sqlite": "blob",
}
HEX = {"postgresql": "encode({}, 'hex')", "firebird": "HEX_ENCODE({})"}
ROWS = 6


class Site:
    """A server's name, and the fields that connect the agent to it."""

    def __init__(self, name: str, fields: Connection) -> None:
        self.name, self.fields = name, fields

    def hex(self, column: str) -> str:
        return HEX.get(self.name, "hex({})").format(column)

    def literal(self, value: bytes) -> str:
        return f"'\\x{value.hex()}'" if self.name == "postgresql" else f"x'{value.hex()}'"


@pytest.fixture(scope="module", params=list(SECRET))
def site(
    request: pytest.FixtureRequest,
    require_server: Callable[..., Installation],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    engine = engines.get(request.param)
    installation = engine.find() if engine.embedded else require_server(request.param)
    with Supervisor(run_directory.new_id()) as run_supervisor:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        engine.initialise(installation, scratch / "data", run_supervisor)
        running = engine.start(
            StartRequest(installation, scratch / "data", run_supervisor, logs=tmp_path_factory.mktemp("logs"))
        )
        new_site = Site(engine.name, running.connection())
        with Agent() as agent:
            agent.connect("a", new_site.fields)
            secret = SECRET[engine.name]
            agent.query("a", f"CREATE TABLE sealed (id INTEGER NOT NULL, n {secret}, note {secret}, plain VARCHAR(50))")
            agent.query(
                "a", "CREATE TABLE clear (id INTEGER NOT NULL, n VARCHAR(20), note VARCHAR(300), plain VARCHAR(50))"
            )
            agent.query("a", "CREATE TABLE never (id INTEGER NOT NULL)")
        yield new_site
        running.stop()


@pytest.fixture
def agent(site: Site) -> Iterator[Agent]:
    with Agent() as started:
        started.connect("encrypted", site.fields)
        for table in ("sealed", "clear", "never"):
            started.query("encrypted", f"DELETE FROM {table}")
        yield started


NOTES: Mapping[str, Mapping[str, Any]] = {
    "id": {"kind": "sequence", "low": 5},
    "note": {"kind": "text", "length": 250},
    "sealed_id": {"kind": "sealed", "of": "id"},
    "sealed_note": {"kind": "sealed", "of": "note"},
}


def program(agent: Agent, *statements: tuple[str, str], open_: bool = False, key: bytes = KEY) -> None:
    """`open_`: open sealed values in the rows of statements that read."""
    ask(agent, {"type": "program", "name": "test"})
    ask(agent, {"type": "cipher", "name": "aes256-gcm", "key": key.hex()})
    for name, fields in NOTES.items():
        ask(agent, {"type": "variable", "name": name, **fields})
    ask(agent, {"type": "transaction", "name": "only", "weight": 1})
    for sql, parameters in statements:
        reads = open_ and sql.startswith("SELECT")
        message = {"type": "statement", "transaction": "only", "sql": sql, "parameters": parameters, "open": reads}
        ask(agent, message)


def run(agent: Agent, operations: int, arm: str = "encrypted") -> AgentSlice:
    return agent.slice(arm, 60, discard=0, seed=1, operations=operations)


def fill(agent: Agent) -> AgentSlice:
    """Both tables get the same rows, drawn with the same seed; the agent seals those of one table."""
    program(agent, ("INSERT INTO clear (id, n, note, plain) VALUES ($1, $2, $3, 'Áéü')", "id id note"))
    assert run(agent, ROWS).errors == 0
    program(agent, ("INSERT INTO sealed (id, n, note, plain) VALUES ($1, $2, $3, 'Áéü')", "id sealed_id sealed_note"))
    return run(agent, ROWS)


def test_values_are_sealed_as_any_other_implementation_opens_them(agent: Agent, site: Site) -> None:
    done = fill(agent)
    assert (done.operations, done.errors, done.sealed, done.opened) == (ROWS, 0, 2 * ROWS, 0), done.first_error
    stored = agent.query("encrypted", f"SELECT {site.hex('n')}, {site.hex('note')} FROM sealed ORDER BY id")
    clear = agent.query("encrypted", "SELECT n, note FROM clear ORDER BY id")
    assert [row[0] for row in clear] == [str(5 + number) for number in range(ROWS)]
    values = [bytes.fromhex(str(value)) for row in stored for value in row]
    assert {value[:2] for value in values} == {MARK}
    assert len({value[2:14] for value in values}) == 2 * ROWS, "a nonce was used twice"
    opened = [AESGCM(KEY).decrypt(value[2:14], value[14:], None).decode() for value in values]
    assert opened == [value for row in clear for value in row]


@pytest.mark.parametrize(
    "more", [{}, {"connections": 3}, {"per_request": True}, {"per_request": True, "connections": 3}]
)
def test_rows_are_opened_and_are_then_those_of_the_arm_in_clear(agent: Agent, site: Site, more: Changes) -> None:
    fill(agent)
    agent.query("encrypted", "INSERT INTO clear (id, n) VALUES (1, 'short')")
    agent.query("encrypted", f"INSERT INTO sealed (id, n) VALUES (1, {site.literal(sealed(b'short'))})")
    seen = {}
    for table in ("clear", "sealed"):
        agent.connect("encrypted", site.fields | more)
        columns = "plain, n, id, note, note, id + 0.5"
        program(
            agent,
            (f"SELECT {columns} FROM {table} ORDER BY id", ""),
            ("SELECT 7 FROM clear WHERE id = 1", ""),
            open_=True,
        )
        done = run(agent, 9)
        assert (done.operations, done.errors, done.rows) == (9, 0, 9 * (ROWS + 2)), done.first_error
        assert done.opened == (9 * (3 * ROWS + 1) if table == "sealed" else 0)
        seen[table] = done.checksum
    assert seen["clear"] == seen["sealed"]
    program(agent, ("SELECT note FROM sealed ORDER BY id", ""))
    assert run(agent, 2).opened == 0, "not asked to"


def sealed(text: bytes, key: bytes = KEY) -> bytes:
    nonce = bytes(range(12))
    return MARK + nonce + AESGCM(key).encrypt(nonce, text, None)


@pytest.mark.parametrize("more", [{}, {"connections": 3}, {"per_request": True}])
def test_a_value_that_does_not_open_fails_its_operation_which_is_rolled_back(
    agent: Agent, site: Site, more: Changes
) -> None:
    whole = sealed(b"a secret")
    agent.connect("encrypted", site.fields | more)
    for bad in (whole[:-1] + bytes([whole[-1] ^ 1]), whole[:20], sealed(b"a secret", bytes(32))):
        agent.query("encrypted", "DELETE FROM sealed")
        for number, value in enumerate((whole, bad, whole)):
            agent.query("encrypted", f"INSERT INTO sealed (id, note) VALUES ({number}, {site.literal(value)})")
        select = ("SELECT note FROM sealed ORDER BY id", "")
        write = ("INSERT INTO never (id) VALUES (1)", "")
        program(agent, ("BEGIN", ""), write, select, ("COMMIT", ""), open_=True)
        done = run(agent, 4)
        assert (done.operations, done.errors, done.rows, done.opened) == (0, 4, 0, 0)
        assert "a sealed value does not open" in done.first_error
        assert agent.query("encrypted", "SELECT count(*) FROM never") == [["0"]]
        program(agent, select, open_=True)
        assert run(agent, 4).errors == 4
        # The connection still works.
        agent.query("encrypted", "DELETE FROM sealed WHERE id = 1")
        done = run(agent, 4)
        assert (done.operations, done.errors, done.rows, done.opened) == (4, 0, 8, 8), done.first_error


def test_each_program_has_its_own_key(agent: Agent, site: Site) -> None:
    agent.query("encrypted", f"INSERT INTO sealed (id, note) VALUES (1, {site.literal(sealed(b'a secret'))})")
    for key, errors in ((bytes(32), 1), (KEY, 0), (bytes(32), 1)):
        program(agent, ("SELECT note FROM sealed", ""), open_=True, key=key)
        assert run(agent, 1).errors == errors


def test_what_can_not_be_understood_is_refused_without_a_word_of_the_key(agent: Agent, site: Site) -> None:
    ask(agent, {"type": "program", "name": "test"})
    secret = "5a" * 31 + "zz"
    for message in (
        {"type": "cipher", "name": "aes256-gcm", "key": secret},
        {"type": "cipher", "name": secret[:10], "key": KEY.hex()},
        {"type": "variable", "name": "a", "kind": "sealed", "of": "b"},
    ):
        with pytest.raises(AgentError) as refused:
            ask(agent, dict(message))
        assert refused.value.code == "bad-message"
        assert secret not in str(refused.value)
        assert KEY.hex() not in str(refused.value)


@pytest.mark.parametrize(
    "more", [{}, {"connections": 3}, {"per_request": True}, {"per_request": True, "connections": 3}]
)
def test_setup_is_for_sessions_of_servers(agent: Agent, site: Site, more: Changes) -> None:
    setup = {
        "postgresql": "SET my.word = 'a;b'; SELECT 1, 2; SET my.other = 'c'",
        "mysql": "SET @a = 'a;b'",
        "mariadb": "",
    }
    if site.name not in setup:
        with pytest.raises(AgentError, match="setup"):
            agent.connect("encrypted", site.fields | more | {"setup": "SELECT 1"})
        return
    agent.connect("encrypted", site.fields | more | {"setup": setup[site.name]})
    if site.name == "postgresql":
        program(agent, ("SELECT current_setting('my.word'), current_setting('my.other')", ""))
        with pytest.raises(AgentError, match=r"setup: .*nobody"):
            agent.connect("other", site.fields | more | {"setup": "SELECT nobody"})
    else:
        program(agent, ("SELECT 1", ""))
    done = run(agent, 6)
    assert (done.operations, done.errors, done.rows) == (6, 0, 6), done.first_error
