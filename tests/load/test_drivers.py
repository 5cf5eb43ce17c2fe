"""Every driver of the registry: its agent runs what the Rust agent runs, encrypts as it is asked to, and refuses who is not the server.

A test names no driver, so a new one is tested by being in the registry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from asking import ask
from ciphercost import engines, mechanisms
from ciphercost.engines import StartRequest
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.host import pki, supervisor
from ciphercost.host.relay import Relay
from ciphercost.load import drivers
from ciphercost.load.agent import Agent
from ciphercost.load.drivers import Driver
from ciphercost.load.drivers._agent import LanguageAgent
from ciphercost.load.peer_checks import REFUSES
from ciphercost.model import run_directory
from ciphercost.model.connection import Changes, Connection, TlsMode
from ciphercost.model.errors import AgentError, CiphercostError
from ciphercost.model.secret import Secret
from ciphercost.model.slices import AgentSlice
from conftest import Require, RequireServer
from impostors import MYSQL, PASSWORD, POSTGRES, Rogue, another_machines
from test_agent_java import KINDS
from test_agents_decide_alike import COMPUTED, DRAWN, ERRORS, FUNCTION, VALUES, operate, script, seen, statement, step

Part = Mapping[str, Any]
VERSIONS = {"postgresql": "", "mariadb": "10.11", "mysql": ""}
ROGUES = {"postgres": POSTGRES, "mysql": MYSQL}
NEWEST = [drivers.named(name)[-1] for name in drivers.names()]


def that_speak_to(engine: str) -> pytest.MarkDecorator:
    """The newest driver of each name that speaks to this server."""
    speakers = [driver for driver in NEWEST if engine in driver.engines]
    return pytest.mark.parametrize("driver", speakers, ids=lambda driver: driver.name, indirect=True)


class Site(NamedTuple):
    """A server with TLS, and its authority."""

    name: str
    fields: Connection
    ca: str

    def encrypted(self, mode: TlsMode = "verify-full") -> Connection:
        told: Changes = {"tls": mode, "tls_ca": self.ca, "tls_min": "1.3", "tls_max": "1.3"}
        return self.fields | told | {"tls_ciphers": "TLS_AES_256_GCM_SHA384"}


@pytest.fixture(scope="module")
def supervised() -> Iterator[supervisor.Supervisor]:
    """Agents keep their files in the scratch of a run."""
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
        yield run_supervisor


def site(name: str, require_server: RequireServer) -> Iterator[Site]:
    installation, engine, tls = require_server(name, VERSIONS[name]), engines.get(name), mechanisms.get("tls")
    run_id = run_directory.new_id()
    with supervisor.Supervisor(run_id) as run_supervisor:
        scratch = supervisor.scratch(run_id, run_supervisor)
        engine.initialise(installation, scratch / "data", run_supervisor)
        settings = tls.server_settings(engine, tls.check({}), scratch / "secrets")
        logs = scratch / "logs"
        logs.mkdir()
        running = engine.start(
            StartRequest(installation, scratch / "data", run_supervisor, settings=settings, logs=logs)
        )
        yield Site(name, running.connection(), str(next(scratch.rglob("ca.pem"))))
        running.stop()
    assert run_supervisor.problems == []


@pytest.fixture(scope="module")
def postgresql(require_server: RequireServer) -> Iterator[Site]:
    yield from site("postgresql", require_server)


@pytest.fixture(scope="module")
def mariadb(require_server: RequireServer) -> Iterator[Site]:
    yield from site("mariadb", require_server)


@pytest.fixture(scope="module")
def mysql(require_server: RequireServer) -> Iterator[Site]:
    yield from site("mysql", require_server)


def started(
    driver: Driver, site: Site, supervised: supervisor.Supervisor, require: Require, **options: str
) -> LanguageAgent:
    """The driver's agent, for connections like the encrypted ones of the site."""
    try:
        drivers.language(driver.language).fetch(driver)
    except CiphercostError as error:
        require(None, str(error))
    engine = EncryptsConnections.of(engines.get(site.name))
    return LanguageAgent(driver, engine, options, site.encrypted(), supervisor=supervised)


@pytest.fixture(scope="module", params=NEWEST, ids=lambda driver: driver.name)
def driver(request: pytest.FixtureRequest) -> Driver:
    found: Driver = request.param
    return found


@pytest.fixture(scope="module")
def home(driver: Driver, request: pytest.FixtureRequest) -> Site:
    """A server that the driver speaks to."""
    found: Site = request.getfixturevalue("postgresql" if "postgresql" in driver.engines else "mariadb")
    return found


@pytest.fixture(scope="module")
def agent(driver: Driver, home: Site, supervised: supervisor.Supervisor, require: Require) -> Iterator[LanguageAgent]:
    with started(driver, home, supervised, require) as running:
        yield running


@pytest.fixture
def both(agent: LanguageAgent, home: Site) -> Iterator[tuple[Agent, LanguageAgent]]:
    """The Rust agent and the driver's, each connected unencrypted to the same server."""
    with Agent() as rust:
        for peer in (rust, agent):
            peer.connect("plain", home.fields)
        yield rust, agent
        # A prepared statement keeps its table locked, so that another test could not drop it.
        agent.connect("plain", home.fields)


def table(peer: Agent, name: str, columns: str) -> None:
    """An empty table."""
    peer.query("plain", f"DROP TABLE IF EXISTS {name}; CREATE TABLE {name} ({columns})")


def slice_of(peer: Agent, operations: int, arm: str = "plain", seed: int = 1) -> AgentSlice:
    return peer.slice(arm, 60, discard=0, seed=seed, operations=operations)


# ── the same operations ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("connections", [1, 3])
def test_it_runs_the_operations_of_the_rust_agent(
    both: tuple[Agent, LanguageAgent], home: Site, connections: int
) -> None:
    # Connections decide which operation gets which number of a sequence; everything else belongs to the operation.
    names = [name for name in KINDS if name != "s" or connections == 1]
    columns = ", ".join(names)
    marks = ", ".join(f"${number}" for number in range(1, len(names) + 1))
    seed = 2**63 + 11
    rows = []
    for peer in both:
        table(peer, "drawn", "which CHAR(1), u BIGINT, w BIGINT, z BIGINT, y BIGINT, t TEXT, c TEXT, s BIGINT")
        peer.connect("plain", home.fields | {"connections": connections})
        ask(peer, {"type": "program", "name": "draws"})
        for name in names:
            ask(peer, {"type": "variable", "name": name, **KINDS[name]})
        for which, weight, mine in (("a", 1, names), ("b", 3, names[:1])):
            ask(peer, {"type": "transaction", "name": which, "weight": weight})
            to, values = (columns, marks) if mine == names else (names[0], "$1")
            sql = f"INSERT INTO drawn (which, {to}) VALUES ('{which}', {values})"
            ask(peer, {"type": "statement", "transaction": which, "sql": sql, "parameters": " ".join(mine)})
        answer = slice_of(peer, 500, seed=seed)
        assert (answer.operations, answer.errors) == (500, 0), answer.first_error
        rows.append(peer.query("plain", f"SELECT which, {columns} FROM drawn ORDER BY which, u, w"))
        peer.connect("plain", home.fields)
    assert len(rows[0]) == 500
    assert rows[0] == rows[1]
    assert {row[0] for row in rows[0]} == {"a", "b"}


def test_a_checksum_is_that_of_the_rows(both: tuple[Agent, LanguageAgent]) -> None:
    _, agent = both
    script(agent, {"z": KINDS["z"]}, statement("SELECT $1 + 1, 'x%y' AS t", "z"))
    first, again, other = (slice_of(agent, 30, seed=seed) for seed in (1, 1, 2))
    assert first.rows == other.rows == 30, first.first_error
    assert first.checksum == again.checksum != other.checksum
    assert first.cpu_user_ns + first.cpu_system_ns > 0
    assert first.process_cpu_ns > 0


def test_what_has_no_value_fails_with_the_same_words(both: tuple[Agent, LanguageAgent]) -> None:
    _, agent = both
    for expression, text in ERRORS:
        script(agent, {"a": COMPUTED}, step("set", expression, "a"), statement("SELECT 1"))
        answer = operate(agent, 2)
        assert (answer["operations"], answer["errors"], answer["error_kinds"]) == (0, 2, "statement=2"), expression
        assert answer["first_error"] == f"statement: {text}", expression


def test_values_are_those_of_pgbench(both: tuple[Agent, LanguageAgent]) -> None:
    _, agent = both
    whole = [(expression, value) for expression, value in VALUES if value not in ("NaN", "Infinity", "-Infinity")]
    parts = [
        part
        for number, (expression, _) in enumerate(whole)
        for part in (step("set", expression, "a"), statement(f"INSERT INTO seen VALUES ({number}, $1)", "a"))
    ]
    table(agent, "seen", "number INTEGER, stored VARCHAR(99)")
    script(agent, {"a": COMPUTED}, *parts)
    assert operate(agent, 1)["first_error"] == ""
    found = {whole[int(str(number))][0]: value for number, value in seen(agent)}
    for expression, value in whole:
        mine = found[expression]
        if agent.driver.engines == drivers.POSTGRESQL:  # which has booleans, and takes a number's text as it is sent
            assert ("NULL" if mine is None else mine) == value, expression
        elif value == "NULL":
            assert mine is None, expression
        else:
            assert float(str(mine)) == pytest.approx(float({"true": "1", "false": "0"}.get(value, value)), rel=1e-6), (
                expression
            )


def test_branches_rows_and_parameters(both: tuple[Agent, LanguageAgent], home: Site) -> None:
    rows = []
    for peer in both:
        table(peer, "decided", "a INTEGER, b DOUBLE PRECISION, c INTEGER, d VARCHAR(30)")
        insert = "INSERT INTO decided VALUES ($1, $2, $3, $4)"
        script(
            peer, {**dict.fromkeys(("b", "c", "none", "o_last"), COMPUTED), "id": {"kind": "sequence", "low": 1}},
            statement("SELECT COUNT(*) AS last FROM decided", into="o_"),
            step("set", "(/ (random 1 1000) 8.0)", "b"), step("set", "(* :o_last 2)", "c"), step("set", "null", "none"),
            step("if", "(= (% :o_last 2) 0)"), statement(insert, "id b c o_last"),
            step("else"), step("sleep", "100"), statement(insert, "id b none none"), step("endif"),
        )  # fmt: skip
        answer = slice_of(peer, 20)
        assert (answer.operations, answer.errors, answer.rows) == (20, 0, 20), answer.first_error
        rows.append([
            (row[0], float(str(row[1])), *row[2:]) for row in peer.query("plain", "SELECT a, b * 8, c, d FROM decided ORDER BY a")
        ])  # fmt: skip
        peer.connect("plain", home.fields)
    assert rows[0] == rows[1]
    assert rows[0][0][2:] == ("0", "0")
    assert rows[0][1][2:] == (None, None)


def test_a_transaction_that_fails_is_rolled_back_and_counted(both: tuple[Agent, LanguageAgent], home: Site) -> None:
    counts = []
    for peer in both:
        table(peer, "once", "id INTEGER PRIMARY KEY")
        table(peer, "log", "id INTEGER")
        script(
            peer, {"id": {"kind": "uniform", "low": 1, "high": 10}},
            statement("BEGIN"), statement("INSERT INTO log VALUES ($1)", "id"), statement("INSERT INTO once VALUES ($1)", "id"),
            statement("COMMIT"),
        )  # fmt: skip
        answer = slice_of(peer, 60)
        assert peer.query("plain", "SELECT COUNT(*) FROM log") == [[str(answer.operations)]]
        counts.append((answer.operations, answer.errors))
        assert answer.first_error.startswith("23505" if home.name == "postgresql" else "1062")
        peer.connect("plain", home.fields)
    assert counts[0] == counts[1]
    assert counts[0][1] > 0


@that_speak_to("postgresql")
def test_serialization_failures_are_tried_again(both: tuple[Agent, LanguageAgent]) -> None:
    """A function of PostgreSQL fails so that the operation may be tried again."""
    _, agent = both
    table(agent, "seen", "number INTEGER, stored VARCHAR(99)")
    agent.query(
        "plain", f"DROP FUNCTION IF EXISTS refuse(); DROP SEQUENCE IF EXISTS tries; CREATE SEQUENCE tries; {FUNCTION}"
    )
    parts = (
        statement("BEGIN"), step("set", "(random 1 1000000)", "a"), statement("INSERT INTO seen VALUES ($1, $2)", "n a"),
        statement("SELECT refuse()"), statement("END"),
    )  # fmt: skip
    script(agent, {"a": COMPUTED, "n": DRAWN["n"]}, *parts, tries=3)
    answer = operate(agent, 4)
    assert (answer["operations"], answer["errors"], answer["retries"]) == (4, 0, 8), answer["first_error"]
    assert [number for number, _ in seen(agent)] == ["1", "2", "3", "4"]
    script(agent, {"a": COMPUTED, "n": DRAWN["n"]}, *parts, tries=2)
    answer = operate(agent, 3)
    assert (answer["operations"], answer["retries"], answer["error_kinds"]) == (1, 2, "40001=2")


def test_a_connection_for_each_operation(both: tuple[Agent, LanguageAgent], home: Site) -> None:
    _, agent = both
    agent.connect("each", home.fields | {"per_request": True, "connections": 2})
    script(agent, {"u": KINDS["z"]}, statement("SELECT $1 + 0", "u"))
    answer = slice_of(agent, 6, "each")
    assert (answer.operations, answer.errors, answer.connects, answer.rows) == (6, 0, 6, 6), answer.first_error
    agent.disconnect("each")


def test_a_rate_is_kept(both: tuple[Agent, LanguageAgent]) -> None:
    _, agent = both
    script(agent, {}, statement("SELECT 1"))
    for arrivals in ("even", "random"):
        answer = agent.slice("plain", 1.0, discard=0.0, rate=40, arrivals=arrivals)
        assert answer.errors == 0
        assert 0 < answer.operations <= 75, "on a busy machine some come too late to be counted"
    answer = agent.slice("plain", 600.0, discard=0.0, rate=40, operations=20)
    assert (answer.operations, answer.errors) == (20, 0), "however late they are"
    assert answer.seconds >= 19 / 40, "the last one is due then"


def test_what_it_refuses(both: tuple[Agent, LanguageAgent]) -> None:
    _, agent = both
    for mode in ("simple", "extended"):
        script(agent, {}, statement("SELECT 1"), mode=mode)
        with pytest.raises(AgentError) as caught:
            operate(agent, 1)
        assert caught.value.code == "statement"
    script(agent, {}, step("startpipeline"), statement("SELECT 1"), step("endpipeline"))
    with pytest.raises(AgentError) as caught:
        operate(agent, 1)
    assert caught.value.code == "statement"


# ── queries and errors ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_query_answers_as_the_rust_agents_does(both: tuple[Agent, LanguageAgent], home: Site) -> None:
    text = "E'tab\\tnew\\nline\\\\;'" if home.name == "postgresql" else "'tab\\tnew\\nline\\\\;'"
    sql = (
        f"DROP TABLE IF EXISTS odd; CREATE TABLE odd (a INTEGER, b TEXT); INSERT INTO odd VALUES (1, {text}), (NULL, NULL), (3, ''); "
        "SELECT a, b AS c FROM odd ORDER BY coalesce(a, 2) -- ; a comment\n; DELETE FROM odd WHERE a = 7"
    )
    answers = [ask(peer, {"type": "query", "arm": "plain", "sql": sql}) for peer in both]
    assert answers[0] == answers[1]
    assert answers[0]["rows"] == 3
    codes = []
    for peer in both:
        with pytest.raises(AgentError) as caught:
            peer.query("plain", "SELECT * FROM nothing_of_the_kind")
        codes.append(caught.value.code.partition(" ")[0])
        assert peer.query("plain", "SELECT 1") == [["1"]]
    assert codes[0] == codes[1]


def test_a_statement_that_can_not_be_prepared_is_an_error_with_the_servers_code(
    both: tuple[Agent, LanguageAgent],
) -> None:
    codes = []
    for peer in both:
        script(peer, {}, statement("SELECT nothing FROM nowhere_at_all"))
        try:
            answer = operate(peer, 1)  # a driver that prepares nothing hears of it then
            codes.append(answer["error_kinds"].partition("=")[0].partition("-")[0])
        except AgentError as error:
            codes.append(error.code.partition(" ")[0])
    assert codes[0] == codes[1]
    assert codes[0]


def test_setup_runs_on_each_connection_and_its_failure_is_said(both: tuple[Agent, LanguageAgent], home: Site) -> None:
    _, agent = both
    setup, ask_for = (
        ("SET application_name = 'x;y'", "SHOW application_name")
        if home.name == "postgresql"
        else ("SET @a = 'x;y'", "SELECT @a")
    )
    agent.connect("setup", home.fields | {"connections": 2, "setup": f"{setup}; SELECT 1"})
    assert agent.query("setup", ask_for, everywhere=True) == [["x;y"]] * 2
    with pytest.raises(AgentError, match="setup: "):
        agent.connect("setup", home.fields | {"setup": f"{setup}; NONSENSE"})


def test_a_lost_connection_ends_the_slice_and_the_arm(both: tuple[Agent, LanguageAgent], home: Site) -> None:
    rust, agent = both
    agent.connect("victim", home.fields)
    number_of, kill = (
        ("pg_backend_pid()", "SELECT pg_terminate_backend({})")
        if home.name == "postgresql"
        else ("CONNECTION_ID()", "KILL {}")
    )
    [[number]] = agent.query("victim", f"SELECT {number_of}")
    rust.query("plain", kill.format(number))
    script(agent, {}, statement("SELECT 1"))
    with pytest.raises(AgentError):
        slice_of(agent, 5, "victim")
    with pytest.raises(AgentError) as caught:
        agent.query("victim", "SELECT 1")
    assert caught.value.code == "no-arm"
    assert agent.query("plain", "SELECT 1") == [["1"]]


def test_a_server_that_says_nothing_more_has_lost_its_arm_and_no_other(
    both: tuple[Agent, LanguageAgent], home: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, agent = both
    script(agent, {}, statement("SELECT pg_sleep(30)" if home.name == "postgresql" else "SELECT SLEEP(30)"))
    for timeout, words in (("0.25", "for 1 s"), ("2.5", "for 10 s")):
        agent.connect("silent", home.fields)
        monkeypatch.setenv("CIPHERCOST_TIMEOUT", timeout)
        with pytest.raises(AgentError) as caught:
            agent.slice("silent", 1.0)
        monkeypatch.delenv("CIPHERCOST_TIMEOUT")
        if f"{words}, with 1 operation" in str(caught.value):
            break  # a busy machine may take longer than 1 s before that operation
    assert f"{words}, with 1 operation" in str(caught.value)
    assert caught.value.code == "connect"
    with pytest.raises(AgentError) as caught:
        agent.query("silent", "SELECT 1")
    assert caught.value.code == "no-arm"
    assert agent.query("plain", "SELECT 1") == [["1"]]


def test_a_query_has_a_deadline(both: tuple[Agent, LanguageAgent], home: Site) -> None:
    _, agent = both
    agent.connect("silent", home.fields)
    with pytest.raises(AgentError, match=r"did not finish its answer within 0\.5 s") as caught:
        agent.query("silent", "SELECT pg_sleep(30)" if home.name == "postgresql" else "SELECT SLEEP(30)", timeout=0.5)
    assert caught.value.code == "timeout"
    assert agent.query("plain", "SELECT 1") == [["1"]]


# ── encryption ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_encrypts_verifies_and_reports(agent: LanguageAgent, home: Site) -> None:
    plain = agent.connect("plain", home.fields)
    assert (plain.encrypted, plain.protocol, plain.cipher, plain.verified) == (False, "", "", False)
    connected = agent.connect("encrypted", home.encrypted())
    assert (connected.encrypted, connected.protocol) == (True, "TLSv1.3")
    if "1.3" in agent.driver.cipher:
        assert connected.cipher == "TLS_AES_256_GCM_SHA384"
    assert (connected.verified, connected.verified_by) == (True, "certificate")
    assert connected.checked == f"{REFUSES['certificate']}, and the server under another name"
    assert agent.driver.version in connected.driver_version
    script(agent, {}, statement("SELECT 1"))
    answer = slice_of(agent, 3, "encrypted")
    assert (answer.encrypted, answer.protocol, answer.driver_version) == (True, "TLSv1.3", connected.driver_version)
    agent.disconnect("encrypted")


def test_a_name_leads_where_it_is_told_to_and_is_checked(agent: LanguageAgent, home: Site) -> None:
    """A relay's address is not the server's: the driver still checks the server's own name."""
    with Relay(home.fields.host, home.fields.port) as relay:
        through = home.encrypted() | {"host": "127.0.0.1", "port": relay.port}
        assert agent.connect("relayed", through | {"tls_server_name": "localhost"}).encrypted
        agent.disconnect("relayed")
        with pytest.raises(AgentError) as caught:
            agent.connect("relayed", through | {"tls_server_name": "other.example"})
    assert caught.value.code == "tls", str(caught.value)


def test_require_checks_nothing_and_verify_ca_no_name(agent: LanguageAgent, home: Site) -> None:
    agent.connect("encrypted", home.encrypted("require") | {"tls_ca": None})
    if "ca" in agent.driver.verify:
        with Relay(home.fields.host, home.fields.port, listen="127.0.0.2") as relay:
            agent.connect("encrypted", home.encrypted("verify-ca") | {"host": "127.0.0.2", "port": relay.port})
    agent.disconnect("encrypted")


def test_another_authoritys_certificate_is_refused_in_words(agent: LanguageAgent, home: Site, tmp_path: Path) -> None:
    other = pki.Pki(tmp_path / "other", "rsa2048").ca
    for mode in ("verify-ca", "verify-full"):
        if mode.removeprefix("verify-") in agent.driver.verify:
            with pytest.raises(AgentError, match=r"(?i)certificate|self.signed|SSL") as caught:
                agent.connect("refused", home.encrypted(mode) | {"tls_ca": str(other)})
            assert caught.value.code == "tls", str(caught.value)


def test_it_offers_the_versions_that_it_is_told(agent: LanguageAgent, home: Site) -> None:
    told = home.encrypted() | {"tls_min": "1.2", "tls_max": "1.2", "tls_ciphers": None}
    assert agent.connect("encrypted", told).protocol == "TLSv1.2"
    agent.disconnect("encrypted")


@that_speak_to("mysql")
def test_mysql(driver: Driver, mysql: Site, supervised: supervisor.Supervisor, require: Require) -> None:
    with started(driver, mysql, supervised, require) as agent, Agent() as rust:
        rows = []
        for peer in (rust, agent):
            peer.connect("plain", mysql.fields)
            assert peer.connect("encrypted", mysql.encrypted()).protocol == "TLSv1.3"
            table(peer, "pair", "a INTEGER, b VARCHAR(30)")
            script(
                peer, {"id": {"kind": "sequence", "low": 1}, "t": KINDS["t"]},
                statement("BEGIN"), statement("INSERT INTO pair VALUES ($1, $2)", "id t"),
                statement("UPDATE pair SET b = $2 WHERE a = $1", "id t"), statement("SELECT a, b FROM pair WHERE a = $1", "id"),
                statement("COMMIT"),
            )  # fmt: skip
            answer = slice_of(peer, 50, "encrypted")
            assert (answer.operations, answer.errors, answer.rows) == (50, 0, 50), answer.first_error
            rows.append(peer.query("plain", "SELECT a, b FROM pair ORDER BY a"))
            for arm in ("encrypted", "plain"):
                peer.disconnect(arm)
        assert rows[0] == rows[1]


# ── passwords ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def address(require: Require) -> Iterator[str]:
    with another_machines() as address:
        require(address, "this machine has no address but loopback")
        yield address


def log_in_and_ask(agent: Agent, told: Connection) -> None:
    agent.connect("rogue", told)
    agent.query("rogue", "SELECT 1")


def test_no_rogue_elsewhere_learns_the_password(agent: LanguageAgent, address: str) -> None:
    """Over an unencrypted connection to another machine, whatever the server asks for."""
    ways = ROGUES[agent.engine.driver]
    for way in ways:
        with Rogue(ways[way], address) as rogue:
            told = Connection(
                driver="none",
                host=address,
                port=rogue.port,
                user="me",
                database="shop",
                password=Secret(PASSWORD),
                timeout=5,
            )
            with pytest.raises(AgentError):
                log_in_and_ask(agent, told)
        assert not rogue.has_learned_it(), way


def test_a_password_stands_in_no_error(agent: LanguageAgent, home: Site) -> None:
    with pytest.raises(AgentError) as caught:
        agent.connect("refused", home.fields | {"user": "nobody_here", "password": Secret("swordfish")})
    assert "swordfish" not in str(caught.value)
