"""The Node agent: the protocol's vectors, and on real servers the same operations as the Rust agent's, its drivers' errors and TLS."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asking import ask
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.estimate.histogram import quantiles
from ciphercost.host import package_cache
from ciphercost.host.impostor import CONVERSATIONS, Impostor
from ciphercost.host.impostor.conversation import Way
from ciphercost.host.pki import Pki
from ciphercost.host.relay import Relay
from ciphercost.load.agent import Agent
from ciphercost.load.drivers import Driver, node
from ciphercost.model.connection import Connection, DriverConnection, Pool, TlsMode
from ciphercost.model.errors import AgentError, CiphercostError
from ciphercost.model.histogram import decode
from ciphercost.model.secret import Secret, reveal
from conftest import Require, RequireServer
from impostors import MYSQL, PASSWORD, PATIENCE, POSTGRES, Rogue, another_machines, asking_for_a_file
from processes import wait_for
from rogue_servers import RogueServer, silent
from test_agents_decide_alike import (
    COMPUTED,
    DRAWN,
    FUNCTION,
    REAL,
    VALUES,
    WHOLE,
    operate,
    script,
    statement,
    step,
)
from test_vectors import files_for, run
from userservers import UserServer, user_server

OLDER = [driver for driver in node.LANGUAGE.drivers if driver.version not in ("8.23.1", "3.4.9", "3.24.6")]
NEWEST = {driver.name: driver for driver in node.LANGUAGE.drivers}
"""The last of a name is the newest."""
SERVERS = {"node-postgres": "postgresql", "postgres.js": "postgresql", "mysql2": "mariadb"}
ON_POSTGRESQL = [name for name, engine in SERVERS.items() if engine == "postgresql"]
PROTOCOLS = {"postgresql": "postgres", "mysql": "mysql", "mariadb": "mysql"}
MOST_SECONDS = 60.0


def command(require: Require, driver: Driver | None = None) -> list[str]:
    """The agent with a driver, or without any."""
    try:
        argv = [str(node.program()), str(node.source() / "src" / "main.js")]
        if driver is None:
            return argv
        with package_cache.offline():
            return [*argv, str(node.packages(driver))]
    except CiphercostError as error:
        require(None, str(error))
        raise


@pytest.mark.parametrize("path", files_for("node"), ids=lambda path: path.stem)
def test_it_passes_the_vectors(tmp_path: Path, path: Path, require: Require) -> None:
    run(path, command(require), tmp_path)


# ── servers, and how drivers get there ────────────────────────────────────────────────────────────────────────────────


class Servers:
    """Servers with TLS, each started when it is first needed."""

    def __init__(self, place: Path, require_server: RequireServer, stack: contextlib.ExitStack) -> None:
        self.place = place
        self.require_server = require_server
        self.stack = stack
        self.running: dict[str, UserServer] = {}

    def get(self, engine: str) -> UserServer:
        if engine not in self.running:
            self.require_server(engine)
            directory = self.place / engine
            directory.mkdir()
            self.running[engine] = self.stack.enter_context(user_server(engine, directory))
        return self.running[engine]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, require_server: RequireServer) -> Iterator[Servers]:
    with contextlib.ExitStack() as stack:
        yield Servers(tmp_path_factory.mktemp("servers"), require_server, stack)


class Client:
    """The agent with one driver, and a server that it speaks to."""

    def __init__(self, agent: Agent, driver: str, server: UserServer) -> None:
        self.agent, self.driver, self.server = agent, driver, server
        self.fields: Connection = server.fields | {"connections": 1, "threads": 1}

    def told(self, tls: TlsMode = "off", **more: Any) -> DriverConnection:
        """Fields of `connect`."""
        connection = DriverConnection(
            driver=self.driver,
            host="localhost",
            address="127.0.0.1",
            port=self.fields.port,
            user=self.fields.user,
            password=self.fields.password,
            database=self.fields.database,
            tls=tls,
            tls_ca=str(self.server.ca) if tls in ("verify-ca", "verify-full") else None,
            witness=EncryptsConnections.of(self.server.engine).tls_witness,
        )
        return msgspec.structs.replace(connection, **more)

    def refused(self, tls: TlsMode = "off", **more: Any) -> AgentError:
        with pytest.raises(AgentError) as caught:
            self.agent.connect("refused", self.told(tls, **more))
        assert "\n" not in str(caught.value)
        return caught.value

    def query(self, sql: str) -> list[list[str | None]]:
        return self.agent.query("plain", sql)

    def slice(self, operations: int, seed: int = 1, **more: Any) -> dict[str, Any]:
        return operate(self.agent, operations, seed, **more)

    def void(self, operations: int, **more: Any) -> tuple[str, str]:
        """Code and text of a slice that fails as a whole, before or after its clock has started."""
        try:
            answer = self.slice(operations, **more)
        except AgentError as error:
            return error.code, str(error)
        assert answer["type"] == "error", answer
        return answer["code"], answer["text"]

    def disconnected(self, arm: str) -> bool:
        """Whether the agent has given an arm up."""
        try:
            self.agent.query(arm, "SELECT 1")
        except AgentError as error:
            return error.code == "no-arm"
        return False


Make = Callable[..., Client]


@pytest.fixture(scope="module")
def make(servers: Servers, require: Require, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    """`make(name, engine)`: the driver's agent, which all tests share: nothing that one test does may affect another."""
    agents: dict[str, Agent] = {}

    def use(name: str, engine: str = "") -> Client:
        server = servers.get(engine or SERVERS[name])
        if name not in agents:
            agents[name] = Agent(command(require, NEWEST[name]), log=tmp_path_factory.mktemp("logs") / "agent.log")
        return Client(agents[name], name, server)

    yield use
    for agent in agents.values():
        agent.close()


@pytest.fixture(params=SERVERS)
def client(request: pytest.FixtureRequest, make: Make) -> Client:
    """Each driver, connected to its server, which has an empty table."""
    made = make(request.param)
    made.agent.connect("plain", made.told())
    made.query("DROP TABLE IF EXISTS seen; CREATE TABLE seen (number integer, stored varchar(99))")
    return made


@pytest.fixture
def rust(client: Client) -> Iterator[Client]:
    """The Rust agent on the same server."""
    with Agent() as agent:
        other = Client(agent, "rust", client.server)
        agent.connect("plain", other.fields)
        yield other


def seen(client: Client) -> list[list[str | None]]:
    return client.query("SELECT number, stored FROM seen ORDER BY number, stored")


# ── the same operations ───────────────────────────────────────────────────────────────────────────────────────────────

KINDS: dict[str, dict[str, Any]] = {
    "u": {"kind": "uniform", "low": -5, "high": 10**12},
    "n": {"kind": "uniform", "low": -7, "high": 4_000_000_000},
    "w": {"kind": "uniform", "low": -(2**63), "high": 2**63 - 1},
    "z": {"kind": "zipfian", "low": 1, "high": 100_000, "skew": 1.1},
    "y": {"kind": "zipfian", "low": 7, "high": 5_000, "skew": 0.6},
    "t": {"kind": "text", "length": 21},
    "c": {"kind": "constant", "value": "it's \\ $1 ? é"},
    "k": {"kind": "constant", "value": "-17"},
    "m": {"kind": "client"},
}


@pytest.mark.parametrize("connections", [1, 3])
def test_both_agents_run_the_same_operations(client: Client, rust: Client, connections: int) -> None:
    columns = ", ".join(KINDS)
    marks = ", ".join(f"${number}" for number in range(1, len(KINDS) + 1))
    rows = []
    both: list[tuple[Client, Pool]] = [(rust, rust.fields), (client, client.told())]
    for peer, fields in both:
        agent = peer.agent
        agent.connect("plain", msgspec.structs.replace(fields, connections=connections))
        kinds = "u bigint, n bigint, w bigint, z bigint, y bigint, t text, c text, k integer, m integer"
        peer.query(f"DROP TABLE IF EXISTS drawn; CREATE TABLE drawn (which char(1), {kinds})")
        ask(agent, {"type": "program", "name": "draws"})
        for name, kind in KINDS.items():
            ask(agent, {"type": "variable", "name": name, **kind})
        for which, weight, mine in (("a", 1, list(KINDS)), ("b", 3, ["u"])):
            ask(agent, {"type": "transaction", "name": which, "weight": weight})
            to, values = (columns, marks) if which == "a" else ("u", "$1")
            sql = f"INSERT INTO drawn (which, {to}) VALUES ('{which}', {values})"
            ask(agent, {"type": "statement", "transaction": which, "sql": sql, "parameters": " ".join(mine)})
        answer = peer.slice(600, seed=2**63 + 11)
        assert (answer["operations"], answer["errors"]) == (600, 0), answer["first_error"]
        rows.append(peer.query(f"SELECT which, {columns} FROM drawn ORDER BY which, u, w"))
    assert len(rows[0]) == 600
    assert rows[0] == rows[1]
    assert {row[0] for row in rows[0]} == {"a", "b"}


def test_both_agents_compute_and_draw_the_same(client: Client, rust: Client) -> None:
    values = []
    for peer in (rust, client):
        peer.query("DELETE FROM seen")
        parts = [statement("INSERT INTO seen VALUES (0, $1)", "t")]
        for number, expression in enumerate((*WHOLE, *REAL), start=1):
            parts += [step("set", expression, "a"), statement(f"INSERT INTO seen VALUES ({number}, $1)", "a")]
        script(peer.agent, {"a": COMPUTED, **DRAWN}, *parts)
        answer = peer.slice(40, seed=2**63 + 11)
        assert (answer["operations"], answer["errors"]) == (40, 0), answer["first_error"]
        rows = seen(peer)
        whole = [row for row in rows if int(str(row[0])) <= len(WHOLE)]
        values.append((whole, sorted(float(str(value)) for number, value in rows if int(str(number)) > len(WHOLE))))
    (whole, real), (whole_of_node, real_of_node) = values
    assert len(whole) == 40 * (len(WHOLE) + 1)
    assert whole == whole_of_node
    assert all(math.isclose(one, other, rel_tol=1e-13) for one, other in zip(real, real_of_node, strict=True))


def test_another_seed_is_other_operations(client: Client) -> None:
    script(client.agent, {"u": KINDS["u"]}, statement("SELECT $1 AS u", "u"))
    first, again, other = (client.slice(50, seed) for seed in (1, 1, 2))
    assert first["rows"] == other["rows"] == 50
    assert first["checksum"] == again["checksum"] != other["checksum"]


def test_a_sequence_goes_on_and_each_value_has_its_turn(client: Client) -> None:
    script(
        client.agent, {"s": {"kind": "sequence", "low": 5}, "e": {"kind": "each", "low": 1, "high": 3}},
        statement("INSERT INTO seen VALUES ($1, 's')", "s"), statement("INSERT INTO seen VALUES ($1, 'e')", "e"),
    )  # fmt: skip
    client.slice(2)
    client.slice(1)
    numbers = [(kind, number) for number, kind in seen(client)]
    assert sorted(numbers) == [("e", "1")] * 3 + [("e", "2")] * 3 + [("e", "3")] * 3 + [
        ("s", "5"),
        ("s", "6"),
        ("s", "7"),
    ]


# ── scripts that decide ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ON_POSTGRESQL)
def test_values_are_those_of_pgbench(make: Make, name: str) -> None:
    """Only PostgreSQL's parameters are texts, which also have infinity."""
    client = make(name)
    client.agent.connect("plain", client.told())
    client.query("DROP TABLE IF EXISTS seen; CREATE TABLE seen (number integer, stored text)")
    parts = [
        part
        for number, (expression, _) in enumerate(VALUES)
        for part in (step("set", expression, "a"), statement(f"INSERT INTO seen VALUES ({number}, $1)", "a"))
    ]
    script(client.agent, {"a": COMPUTED}, *parts)
    assert client.slice(1)["first_error"] == ""
    rows = client.query("SELECT stored FROM seen ORDER BY number")
    values = ["NULL" if value is None else value for [value] in rows]
    assert dict(zip([expression for expression, _ in VALUES], values, strict=True)) == dict(VALUES)


def test_branches_rows_and_parameters(client: Client) -> None:
    variables = dict.fromkeys(("a", "b", "o_highest", "none", "yes"), COMPUTED) | {"n": DRAWN["n"]}
    script(
        client.agent, variables,
        step("set", "(+ (* :n 2) (% (greatest :n 3) 7))", "a"),
        step("set", "(/ :a 4.0)", "b"),
        step("set", "(+ null 1)", "none"),
        step("set", "(< 1 2)", "yes"),
        statement("SELECT coalesce(max(number), 0) AS highest, 'x' AS other FROM seen", into="o_"),
        step("if", "(= :o_highest 0)"), statement("INSERT INTO seen VALUES ($1, 'first')", "n"),
        step("elif", "(< :o_highest 2)"), statement("INSERT INTO seen VALUES ($1, $2)", "n b"), step("sleep", "(* 2 1000)"),
        step("elif", ":o_highest"), statement("INSERT INTO seen VALUES ($1, $2)", "n none"),
        step("else"), statement("DELETE FROM seen"),
        step("endif"),
        statement("SELECT 1 WHERE $1", "yes"),
    )  # fmt: skip
    answer = client.slice(3, seed=7)
    assert (answer["operations"], answer["rows"], answer["retries"]) == (3, 6, 0), answer["first_error"]
    assert seen(client) == [["1", "first"], ["2", "1.75"], ["3", None]]


@pytest.mark.parametrize(
    ("sql", "every", "error", "value"),
    [
        ("SELECT 1 AS a WHERE 1 = 0", False, "expected one row, got 0", "9"),
        ("SELECT 1 AS a UNION SELECT 2 ORDER BY a", False, "expected one row, got 2", "9"),
        ("SELECT 1 AS a UNION SELECT 2 ORDER BY a", True, "", "2"),
        ("SELECT 9007199254740993 AS A", False, "", "9007199254740993"),
        ("SELECT DATE '2026-01-31' AS a", False, "", "2026-01-31"),
    ],
)
def test_one_row_gives_values_or_the_last_of_them(
    client: Client, sql: str, every: bool, error: str, value: str
) -> None:
    client.query("INSERT INTO seen VALUES (1, '9')")
    script(
        client.agent, {"a": COMPUTED}, step("set", "0", "a"), statement(sql, into="", every=every),
        statement("UPDATE seen SET stored = $1", "a"),
    )  # fmt: skip
    assert client.slice(1)["first_error"] == (f"statement: \\gset: {error}" if error else "")
    assert seen(client) == [["1", value]]


def test_time_asleep_is_no_latency(client: Client) -> None:
    sleep_us = 60_000
    script(client.agent, {}, step("sleep", str(sleep_us)), statement("SELECT 1"))
    answer = client.slice(5)
    assert answer["seconds"] >= 5 * sleep_us / 1e6
    # If latency included it, every value would show it; a delayed machine affects only some.
    assert quantiles(decode(answer["histogram"]), [0.1])[0] < sleep_us * 1000 / 2


def test_whoever_sleeps_has_not_lost_its_connection(client: Client) -> None:
    for timeout in (1, 10):
        client.agent.connect("plain", client.told())
        script(client.agent, {}, statement("SELECT 1"), step("sleep", f"{timeout * 1_500_000}"), statement("SELECT 1"))
        # On a busy machine a statement itself may take longer than 1 s.
        with contextlib.suppress(AgentError) if timeout == 1 else contextlib.nullcontext():
            answer = client.slice(1, timeout=timeout)
            if answer["type"] != "error":
                break
    assert answer["operations"] == 1


@pytest.mark.parametrize("name", ON_POSTGRESQL)
def test_serialization_failures_are_tried_again_with_the_same_values(make: Make, name: str) -> None:
    client = make(name)
    client.agent.connect("plain", client.told())
    client.query("DROP TABLE IF EXISTS seen; CREATE TABLE seen (number integer, stored text)")
    client.query(f"DROP SEQUENCE IF EXISTS tries; CREATE SEQUENCE tries; DROP FUNCTION IF EXISTS refuse(); {FUNCTION}")
    parts = (
        statement("BEGIN"), step("set", "(random 1 1000000)", "a"), statement("INSERT INTO seen VALUES (1, $1)", "a"),
        statement("SELECT refuse()"), statement("END"),
    )  # fmt: skip
    script(client.agent, {"a": COMPUTED}, *parts, tries=3)
    answer = client.slice(4)
    assert (answer["operations"], answer["errors"], answer["retries"]) == (4, 0, 8)
    tried = seen(client)
    client.query("DELETE FROM seen")
    script(client.agent, {"a": COMPUTED}, parts[1], parts[2])
    client.slice(4)
    assert seen(client) == tried
    script(client.agent, {"a": COMPUTED}, *parts, tries=2)
    answer = client.slice(3)
    assert (answer["operations"], answer["retries"], answer["error_kinds"]) == (1, 2, "40001=2")


@pytest.mark.parametrize("name", ON_POSTGRESQL)
def test_a_text_stays_what_it_is_in_a_column_of_any_type(make: Make, name: str) -> None:
    client = make(name)
    client.agent.connect("plain", client.told())
    columns = "a numeric, b boolean, c double precision, d bigint, e jsonb, f timestamp, g bytea"
    client.query(f"DROP TABLE IF EXISTS typed; CREATE TABLE typed ({columns})")
    texts = {"e": '{"x": [1]}', "f": "2026-02-03 04:05:06", "g": "\\xdead"}
    variables = dict.fromkeys("abcd", COMPUTED) | {
        name: {"kind": "constant", "value": text} for name, text in texts.items()
    }
    sets = [
        step("set", expression, name)
        for name, expression in zip("abcd", ("0.1", "(= 1 1)", "(/ 1 3.0)", "null"), strict=True)
    ]
    script(
        client.agent,
        variables,
        *sets,
        statement("INSERT INTO typed VALUES ($1, $2, $3, $4, $5, $6, $7)", "a b c d e f g"),
    )
    for options in ("prepared=true", "prepared=false"):
        client.agent.connect("plain", client.told(options=options))
        assert client.slice(1)["first_error"] == ""
    assert client.query("SELECT * FROM typed") == [["0.1", "t", "0.333333333333333", None, *texts.values()]] * 2


def test_other_modes_pipelines_and_settings_are_refused(client: Client) -> None:
    for mode in ("simple", "extended"):
        script(client.agent, {}, statement("SELECT 1"), mode=mode)
        with pytest.raises(AgentError, match=f"mode {mode}") as caught:
            client.slice(1)
        assert caught.value.code == "statement"
    script(client.agent, {}, step("startpipeline"), statement("SELECT 1"), step("endpipeline"))
    with pytest.raises(AgentError, match="no pipelines"):
        client.slice(1)
    assert client.refused(options="pool=true").code == "driver"
    assert "it has prepared" in str(client.refused(options="pool=true"))
    assert client.refused(options="prepared=maybe").code == "bad-message"


# ── queries and statements ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("options", ["prepared=true", "prepared=false"])
def test_statements_are_prepared_once_or_never(make: Make, options: str) -> None:
    client = make("mysql2")
    client.agent.connect("counter", client.told())
    client.agent.connect("plain", client.told(options=options))
    client.query("DROP TABLE IF EXISTS seen; CREATE TABLE seen (number integer, stored varchar(99))")
    script(
        client.agent,
        {"u": DRAWN["n"]},
        statement("BEGIN"),
        statement("INSERT INTO seen VALUES ($1, 'it''s $1')", "u"),
        statement("COMMIT"),
    )

    def counts() -> Mapping[str, int]:
        names = "'Com_insert', 'Com_stmt_prepare', 'Com_stmt_execute', 'Com_commit'"
        rows = client.agent.query("counter", f"SHOW GLOBAL STATUS WHERE Variable_name IN ({names})")
        return {str(name): int(str(value)) for name, value in rows}

    before = counts()
    assert client.slice(20)["errors"] == 0
    used = {name: value - before[name] for name, value in counts().items()}
    prepared = options == "prepared=true"
    assert (used["Com_insert"], used["Com_commit"]) == (20, 20)
    assert (used["Com_stmt_prepare"], used["Com_stmt_execute"]) == ((1, 20) if prepared else (0, 0))
    assert [row[1] for row in seen(client)] == ["it's $1"] * 20


def test_an_open_loop_begins_requests_when_they_are_due(client: Client) -> None:
    script(client.agent, {"n": DRAWN["n"]}, statement("INSERT INTO seen VALUES ($1, 'x')", "n"))
    client.agent.connect("plain", client.told(connections=4))
    for arrivals in ("even", "random"):
        client.query("DELETE FROM seen")
        answer = client.slice(30, rate=300, arrivals=arrivals)
        assert (answer["operations"], answer["errors"], answer["threads"]) == (30, 0, 1)
        # 29 gaps of 1/300 s, or drawn ones, whose sum depends on the seed alone.
        assert answer["seconds"] > 29 / 300 * (1 if arrivals == "even" else 0.5)
        assert len(seen(client)) == 30


def test_setup_runs_on_each_connection_and_its_failure_is_said(make: Make) -> None:
    client = make("mysql2")
    client.agent.connect("plain", client.told(connections=2, setup="SET @a = 'x;y'; SET @b = 2"))
    assert client.agent.query("plain", "SELECT @a, @b", everywhere=True) == [["x;y", "2"]] * 2
    error = client.refused(setup="SET @a = 1; NONSENSE")
    assert (error.code, str(error)[:7]) == ("1064 (42000)", "setup: ")
    for name in ON_POSTGRESQL:
        client = make(name)
        told = client.told(search_path='"a b",public', setup="SET application_name = 'x'; SET work_mem = '1MB'")
        client.agent.connect("plain", told)
        [settings] = client.query("SELECT current_setting('search_path'), current_setting('work_mem')")
        assert settings == ['"a b",public', "1MB"]


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────────────

CODES = {"postgresql": ("42P01", "23505", "28P01"), "mariadb": ("1146 (42S02)", "1062 (23000)", "1045 (28000)")}
"""No such table, a key twice, a wrong password."""


def test_what_a_server_refuses_has_its_code_and_no_password(client: Client) -> None:
    table, _, login = CODES[client.server.engine.name]
    with pytest.raises(AgentError) as caught:
        client.query("SELECT * FROM nothing_of_the_kind")
    assert caught.value.code == table
    script(client.agent, {}, statement("SELECT * FROM nothing_of_the_kind"))
    with pytest.raises(AgentError) as caught:  # it can't be prepared
        client.slice(1)
    assert caught.value.code == table
    assert client.query("SELECT 1") == [["1"]]
    error = client.refused(user="swordfish", password=Secret("swordfish"))
    assert error.code in (login, "28000")
    assert "swordfish" not in str(error)
    assert client.refused(address="127.0.0.1", port=1).code == "connect"
    assert client.refused(witness="SELECT 1").code == "statement"


def test_a_connection_that_ends_between_slices_is_not_opened_again(client: Client) -> None:
    script(client.agent, {}, statement("SELECT 1"))
    assert client.slice(1)["operations"] == 1
    client.agent.connect("other", client.told())
    if client.server.engine.name == "postgresql":
        [[number]] = client.query("SELECT pg_backend_pid()")
        client.agent.query("other", f"SELECT pg_terminate_backend({number})")
    else:
        [[number]] = client.query("SELECT CONNECTION_ID()")
        client.agent.query("other", f"KILL {number}")
    assert client.void(1)
    assert client.disconnected("plain")


@pytest.mark.parametrize("name", SERVERS)
def test_a_login_has_a_deadline(make: Make, name: str) -> None:
    client = make(name)
    with RogueServer(silent) as rogue:
        error = client.refused(port=rogue.port, timeout=0.5)
    assert (error.code, "did not finish the login within 0.5 s" in str(error)) == ("timeout", True)


# ── TLS ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

TLS_1_2, TLS_1_3 = "ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_CHACHA20_POLY1305_SHA256"


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
def test_what_was_negotiated_is_reported(make: Make, name: str, mode: TlsMode) -> None:
    client = make(name)
    for version, cipher in (("1.3", TLS_1_3), ("1.2", TLS_1_2)):
        told = client.told(mode, connections=2, tls_min=version, tls_max=version, tls_ciphers=cipher)
        connected = client.agent.connect("encrypted", told)
        assert (connected.encrypted, connected.protocol, connected.cipher) == (True, f"TLSv{version}", cipher)
        assert connected.driver_version == f"{name} {NEWEST[name].version}"
        script(client.agent, {}, statement("SELECT 1"))
        answer = client.agent.slice("encrypted", MOST_SECONDS, discard=0, operations=4)
        assert (answer.encrypted, answer.protocol, answer.cipher) == (True, f"TLSv{version}", cipher)
        assert answer.driver_version == connected.driver_version
    plain = client.agent.connect("plain", client.told())
    assert (plain.encrypted, plain.protocol, plain.cipher) == (False, "", "")


def test_mysql_is_reached_by_tls_and_without(make: Make) -> None:
    client = make("mysql2", "mysql")
    assert client.agent.connect("encrypted", client.told("verify-full")).protocol == "TLSv1.3"
    assert not client.agent.connect("plain", client.told()).encrypted
    script(client.agent, {"u": KINDS["u"], "t": KINDS["t"]}, statement("SELECT $1 + 1 AS u, $2 AS t", "u t"))
    sums = {client.agent.slice(arm, MOST_SECONDS, discard=0, operations=20).checksum for arm in ("plain", "encrypted")}
    assert len(sums) == 1


@pytest.mark.parametrize("name", SERVERS)
def test_another_authority_and_another_name_are_refused(make: Make, name: str, tmp_path: Path) -> None:
    client = make(name)
    other = Pki(tmp_path / "other")
    for mode in ("verify-ca", "verify-full"):
        error = client.refused(mode, tls_ca=str(other.ca))
        assert (error.code, "unknown authority" in str(error)) == ("tls", True), error
    error = client.refused("verify-full", host="another.invalid")
    assert (error.code, "name mismatch" in str(error)) == ("tls", True), error
    assert client.agent.connect("plain", client.told("verify-ca", host="another.invalid")).encrypted
    error = client.refused("require", tls_min="1.3", tls_max="1.2")
    assert error.code == "tls"


@pytest.mark.parametrize("name", SERVERS)
def test_the_authoritys_file_is_read_once(make: Make, name: str, tmp_path: Path) -> None:
    """Not for each connection: that would be part of what encryption costs an operation with a connection of its own."""
    client = make(name)
    ca = tmp_path / "ca.pem"
    ca.write_bytes(Path(client.server.ca).read_bytes())
    client.agent.connect("plain", client.told("verify-full", tls_ca=str(ca), per_request=True))
    ca.unlink()
    script(client.agent, {}, statement("SELECT 1"))
    answer = client.slice(3)
    assert (answer["operations"], answer["errors"]) == (3, 0), answer["first_error"]


@pytest.mark.parametrize("name", ON_POSTGRESQL)
def test_an_address_is_looked_for_in_the_certificate_like_a_name(make: Make, name: str) -> None:
    client = make(name)
    assert client.agent.connect("plain", client.told("verify-full", host="127.0.0.1", address=None)).encrypted
    with Relay("127.0.0.1", client.fields.port, listen="127.0.0.2") as other:
        error = client.refused("verify-full", host="127.0.0.2", address=None, port=other.port)
    assert (error.code, "name mismatch" in str(error)) == ("tls", True), error


@pytest.mark.parametrize(
    ("name", "way"),
    [(name, way) for name, engine in SERVERS.items() for way in CONVERSATIONS[PROTOCOLS[engine]].ways],  # type: ignore[index]
)
def test_impostors_are_refused(make: Make, name: str, way: Way, tmp_path: Path) -> None:
    client = make(name)
    speech: Any = PROTOCOLS[client.server.engine.name]
    with Impostor(speech, "127.0.0.1", client.fields.port, tmp_path, certificate="rsa2048", way=way) as impostor:
        error = client.refused("verify-full", port=impostor.port)
        unverified = client.refused("require", port=impostor.port) if way == "no TLS" else None
        wait_for("the impostor has not met the driver", lambda: len(impostor.met) == (1 if unverified is None else 2))
    assert error.code == "tls"
    assert unverified is None or unverified.code == "tls"
    assert set(impostor.met) == {"ended" if way == "no TLS" else "left"}


def test_who_does_not_verify_is_found_by_the_impostor(make: Make, tmp_path: Path) -> None:
    """The control: without verification these drivers would go on."""
    client = make("node-postgres")
    with Impostor(
        "postgres", "127.0.0.1", client.fields.port, tmp_path, certificate="rsa2048", way="let in"
    ) as impostor:
        client.refused("require", port=impostor.port)
        wait_for("the impostor has not met the driver", lambda: bool(impostor.met))
    assert impostor.met == ["statement"]


@pytest.mark.parametrize("name", SERVERS)
def test_a_connection_string_is_the_drivers_own(make: Make, name: str) -> None:
    client = make(name)
    user, password, port = client.fields.user, reveal(client.fields.password), client.fields.port
    start = f"{'mysql' if name == 'mysql2' else 'postgresql'}://{user}:{password}@localhost:{port}/{client.fields.database or ''}"
    plain = DriverConnection(driver=name, dsn=start)
    assert not client.agent.connect("plain", plain).encrypted
    insecure = (
        '?ssl={"rejectUnauthorized":false}'
        if name == "mysql2"
        else "?sslmode=no-verify"
        if name == "node-postgres"
        else "?sslmode=require"
    )
    secure = '?ssl={"rejectUnauthorized":true}' if name == "mysql2" else "?sslmode=verify-full"
    assert client.agent.connect("plain", plain | {"dsn": start + insecure}).encrypted
    with pytest.raises(AgentError) as caught:  # its authority is none of Node's own
        client.agent.connect("plain", plain | {"dsn": start + secure})
    assert caught.value.code == "tls"
    with pytest.raises(AgentError) as caught:
        client.agent.connect("plain", plain | {"password": Secret("swordfish")})
    assert caught.value.code == CODES[client.server.engine.name][2]
    assert password not in str(caught.value)
    with pytest.raises(AgentError) as caught:
        client.agent.connect("plain", plain | {"tls": "require"})
    assert caught.value.code == "bad-message"


@pytest.mark.parametrize("driver", OLDER, ids=lambda driver: driver.title)
def test_older_versions_work_too(driver: Driver, servers: Servers, require: Require) -> None:
    with Agent(command(require, driver)) as agent:
        client = Client(agent, driver.name, servers.get(SERVERS[driver.name]))
        for mode in ("off", "verify-full"):
            connected = agent.connect("plain", client.told(mode))
            assert connected.encrypted is (mode != "off")
            assert connected.driver_version == driver.title
            script(agent, {"u": KINDS["u"]}, statement("BEGIN"), statement("SELECT $1 AS u", "u"), statement("COMMIT"))
            answer = client.slice(10)
            assert (answer["operations"], answer["errors"], answer["rows"]) == (10, 0, 10), answer["first_error"]


# ── passwords and files ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def address(require: Require) -> Iterator[str]:
    with another_machines() as address:
        require(address, "this machine has no address but loopback")
        yield address


@pytest.mark.parametrize("name", SERVERS)
def test_a_relay_does_not_make_a_driver_trust_the_server(make: Make, name: str) -> None:
    """Logins to addresses of other machines are tested with every driver's (test_drivers.py)."""
    client = make(name)
    ways = MYSQL if name == "mysql2" else POSTGRES
    for way in ("caching_sha2", "clear", "sha256") if name == "mysql2" else ("cleartext", "cleartext within md5"):
        with Rogue(ways[way], "127.0.0.1") as rogue:
            client.refused(port=rogue.port, password=Secret(PASSWORD), relayed=True, timeout=3)
        assert rogue.lines
        assert not rogue.has_learned_it(), way


@pytest.mark.parametrize("name", SERVERS)
def test_the_rogues_can_learn_a_password(make: Make, name: str) -> None:
    """The control: on this machine a password may travel in clear."""
    client = make(name)
    speak = MYSQL["switch to caching_sha2"] if name == "mysql2" else POSTGRES["cleartext"]
    with Rogue(speak, "127.0.0.1", PATIENCE) as rogue:
        client.refused(port=rogue.port, password=Secret(PASSWORD), timeout=30)
    assert rogue.has_learned_it()


@pytest.mark.parametrize("name", SERVERS)
def test_why_a_login_was_refused_is_said(make: Make, address: str, name: str) -> None:
    client = make(name)
    speak = MYSQL["clear"] if name == "mysql2" else POSTGRES["cleartext"]
    with Rogue(speak, address) as rogue:
        error = client.refused(address=address, port=rogue.port, password=Secret(PASSWORD), timeout=3)
    assert error.code == "connect"
    assert "over an unencrypted connection to another machine" in str(error)


def test_no_file_is_sent(make: Make, tmp_path: Path) -> None:
    client = make("mysql2")
    file = tmp_path / "secret"
    file.write_text("the contents of a file")
    with Rogue(asking_for_a_file(str(file), "8.0.36"), "127.0.0.1") as rogue:
        client.refused(port=rogue.port, password=Secret(PASSWORD), timeout=3)
    assert rogue.lines
    assert b"the contents" not in rogue.heard()


# ── the agent itself ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_driver_that_is_not_there_is_refused_in_words(require: Require, tmp_path: Path) -> None:
    told = DriverConnection(driver="mysql2", host="localhost", port=1, user="u")
    with Agent([*command(require), str(tmp_path)]) as agent:
        with pytest.raises(AgentError, match="mysql2 is not installed") as caught:
            agent.connect("plain", told)
        assert caught.value.code == "driver"
        with pytest.raises(AgentError, match="is not one of null, node-postgres") as caught:
            agent.connect("plain", told | {"driver": "pgx"})
        assert caught.value.code == "bad-message"
        assert json.loads(agent.exchange(b'{"type":"bye"}\n')) == {"type": "ok"}


def test_without_the_cpus_instructions_the_agent_says_so(require: Require) -> None:
    with Agent(command(require), env={"OPENSSL_ia32cap": "~0x200000200000000"}) as agent:
        assert agent.hello.aes is False
