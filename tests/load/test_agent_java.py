"""The Java agent on real servers: the same operations as the Rust agent's, several driver versions side by side, each
driver's messages.
"""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asking import ask
from ciphercost import engines, mechanisms
from ciphercost.engines import Server, StartRequest
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.host import supervisor
from ciphercost.host.installation import Installation
from ciphercost.host.pki import Pki
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.agent import PROTOCOL, Agent
from ciphercost.load.jdbc import drivers, java
from ciphercost.load.jdbc.drivers import DRIVERS, SERVICE, Driver, Target, TlsRequest, address, find
from ciphercost.model import run_directory
from ciphercost.model.connection import JdbcCalls, JdbcChanges, JdbcConnection, Pool
from ciphercost.model.errors import AgentError, CiphercostError, MissingServer, RunError
from ciphercost.model.secret import Secret, reveal
from ciphercost.model.slices import AgentSlice
from conftest import Require
from test_vectors import files_for, run

RequireServer = Callable[..., Installation]
TAKES_ALL = {"version": "5.7.19-log"}
"""Every version of every driver accepts a MariaDB that greets with this version."""
ID: Mapping[str, Any] = {"kind": "uniform", "low": 1, "high": 1000}


@pytest.fixture(scope="module")
def command(require: Require) -> list[str]:
    try:
        return java.command()
    except CiphercostError as error:
        require(None, str(error))
        raise


@pytest.fixture(scope="module")
def agent(command: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """One agent for all tests: nothing that one driver does may affect another."""
    with Agent(command, log=tmp_path_factory.mktemp("logs") / "agent.log", env=java.OTHERS) as started:
        yield started


@pytest.mark.parametrize("path", files_for("java"), ids=lambda path: path.stem)
def test_it_passes_the_vectors(tmp_path: Path, path: Path, command: list[str], request: pytest.FixtureRequest) -> None:
    if path.stem == "floor":  # ciphers, to which only the second compiler gives the CPU's instructions
        request.getfixturevalue("whole_java")
        command = java.command()
    run(path, command, tmp_path)


# ── a server, and how drivers get there ───────────────────────────────────────────────────────────────────────────────


class DriverServer:
    """A server with TLS, and the settings of its drivers."""

    def __init__(self, engine: str, server: Server, directory: Path, require: Require) -> None:
        self.engine = engines.get(engine)
        self.server = server
        self.require = require
        self.fields = server.connection()
        self.password = Secret(reveal(self.fields.password))
        self.ca = self.store = ""
        if certificates := list(directory.rglob("ca.pem")):
            self.ca = str(certificates[0])
            self.store = str(drivers.trust_store(certificates[0], directory / "ca.p12"))

    def told(self, driver: Driver, mode: str = "plain", protocol: str = "", **more: Any) -> JdbcConnection:
        """Return fields of `connect`; `properties` are added to the driver's own."""
        target = Target("127.0.0.1", self.fields.port, str(self.fields.database))
        wish = TlsRequest(mode, self.ca, self.store, protocol)  # type: ignore[arg-type]
        properties = more.pop("properties", {})
        assert isinstance(properties, dict)
        try:
            driver.jars()
        except MissingServer as error:
            self.require(None, str(error))
        told = address(driver, target, wish, properties)
        user = str(self.fields.user)
        return drivers.connection(
            driver,
            told,
            user,
            self.password,
            witness=EncryptsConnections.of(self.engine).tls_witness,
            more=JdbcCalls(**more),  # type: ignore[typeddict-item]
        )


def driver_server(
    name: str, version: str, settings: dict[str, str], wanted: tuple[RequireServer, Require]
) -> Iterator[DriverServer]:
    require_server, require = wanted
    installation, engine, tls = require_server(name, version), engines.get(name), mechanisms.get("tls")
    run_id = run_directory.new_id()
    with Supervisor(run_id) as run_supervisor:
        scratch = supervisor.scratch(run_id, run_supervisor)
        engine.initialise(installation, scratch / "data", run_supervisor)
        secured = tls.server_settings(engine, tls.check({}), scratch / "secrets") if isinstance(engine, HasTls) else {}
        logs = scratch / "logs"
        logs.mkdir()
        running = engine.start(
            StartRequest(installation, scratch / "data", run_supervisor, settings=secured | settings, logs=logs)
        )
        yield DriverServer(name, running, scratch, require)
        running.stop()
    assert run_supervisor.problems == []


@pytest.fixture(scope="module")
def mariadb(require_server: RequireServer, require: Require) -> Iterator[DriverServer]:
    yield from driver_server("mariadb", "10.11", TAKES_ALL, (require_server, require))


@pytest.fixture(scope="module")
def mysql(require_server: RequireServer, require: Require) -> Iterator[DriverServer]:
    yield from driver_server("mysql", "", {}, (require_server, require))


@pytest.fixture(scope="module")
def postgresql(require_server: RequireServer, require: Require) -> Iterator[DriverServer]:
    yield from driver_server("postgresql", "", {}, (require_server, require))


@pytest.fixture(scope="module")
def firebird(require_server: RequireServer, require: Require) -> Iterator[DriverServer]:
    yield from driver_server("firebird", "", {}, (require_server, require))


def program(agent: Agent, *statements: tuple[str, str], **variables: Mapping[str, Any]) -> None:
    """A program of one transaction; each statement comes with the names of its parameters."""
    ask(agent, {"type": "program", "name": "test"})
    for name, fields in variables.items():
        ask(agent, {"type": "variable", "name": name, **fields})
    ask(agent, {"type": "transaction", "name": "only", "weight": 1})
    for sql, parameters in statements:
        ask(agent, {"type": "statement", "transaction": "only", "sql": sql, "parameters": parameters})


def operate(agent: Agent, arm: str, operations: int, seed: int = 1) -> AgentSlice:
    return agent.slice(arm, 60, discard=0, seed=seed, operations=operations)


# ── the same operations ───────────────────────────────────────────────────────────────────────────────────────────────

KINDS: dict[str, dict[str, Any]] = {
    "u": {"kind": "uniform", "low": -5, "high": 10**12},
    "w": {"kind": "uniform", "low": -(2**63), "high": 2**63 - 1},
    "z": {"kind": "zipfian", "low": 1, "high": 100_000, "skew": 1.1},
    "y": {"kind": "zipfian", "low": 7, "high": 5_000, "skew": 0.6},
    "t": {"kind": "text", "length": 21},
    "c": {"kind": "constant", "value": "it's \\ $1 ?"},
    "s": {"kind": "sequence", "low": 100},
}


@pytest.mark.parametrize("connections", [1, 3])
def test_both_agents_run_the_same_operations(agent: Agent, mariadb: DriverServer, connections: int) -> None:
    # Threads decide which operation gets which number of a sequence; everything else belongs to the operation.
    names = [name for name in KINDS if name != "s" or connections == 1]
    columns = ", ".join(names)
    marks = ", ".join(f"${number}" for number in range(1, len(names) + 1))
    seed = 2**63 + 11
    rows = {}
    with Agent() as rust:
        both: list[tuple[Agent, Pool]] = [(rust, mariadb.fields), (agent, mariadb.told(find("9.7.0", "mariadb")))]
        for peer, fields in both:
            peer.connect("plain", msgspec.structs.replace(fields, connections=connections))
            table = "which CHAR(1), u BIGINT, w BIGINT, z BIGINT, y BIGINT, t TEXT, c TEXT, s BIGINT"
            peer.query("plain", f"CREATE OR REPLACE TABLE drawn ({table})")
            ask(peer, {"type": "program", "name": "draws"})
            for name in names:
                ask(peer, {"type": "variable", "name": name, **KINDS[name]})
            for which, weight, mine in (("a", 1, names), ("b", 3, names[:1])):
                ask(peer, {"type": "transaction", "name": which, "weight": weight})
                to, values = (columns, marks) if mine == names else (names[0], "$1")
                sql = f"INSERT INTO drawn (which, {to}) VALUES ('{which}', {values})"
                ask(peer, {"type": "statement", "transaction": which, "sql": sql, "parameters": " ".join(mine)})
            answer = operate(peer, "plain", 2000, seed)
            assert (answer.operations, answer.errors) == (2000, 0), answer.first_error
            rows[peer is rust] = peer.query("plain", f"SELECT which, {columns} FROM drawn ORDER BY which, u, w")
    assert len(rows[True]) == 2000
    assert rows[True] == rows[False]
    assert {row[0] for row in rows[True]} == {"a", "b"}


def test_another_seed_is_other_operations(agent: Agent, mariadb: DriverServer) -> None:
    agent.connect("plain", mariadb.told(find("3.5.11", "mariadb")))
    program(agent, ("SELECT $1", "u"), u=KINDS["u"])
    first, again, other = (operate(agent, "plain", 50, seed) for seed in (1, 1, 2))
    assert first.rows == other.rows == 50
    assert first.checksum == again.checksum != other.checksum


# ── drivers beside each other ─────────────────────────────────────────────────────────────────────────────────────────


def test_many_versions_run_in_one_machine_and_none_leaks_into_another(agent: Agent, mariadb: DriverServer) -> None:
    speaking = [driver for driver in DRIVERS if driver.family in ("connector-j", "mariadb")]
    assert len(speaking) >= 8
    wanted: dict[str, tuple[Driver, str]] = {}
    for number, driver in enumerate(speaking):
        oldest = driver.version == "5.1.6"
        only_12 = driver.version in ("5.1.49", "8.0.16")
        protocol = "" if oldest else "1.2" if only_12 or number % 2 else "1.3"
        arm = f"{driver.family}-{driver.version}"
        fields = mariadb.told(driver, "plain" if oldest else "verify-ca", protocol)
        connected = agent.connect(arm, fields)
        assert connected.encrypted is not oldest, connected
        assert connected.server_version == "5.7.19-log"
        assert "SunJSSE" in connected.library
        wanted[arm] = (driver, f"TLSv{protocol}" if protocol else "")
    program(agent, ("SELECT $1 + 1", "id"), id=ID)
    sums = set()
    for _ in range(3):
        for arm, (driver, protocol) in wanted.items():
            answer = operate(agent, arm, 20)
            assert (answer.operations, answer.errors, answer.rows) == (20, 0, 20), answer.first_error
            assert driver.version in answer.driver_version
            assert (answer.protocol, answer.encrypted) == (protocol, bool(protocol)), arm
            sums.add(answer.checksum)
    assert len(sums) == 1, "the rows differ by driver"


def test_a_driver_that_ignores_a_property_is_caught_by_the_witness(agent: Agent, mariadb: DriverServer) -> None:
    driver = find("2.7.15", "mariadb")
    asked = mariadb.told(driver) | {"properties": Secret("sslMode=verify-full")}
    assert agent.connect("a", asked).encrypted is False
    assert agent.connect("b", mariadb.told(driver, "verify-full")).encrypted is True


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def refused(agent: Agent, fields: JdbcConnection) -> AgentError:
    with pytest.raises(AgentError) as caught:
        agent.connect("refused", fields)
    text = str(caught.value)
    assert "\n" not in text
    assert "\tat " not in text
    assert len(text) < 1000
    return caught.value


def test_a_driver_that_cannot_connect_gives_its_own_reason_and_the_others_go_on(
    agent: Agent, mariadb: DriverServer, mysql: DriverServer
) -> None:
    newest, oldest = find("newest", "mysql"), find("5.1.6", "mysql")
    agent.connect("other", mariadb.told(newest))

    error = refused(agent, mariadb.told(oldest, "require"))
    assert error.code == "tls"
    assert "No appropriate protocol" in str(error)

    error = refused(agent, mysql.told(oldest))
    assert error.code == "1251 (08004)"
    assert "does not support authentication protocol" in str(error)

    error = refused(agent, mariadb.told(newest) | {"url": "jdbc:mysql://127.0.0.1:1/"})
    assert "Connection refused" in str(error)
    assert agent.query("other", "SELECT 7") == [["7"]]


@pytest.mark.parametrize("version", ["5.1.6", "9.7.0", "2.7.15", "4.0.0"])
def test_a_password_stands_in_no_error(agent: Agent, mariadb: DriverServer, version: str) -> None:
    fields = mariadb.told(find(version, "mariadb"))
    error = refused(agent, fields | {"password": Secret("swordfish")})
    assert error.code == "1045 (28000)"
    assert "Access denied" in str(error)
    assert "swordfish" not in str(error)
    # Nor if the server or the URL would repeat it.
    url = f"{fields.url}?password=swordfish"
    error = refused(agent, (fields | {"url": url, "password": Secret("swordfish"), "user": "swordfish"}))
    assert "swordfish" not in str(error)


def test_a_certificate_of_another_ca_is_refused_in_words(agent: Agent, mariadb: DriverServer, tmp_path: Path) -> None:
    other = Pki(tmp_path / "other")
    for version in ("9.7.0", "3.5.11"):
        wish = TlsRequest("verify-ca", str(other.ca), str(drivers.trust_store(other.ca, tmp_path / "other.p12")))
        driver = find(version, "mariadb")
        target = Target("127.0.0.1", mariadb.fields.port)
        error = refused(agent, drivers.connection(driver, address(driver, target, wish), "any"))
        assert error.code == "tls", error
        assert "Exception" in str(error)


def jar(path: Path, service: str = "", **classes: bytes) -> str:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
        if service:
            archive.writestr(SERVICE, service)
        for name, content in classes.items():
            archive.writestr(f"{name}.class", content)
    return str(path)


def test_only_a_driver_of_its_own_is_looked_for(agent: Agent, mariadb: DriverServer) -> None:
    # This driver can't see classes in the agent's own jar or in another driver's.
    fields = mariadb.told(find("9.7.0", "mariadb"))
    for name in ("ciphercost.load.agent.Main", "org.mariadb.jdbc.Driver"):
        with pytest.raises(AgentError, match=f"there is no class {name}") as caught:
            agent.connect("refused", fields | {"driver_class": name})
        assert caught.value.code == "driver"


def test_what_is_no_driver_is_refused_in_words(agent: Agent, mariadb: DriverServer, tmp_path: Path) -> None:
    good = mariadb.told(find("9.7.0", "mariadb"))
    (tmp_path / "text.jar").write_text("no jar")
    newer = struct.pack(">IHH", 0xCAFEBABE, 0, 44 + 99) + bytes(64)
    changes: list[tuple[JdbcChanges, str]] = [
        ({"jars": jar(tmp_path / "empty.jar")}, "contains no JDBC driver"),
        ({"jars": jar(tmp_path / "newer.jar", "Newer", Newer=newer)}, "needs Java 99, but this is Java"),
        ({"jars": jar(tmp_path / "gone.jar", "Gone")}, "there is no class Gone"),
        ({"jars": str(tmp_path / "missing.jar")}, "can't be read"),
        ({"jars": str(tmp_path / "text.jar")}, "is not a jar"),
        ({"driver_class": "com.mysql.cj.Messages"}, "can't be loaded|is not a java.sql.Driver"),
        ({"url": "jdbc:postgresql://127.0.0.1:5432/postgres?password=swordfish"}, "does not accept the URL"),
    ]
    for fields, words in changes:
        with pytest.raises(AgentError, match=words) as caught:
            agent.connect("refused", good | fields)
        assert caught.value.code == "driver", fields
        assert "swordfish" not in str(caught.value)


def test_failed_operations_are_counted_as_the_other_agent_counts_them(agent: Agent, mariadb: DriverServer) -> None:
    counts = []
    with Agent() as rust:
        for peer, fields in ((rust, mariadb.fields), (agent, mariadb.told(find("8.0.33", "mariadb")))):
            peer.connect("plain", fields)
            peer.query("plain", "CREATE OR REPLACE TABLE once (id INTEGER PRIMARY KEY)")
            peer.query("plain", "CREATE OR REPLACE TABLE log (id INTEGER)")
            program(
                peer, ("BEGIN", ""), ("INSERT INTO log VALUES ($1)", "id"), ("INSERT INTO once VALUES ($1)", "id"), ("COMMIT", ""),
                id={"kind": "uniform", "low": 1, "high": 10},
            )  # fmt: skip
            answer = operate(peer, "plain", 100)
            # A failed operation's earlier changes are rolled back.
            assert peer.query("plain", "SELECT COUNT(*) FROM log") == [[str(answer.operations)]]
            counts.append((answer.operations, answer.errors, answer.error_kinds))
            assert answer.first_error.startswith("1062 (23000): ")
    assert counts[0] == counts[1]
    assert counts[0][1] > 0


def test_an_operation_that_fails_after_the_slices_end_is_an_error(agent: Agent, mariadb: DriverServer) -> None:
    """An operation in flight at the end does not count, unless it fails: a timeout comes long after."""
    told = mariadb.told(find("3.5", "mariadb"), setup="SET max_statement_time = 4")
    agent.connect("late", told)
    program(agent, ("SELECT SLEEP(30)", ""))
    answer = agent.slice("late", 1.0, discard=0.0)
    assert (answer.operations, answer.errors, answer.work) == (0, 1, 0.0)
    assert answer.error_kinds.startswith("1969")
    program(agent, ("SELECT SLEEP(2)", ""))
    answer = agent.slice("late", 1.0, discard=0.0)
    assert (answer.operations, answer.errors) == (0, 0)
    assert 0 < answer.work < 1
    agent.disconnect("late")


def test_a_lost_connection_ends_the_slice_and_the_arm(agent: Agent, mariadb: DriverServer) -> None:
    for version in ("5.1.49", "9.7.0", "3.5.11"):
        agent.connect("killer", mariadb.told(find("2.7.15", "mariadb")))
        agent.connect("victim", mariadb.told(find(version, "mariadb")))
        [[number]] = agent.query("victim", "SELECT CONNECTION_ID()")
        program(agent, (f"KILL {number}", ""))
        with pytest.raises(AgentError, match=r"read 0 bytes|Connection reset"):  # as the kernel reports it
            operate(agent, "victim", 5)
        with pytest.raises(AgentError) as caught:
            agent.query("victim", "SELECT 1")
        assert caught.value.code == "no-arm"
        assert agent.query("killer", "SELECT 1") == [["1"]]


def test_a_server_that_says_nothing_more_has_lost_its_arm_and_no_other(
    command: list[str], mariadb: DriverServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Agent(command, env=java.OTHERS) as agent:
        agent.connect("other", mariadb.told(find("3.5.11", "mariadb")))
        for version in ("5.1.6", "9.7.0", "2.7.15"):
            for timeout, words in (("0.25", "for 1 s"), ("2.5", "for 10 s")):
                agent.connect("silent", mariadb.told(find(version, "mariadb")))
                program(agent, ("SELECT SLEEP(3600)", ""))
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
            assert agent.query("other", "SELECT 1") == [["1"]]


# ── how statements are run ────────────────────────────────────────────────────────────────────────────────────────────


class Counted:
    """Return the server's counters while inserts run through a driver."""

    def __init__(self, agent: Agent, mariadb: DriverServer) -> None:
        self.agent, self.mariadb = agent, mariadb
        agent.connect("counter", mariadb.told(find("3.5.11", "mariadb")))
        agent.query("counter", "CREATE OR REPLACE TABLE rows_in (id INTEGER AUTO_INCREMENT PRIMARY KEY, u BIGINT)")
        program(agent, ("INSERT INTO rows_in (u) VALUES ($1)", "u"), u=KINDS["u"])

    def counts(self) -> dict[str, int]:
        names = "'Com_select', 'Com_insert', 'Com_commit', 'Com_stmt_prepare', 'Connections'"
        rows = self.agent.query("counter", f"SHOW GLOBAL STATUS WHERE Variable_name IN ({names})")
        return {str(name): int(str(value)) for name, value in rows}

    def of(self, version: str, operations: int, **more: object) -> dict[str, int]:
        self.agent.query("counter", "TRUNCATE rows_in")
        connected = self.agent.connect("writer", self.mariadb.told(find(version, "mariadb"), "plain", "", **more))
        assert connected.driver_version
        before = self.counts()
        answer = operate(self.agent, "writer", operations)
        after = self.counts()
        assert (answer.operations, answer.errors) == (operations, 0), answer.first_error
        assert answer.work == pytest.approx(operations)
        assert self.agent.query("counter", "SELECT COUNT(*) FROM rows_in") == [[str(operations)]]
        return {name: after[name] - before[name] for name in after} | {"connects": answer.connects}


@pytest.fixture
def counted(agent: Agent, mariadb: DriverServer) -> Counted:
    return Counted(agent, mariadb)


def test_execute_asks_the_server_more_than_execute_update_does(counted: Counted) -> None:
    # The witness queries once, before the slice.
    for version, extra in (("5.1.49", 60), ("9.7.0", 60), ("5.1.6", 0), ("3.5.11", 0)):
        update = counted.of(version, 60)
        execute = counted.of(version, 60, how="execute")
        assert update["Com_insert"] == execute["Com_insert"] == 60
        assert execute["Com_select"] - update["Com_select"] == extra, version
    told = counted.of("9.7.0", 60, how="execute", properties={"useLocalSessionState": "true"})
    assert told["Com_select"] == counted.of("9.7.0", 60)["Com_select"]


def test_an_operation_of_a_batch_is_one_row(counted: Counted) -> None:
    rewritten = {"rewriteBatchedStatements": "true"}
    assert counted.of("9.7.0", 250, how="batch", batch=100)["Com_insert"] == 250
    assert counted.of("9.7.0", 250, how="batch", batch=100, properties=rewritten)["Com_insert"] == 3
    assert counted.of("9.7.0", 250, how="batch", batch=100, prepared=False, properties=rewritten)["Com_insert"] == 3


def test_without_autocommit_operations_are_committed_by_so_many(counted: Counted) -> None:
    assert counted.of("9.7.0", 100)["Com_commit"] == 0
    alone = counted.of("9.7.0", 100, autocommit=False)
    by_ten = counted.of("9.7.0", 105, autocommit=False, commit_every=10)
    batched = counted.of("9.7.0", 105, how="batch", batch=10, autocommit=False, commit_every=20)
    # Before the slice: one after the witness, one after preparing the statements.
    assert alone["Com_commit"] - 100 == by_ten["Com_commit"] - 11 == batched["Com_commit"] - 6 == 2


def test_statements_are_prepared_once_or_each_time(counted: Counted) -> None:
    server = {"useServerPrepStmts": "true"}
    kept = counted.of("9.7.0", 100, properties=server)["Com_stmt_prepare"]
    assert kept <= 2
    assert counted.of("9.7.0", 100, properties=server, prepared=False)["Com_stmt_prepare"] >= 100


def test_a_connection_for_each_operation(counted: Counted) -> None:
    for version in ("5.1.6", "9.7.0", "4.0.0"):
        counts = counted.of(version, 20, per_request=True)
        assert counts["Connections"] == counts["connects"] == 20


def test_each_connection_has_a_thread(agent: Agent, mariadb: DriverServer) -> None:
    agent.connect("plain", mariadb.told(find("9.7.0", "mariadb")) | {"connections": 5})
    program(agent, ("SELECT $1", "id"), id=ID)
    answer = agent.slice("plain", 2.0, discard=0.25, seed=3, rate=200)
    assert answer.threads == 5
    assert answer.errors == 0
    assert answer.operations > 10
    assert agent.query("plain", "SELECT 1", everywhere=True) == [["1"]] * 5
    assert (answer.bytes_sent, answer.process_cpu_ns >= 0, answer.gc_ms >= 0) == (0, True, True)


def test_a_machine_that_has_just_begun_compiles(command: list[str], mariadb: DriverServer) -> None:
    with Agent(command, env=java.OTHERS) as cold:
        cold.connect("plain", mariadb.told(find("9.7.0", "mariadb"), "require", "1.3"))
        program(cold, ("SELECT $1", "id"), id=ID)
        answer = operate(cold, "plain", 2000)
    assert answer.jit_ms > 0
    assert answer.process_cpu_ns > 0


def test_setup_runs_on_each_connection_and_its_failure_is_said(agent: Agent, mariadb: DriverServer) -> None:
    fields = mariadb.told(find("9.7.0", "mariadb"))
    agent.connect("plain", fields | {"connections": 2, "setup": "SET @a = 'x;y'; SET @b = 2"})
    assert agent.query("plain", "SELECT @a, @b", everywhere=True) == [["x;y", "2"]] * 2
    with pytest.raises(AgentError, match="setup: ") as caught:
        agent.connect("plain", fields | {"setup": "SET @a = 1; NONSENSE"})
    assert caught.value.code == "1064 (42000)"


def test_a_query_answers_as_the_other_agents_does(agent: Agent, mariadb: DriverServer) -> None:
    sql = (
        "CREATE OR REPLACE TABLE odd (a INTEGER, b TEXT); INSERT INTO odd VALUES (1, 'tab\tnew\nline\\\\;'), (NULL, NULL), (3, ''); "
        "SELECT a, b AS c FROM odd ORDER BY a -- ; a comment\n; SET @x = 1"
    )
    answers = []
    with Agent() as rust:
        both: list[tuple[Agent, Pool]] = [(rust, mariadb.fields), (agent, mariadb.told(find("9.7.0", "mariadb")))]
        for peer, fields in both:
            peer.connect("plain", fields)
            answers.append(ask(peer, {"type": "query", "arm": "plain", "sql": sql}))
    assert answers[0] == answers[1]
    assert answers[0]["rows"] == 3
    with pytest.raises(AgentError) as caught:
        agent.query("plain", "SELECT * FROM nothing_of_the_kind")
    assert caught.value.code == "1146 (42S02)"


# ── other servers ─────────────────────────────────────────────────────────────────────────────────────────────────────


def same_on(driver_server: DriverServer, agent: Agent, driver: Driver, table: str, mode: str) -> AgentSlice:
    """Transactions of both agents leave the same rows, and the Java agent's are encrypted as requested."""
    rows = []
    answer = None
    with Agent() as rust:
        both: list[tuple[Agent, Pool]] = [(rust, driver_server.fields), (agent, driver_server.told(driver, mode))]
        for peer, fields in both:
            connected = peer.connect("arm", fields)
            if peer is agent:
                assert connected.encrypted is (mode != "plain")
            peer.query("arm", table)
            program(
                peer, ("BEGIN", ""), ("INSERT INTO pair VALUES ($1, $2)", "id t"), ("UPDATE pair SET b = $2 WHERE a = $1", "id t"),
                ("SELECT a, b FROM pair WHERE a = $1", "id"), ("COMMIT", ""),
                id={"kind": "sequence", "low": 1}, t=KINDS["t"],
            )  # fmt: skip
            answer = operate(peer, "arm", 100)
            assert (answer.operations, answer.errors, answer.rows) == (100, 0, 100), answer.first_error
            rows.append(peer.query("arm", "SELECT a, b FROM pair ORDER BY a"))
            # A prepared statement keeps its table locked.
            peer.connect("arm", fields)
            peer.query("arm", "DROP TABLE pair")
            peer.disconnect("arm")
    assert rows[0] == rows[1]
    assert len(rows[0]) == 100
    assert answer is not None
    return answer


@pytest.mark.parametrize("mode", ["plain", "verify-full"])
def test_postgresql(agent: Agent, postgresql: DriverServer, mode: str) -> None:
    answer = same_on(postgresql, agent, find("", "postgresql"), "CREATE TABLE pair (a integer, b varchar(30))", mode)
    assert answer.protocol == ("" if mode == "plain" else "TLSv1.3")


@pytest.mark.parametrize("mode", ["plain", "require"])
def test_firebird(agent: Agent, firebird: DriverServer, mode: str) -> None:
    answer = same_on(firebird, agent, find("", "firebird"), "CREATE TABLE pair (a INTEGER, b VARCHAR(30))", mode)
    assert answer.encrypted is (mode == "require")


@pytest.mark.parametrize("version", ["9.7.0", "26.10.0", "4.0.0"])
def test_mysql(agent: Agent, mysql: DriverServer, version: str) -> None:
    table = "CREATE TABLE pair (a INTEGER, b VARCHAR(30))"
    assert same_on(mysql, agent, find(version, "mysql"), table, "verify-full").protocol == "TLSv1.3"


def decided_on(driver_server: DriverServer, agent: Agent, driver: Driver) -> list[list[list[str | None]]]:
    """What each agent leaves behind when a script decides: rows into variables, NULL, a boolean and a fraction as parameters."""
    rows = []
    with Agent() as rust:
        both: list[tuple[Agent, Pool]] = [(rust, driver_server.fields), (agent, driver_server.told(driver))]
        for peer, fields in both:
            peer.connect("arm", fields)
            peer.query("arm", "CREATE TABLE decided (a INTEGER, b DOUBLE PRECISION, c INTEGER, d VARCHAR(30))")
            ask(peer, {"type": "program", "name": "test"})
            for name in ("b", "c", "none", "o_last"):
                ask(peer, {"type": "variable", "name": name, "kind": "computed"})
            ask(peer, {"type": "variable", "name": "id", "kind": "sequence", "low": 1})
            ask(peer, {"type": "transaction", "name": "only", "weight": 1})
            insert = "INSERT INTO decided VALUES ($1, $2, $3, $4)"
            for part in (
                {"sql": "SELECT COUNT(*) AS last FROM decided", "parameters": "", "into": "o_"},
                {"do": "set", "variable": "b", "expression": "(/ (random 1 1000) 8.0)"},
                {"do": "set", "variable": "c", "expression": "(= (% :o_last 2) 0)"},
                {"do": "set", "variable": "none", "expression": "null"},
                {"do": "if", "expression": ":c"},
                {"sql": insert, "parameters": "id b c o_last"},
                {"do": "else"},
                {"sql": insert, "parameters": "id b none none"},
                {"do": "endif"},
            ):
                kind = "statement" if "sql" in part else "step"
                ask(peer, {"type": kind, "transaction": "only", **part})
            answer = operate(peer, "arm", 20)
            assert (answer.operations, answer.errors, answer.rows) == (20, 0, 20), answer.first_error
            rows.append(peer.query("arm", "SELECT a, b * 8, c, d FROM decided ORDER BY a"))
            # A prepared statement keeps its table locked.
            peer.connect("arm", fields)
            peer.query("arm", "DROP TABLE decided")
            peer.disconnect("arm")
    return rows


@pytest.mark.parametrize(("server", "version"), [("mariadb", "9.7.0"), ("mariadb", "4.0.0"), ("firebird", "")])
def test_both_agents_decide_alike(agent: Agent, server: str, version: str, request: pytest.FixtureRequest) -> None:
    rust, of_java = decided_on(request.getfixturevalue(server), agent, find(version, server))
    # Drivers write a number with a fraction in their own ways.
    assert [(row[0], float(str(row[1])), row[2:]) for row in rust] == [
        (row[0], float(str(row[1])), row[2:]) for row in of_java
    ]
    assert rust[0][2:] == ["1", "0"]
    assert rust[1][2:] == [None, None]


# ── Java itself ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_missing_java_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MissingServer, match=r"'java' was not found"):
        java.find()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingServer, match="not in JAVA_HOME"):
        java.find()


def test_an_old_java_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "old"
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text("#!/bin/sh\necho 'openjdk version \"11.0.22\" 2024-01-16' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingServer, match=r"Java 17 .*/java is Java 11"):
        java.find()


def test_an_old_java_is_taken_for_an_agent_that_was_converted_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_452\"' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    jar = tmp_path / "agent.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr(java.MAIN, b"\xca\xfe\xba\xbe\x00\x00\x00\x34")
    monkeypatch.setenv(java.CHOSEN, str(jar))
    assert java.find() == program
    monkeypatch.delenv(java.CHOSEN)
    with pytest.raises(MissingServer, match="needs Java 17 or newer"):
        java.find()


@pytest.mark.parametrize(
    ("printed", "number"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_452"', 8),
        ('openjdk version "25"', 25),
        ("?", 0),
    ],
)
def test_a_java_says_its_version(printed: str, number: int) -> None:
    assert java.number(printed) == number


def test_a_jar_that_is_named_is_not_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(java.CHOSEN, str(tmp_path / "missing.jar"))
    with pytest.raises(MissingServer, match="which is not a file"):
        java.jar()
    (tmp_path / "agent.jar").touch()
    monkeypatch.setenv(java.CHOSEN, str(tmp_path / "agent.jar"))
    assert java.jar() == tmp_path / "agent.jar"


def test_without_the_cpus_instructions_the_agent_says_so(command: list[str]) -> None:
    masked = [command[0], *java.WITHOUT_AES, *command[1:]]
    with Agent(masked, env=java.OTHERS) as agent:
        assert agent.hello.aes is False


def test_an_agent_that_is_told_nothing_more_ends(command: list[str]) -> None:
    agent = Agent(command, env=java.OTHERS)
    agent.write(b'{"type":"bye"}\n')
    assert json.loads(agent.line(20)) == {"type": "ok"}
    with pytest.raises(RunError, match=r"ended .*\(status 0\)"):
        agent.line(20)
    agent.close()
    assert agent.hello.protocol == PROTOCOL
