"""The Go agent on real servers: the same operations as the Rust agent's, by each of its drivers, with the driver's own TLS settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import impostors
import rogue_servers as rogue
from asking import ask
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.host.impostor import Impostor, Speech
from ciphercost.host.package_cache import offline
from ciphercost.load.agent import Agent
from ciphercost.load.drivers import go
from ciphercost.model.connection import DriverConnection, Pool, TlsMode
from ciphercost.model.errors import AgentError, CiphercostError, MissingServer
from ciphercost.model.secret import Secret, reveal
from conftest import Require, RequireServer
from impostors import PASSWORD, Rogue, another_machines
from rogue_servers import RogueServer, Talk
from test_agent_java import KINDS, DriverServer, driver_server, operate, program
from test_agents_decide_alike import (
    COMPUTED,
    DRAWN,
    REAL,
    WHOLE,
    script,
    statement,
    step,
)
from test_agents_decide_alike import operate as decide
from test_vectors import files_for, run

POSTGRESQL = ("pgx", "lib-pq")
DRIVERS = (*POSTGRESQL, "go-mysql")
VERSIONS = {"pgx": "pgx v5.", "lib-pq": "lib/pq v1.", "go-mysql": "go-sql-driver/mysql v1."}


@pytest.fixture(scope="module")
def command(require: Require) -> list[str]:
    try:
        with offline():
            return [str(go.program())]
    except CiphercostError as error:
        require(None, str(error))
        raise


@pytest.fixture(scope="module")
def agent(command: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    with Agent(command, log=tmp_path_factory.mktemp("logs") / "agent.log") as started:
        yield started


@pytest.fixture(scope="module")
def postgresql(require_server: RequireServer, require: Require) -> Iterator[DriverServer]:
    yield from driver_server("postgresql", "", {}, (require_server, require))


@pytest.fixture(scope="module")
def mysql(require_server: RequireServer, require: Require) -> Iterator[DriverServer]:
    yield from driver_server("mysql", "", {}, (require_server, require))


@pytest.fixture
def server_of(request: pytest.FixtureRequest) -> Callable[[str], DriverServer]:
    """The server that a driver of this name speaks to."""

    def of(driver: str) -> DriverServer:
        found: DriverServer = request.getfixturevalue("postgresql" if driver in POSTGRESQL else "mysql")
        return found

    return of


@pytest.fixture
def server(server_of: Callable[[str], DriverServer], driver: str) -> DriverServer:
    return server_of(driver)


every_driver = pytest.mark.parametrize("driver", DRIVERS)


def told(server: DriverServer, driver: str, tls: TlsMode = "off", **more: Any) -> DriverConnection:
    """How a driver connects. It checks the server against the server's own authority."""
    fields = server.fields
    given = DriverConnection(
        driver=driver,
        host="localhost",
        address="127.0.0.1",
        port=fields.port,
        user=fields.user,
        password=server.password,
        database=fields.database,
        tls=tls,
        tls_ca=server.ca if tls in ("verify-ca", "verify-full") else None,
        witness=EncryptsConnections.of(server.engine).tls_witness,
    )
    return msgspec.structs.replace(given, **more)


def table(agent: Agent, columns: str, name: str = "seen") -> None:
    agent.query("arm", f"DROP TABLE IF EXISTS {name}; CREATE TABLE {name} ({columns})")


@pytest.mark.parametrize("path", files_for("go"), ids=lambda path: path.stem)
def test_it_passes_the_vectors(tmp_path: Path, path: Path, command: list[str]) -> None:
    run(path, command, tmp_path)


# ── the same operations ───────────────────────────────────────────────────────────────────────────────────────────────


@every_driver
def test_an_operations_rows_have_a_checksum_and_another_seed_is_other_operations(
    agent: Agent, server: DriverServer, driver: str
) -> None:
    agent.connect("arm", told(server, driver))
    table(agent, "a BIGINT, b VARCHAR(30)")
    agent.query("arm", "INSERT INTO seen VALUES (1, 'a'), (2, NULL), (3, ''), (4, 'ab'), (5, 'a')")
    program(agent, ("SELECT a, b FROM seen WHERE a >= $1", "u"), u={"kind": "uniform", "low": 1, "high": 5})
    first, again, other = (operate(agent, "arm", 50, seed) for seed in (1, 1, 2))
    assert first.rows == again.rows
    assert first.checksum == again.checksum != other.checksum
    program(agent, ("SELECT b FROM seen WHERE a = $1", "u"), u={"kind": "uniform", "low": 1, "high": 1})
    one = operate(agent, "arm", 1)
    for low in (2, 3, 4):
        program(agent, ("SELECT b FROM seen WHERE a = $1", "u"), u={"kind": "uniform", "low": low, "high": low})
        assert operate(agent, "arm", 1).checksum != one.checksum
    program(agent, ("SELECT b FROM seen WHERE a = $1", "u"), u={"kind": "uniform", "low": 5, "high": 5})
    assert operate(agent, "arm", 1).checksum == one.checksum


# ── scripts that decide ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("driver", ["pgx"])
def test_it_computes_and_draws_as_the_rust_agent_does(agent: Agent, server: DriverServer, driver: str) -> None:
    values = []
    with Agent() as rust:
        for peer, fields in ((rust, server.fields), (agent, told(server, driver))):
            peer.connect("plain", fields)
            peer.query(
                "plain",
                "DROP TABLE IF EXISTS drawn; CREATE TABLE drawn (number INTEGER, n INTEGER, held VARCHAR(99))",
            )
            parts = [statement("INSERT INTO drawn VALUES (0, $1, $2)", "n t")]
            for number, expression in enumerate((*WHOLE, *REAL), start=1):
                parts += [
                    step("set", expression, "a"),
                    statement(f"INSERT INTO drawn VALUES ({number}, $1, $2)", "n a"),
                ]
            script(peer, {"a": COMPUTED, **DRAWN}, *parts)
            answer = decide(peer, 100, seed=2**63 + 11)
            assert (answer["operations"], answer["errors"], answer["retries"]) == (100, 0, 0), answer["first_error"]
            rows = peer.query("plain", "SELECT number, held FROM drawn ORDER BY n, number")
            whole = [row for row in rows if int(str(row[0])) <= len(WHOLE)]
            values.append((whole, [float(str(value)) for number, value in rows if int(str(number)) > len(WHOLE)]))
            peer.disconnect("plain")
    assert len(values[0][0]) == 100 * (len(WHOLE) + 1)
    assert values[0][0] == values[1][0]
    assert values[1][1] == pytest.approx(values[0][1], rel=1e-13)


@every_driver
@pytest.mark.parametrize(
    ("sql", "every", "error", "value"),
    [
        ("SELECT 1 AS a FROM one WHERE 1 = 0", False, "expected one row, got 0", "9"),
        ("SELECT 1 AS a UNION SELECT 2 ORDER BY a", False, "expected one row, got 2", "9"),
        ("SELECT 1 AS a UNION SELECT 2 ORDER BY a", True, "", "2"),
        ("SELECT 1 AS a FROM one WHERE 1 = 0", True, "", "0"),
        ("SELECT 2.5 AS A", False, "", "2.5"),
    ],
)
def test_one_row_gives_values_or_the_last_of_them(
    agent: Agent, server: DriverServer, driver: str, sql: str, every: bool, error: str, value: str
) -> None:
    agent.connect("plain", told(server, driver))
    agent.query("plain", "DROP TABLE IF EXISTS one; CREATE TABLE one (held VARCHAR(99)); INSERT INTO one VALUES ('9')")
    script(
        agent, {"a": COMPUTED}, step("set", "0", "a"), statement(sql, into="", every=every), statement("UPDATE one SET held = $1", "a")
    )  # fmt: skip
    assert decide(agent, 1)["first_error"] == (f"statement: \\gset: {error}" if error else "")
    assert agent.query("plain", "SELECT held FROM one") == [[value]]


# ── TLS ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


@every_driver
@pytest.mark.parametrize("tls", ["require", "verify-ca", "verify-full"])
def test_what_was_negotiated_is_reported(agent: Agent, server: DriverServer, driver: str, tls: TlsMode) -> None:
    plain = agent.connect("plain", told(server, driver))
    assert (plain.encrypted, plain.protocol, plain.cipher) == (False, "", "")
    newest = agent.connect("arm", told(server, driver, tls, connections=2))
    assert (newest.encrypted, newest.protocol, newest.cipher[:8]) == (True, "TLSv1.3", "TLS_AES_")
    older = agent.connect("arm", told(server, driver, tls, tls_max="1.2"))
    assert (older.encrypted, older.protocol) == (True, "TLSv1.2")
    assert older.cipher.startswith("ECDHE-")
    for answer in (newest, older):
        assert "crypto/tls" in answer.library
        assert answer.driver_version.startswith(VERSIONS[driver])
    if driver != "lib-pq":  # which does not tell
        assert newest.group in ("P-256", "X25519", "X25519MLKEM768")  # which the server prefers
        assert "CN=" in newest.peer
    with Agent() as rust:
        assert newest.server_version == rust.connect("arm", server.fields).server_version


@every_driver
def test_only_a_witness_or_the_driver_says_that_a_session_is_encrypted(
    agent: Agent, server: DriverServer, driver: str
) -> None:
    unasked = agent.connect("arm", told(server, driver, "require") | {"witness": None})
    assert unasked.encrypted is (driver != "lib-pq")
    lying = told(server, driver, "require") | {"witness": "SELECT 'f', '', ''"}
    if driver == "lib-pq":
        assert agent.connect("arm", lying).encrypted is False
    else:
        assert refused(agent, lying).code == "tls"
    for wrong in ("SELECT 1", "SELECT 't', 'TLSv1.3', 'x' UNION SELECT 'f', '', ''"):
        assert "witness" in str(refused(agent, told(server, driver) | {"witness": wrong}))
    assert str(refused(agent, told(server, driver) | {"witness": "NONSENSE"})).startswith("witness: ")


@every_driver
def test_a_cipher_is_chosen_or_refused(agent: Agent, server: DriverServer, driver: str) -> None:
    wanted = told(server, driver, "require", tls_max="1.2", tls_ciphers="ECDHE-RSA-AES128-GCM-SHA256")
    if driver == "lib-pq":
        assert refused(agent, wanted).code == "driver"
        return
    assert agent.connect("arm", wanted).cipher == "ECDHE-RSA-AES128-GCM-SHA256"
    for changes, code, words in (
        ({"tls_ciphers": "TLS_AES_256_GCM_SHA384"}, "driver", "chooses the cipher of TLS 1.3 itself"),
        ({"tls_ciphers": "ROT13"}, "tls", "has no ROT13"),
        ({"tls_min": "1.3", "tls_max": "1.2"}, "tls", "is above"),
        ({"tls_ca": "/nonexistent"}, "tls", "tls_ca"),
    ):
        error = refused(agent, told(server, driver, "require", **changes))
        assert (error.code, words in str(error)) == (code, True), error


def refused(agent: Agent, fields: Pool) -> AgentError:
    with pytest.raises(AgentError) as caught:
        agent.connect("refused", fields)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 1000
    return caught.value


@every_driver
def test_an_impostor_is_refused(agent: Agent, server: DriverServer, driver: str, tmp_path: Path) -> None:
    """It has a certificate of another authority, and goes on to the login if the driver does."""
    speech: Speech = "postgres" if driver in POSTGRESQL else "mysql"
    did = {}
    for tls in ("require", "verify-ca", "verify-full"):
        with Impostor(speech, "127.0.0.1", server.fields.port, tmp_path, certificate="rsa2048") as impostor:
            error = refused(agent, told(server, driver, tls) | {"port": impostor.port})
        did[tls] = (impostor.met, error.code)
    assert did["verify-ca"] == did["verify-full"] == (["refused"], "tls")
    # Who does not look goes on to the login, after which the impostor hangs up.
    assert did["require"][0] != ["refused"]


@every_driver
def test_a_connection_string_decides_about_tls(agent: Agent, server: DriverServer, driver: str) -> None:
    port, database = server.fields.port, server.fields.database
    login = f"{server.fields.user}:{reveal(server.password)}@"
    texts = {
        "pgx": [
            f"postgresql://{login}db.example.org:1/{database}?sslmode={{}}",
            "host=db.example.org port=1 sslmode={}",
        ],
        "lib-pq": [
            f"postgres://{login}db.example.org:1/{database}?sslmode={{}}",
            "host=db.example.org port=1 sslmode={}",
        ],
        "go-mysql": [f"{login}tcp(db.example.org:1)/{database}?tls={{}}"],
    }
    off, on = ("disable", "require") if driver in POSTGRESQL else ("false", "skip-verify")
    for text in texts[driver]:
        for word, encrypted in ((off, False), (on, True)):
            fields = DriverConnection(
                driver=driver, dsn=text.format(word), address="127.0.0.1", port=port, host="localhost"
            )
            if not text.startswith(("post", login)):
                fields |= {"user": server.fields.user, "password": server.password, "database": database}
            connected = agent.connect("arm", fields | {"witness": EncryptsConnections.of(server.engine).tls_witness})
            assert connected.encrypted is encrypted, text
    beside = fields | {"tls": "require"}
    assert refused(agent, beside).code == "bad-message"
    broken = "postgresql://[" if driver in POSTGRESQL else "nonsense"
    assert refused(agent, DriverConnection(driver=driver, dsn=broken)).code == "driver"


# ── connections, errors, deadlines ────────────────────────────────────────────────────────────────────────────────────


@every_driver
def test_a_connection_for_each_operation(agent: Agent, server: DriverServer, driver: str) -> None:
    agent.connect("arm", told(server, driver, "require", per_request=True, connections=2))
    table(agent, "a BIGINT, b VARCHAR(30)")
    program(
        agent, ("BEGIN", ""), ("INSERT INTO seen VALUES ($1, $2)", "u t"), ("COMMIT", ""), ("SELECT b FROM seen WHERE a = $1", "u"),
        u=KINDS["u"], t=KINDS["t"],
    )  # fmt: skip
    answer = operate(agent, "arm", 20)
    assert (answer.operations, answer.errors, answer.rows, answer.connects) == (20, 0, 20, 20), answer.first_error
    assert answer.bytes_sent > 20 * 300  # a handshake each
    assert agent.query("arm", "SELECT COUNT(*) FROM seen") == [["20"]]


@every_driver
def test_what_travels_is_counted(agent: Agent, server: DriverServer, driver: str) -> None:
    program(agent, ("SELECT $1", "t"), t={"kind": "text", "length": 5000})
    counts = []
    for tls in ("off", "require"):
        agent.connect("arm", told(server, driver, tls, connections=2, threads=2))
        answer = operate(agent, "arm", 100)
        assert (answer.operations, answer.threads) == (100, 2), answer.first_error
        assert answer.process_cpu_ns == answer.cpu_user_ns + answer.cpu_system_ns > 0
        assert answer.segments_sent > 0
        counts.append((answer.bytes_sent, answer.bytes_received))
    assert all(count > 500_000 for pair in counts for count in pair)
    assert counts[1] > counts[0]  # records have heads and tags


@every_driver
def test_a_query_answers_as_the_rust_agents_does(agent: Agent, server: DriverServer, driver: str) -> None:
    escaped = "E'tab\\tnew\\nline\\\\;'" if driver in POSTGRESQL else "'tab\\tnew\\nline\\\\;'"
    more = ", true, x'41', 1e20::float8, 0.1::float4, timestamp '2024-02-03 04:05:06.7', date '2024-02-03', '\\x00ff'::bytea, 12.50::numeric"
    more = more.replace("x'41', ", "") if driver in POSTGRESQL else ", 0.1e0, CAST('2024-02-03' AS DATE), 12.50"
    sql = (
        f"DROP TABLE IF EXISTS odd; CREATE TABLE odd (a INTEGER, b TEXT); INSERT INTO odd VALUES (1, {escaped}), (NULL, NULL), (3, ''); "
        f"SELECT a, b AS c{more} FROM odd ORDER BY a -- ; a comment\n; BEGIN; COMMIT"
    )
    answers = []
    with Agent() as rust:
        for peer, fields in ((rust, server.fields), (agent, told(server, driver))):
            peer.connect("arm", fields)
            answers.append(ask(peer, {"type": "query", "arm": "arm", "sql": sql}))
            peer.disconnect("arm")
    assert answers[0] == answers[1]
    assert answers[0]["rows"] == 3
    agent.connect("arm", told(server, driver, connections=3))
    assert agent.query("arm", "SELECT 1", everywhere=True) == [["1"]] * 3
    with pytest.raises(AgentError) as caught:
        agent.query("arm", "SELECT * FROM nothing_of_the_kind")
    assert caught.value.code == ("42P01" if driver in POSTGRESQL else "1146 (42S02)")
    assert agent.query("arm", "SELECT 7") == [["7"]]


HOLDS: dict[str, tuple[str, Talk, TlsMode]] = {
    "postgresql is silent": ("pgx", rogue.silent, "off"),
    "postgresql drips a notice": ("pgx", rogue.dripping(b"N\0\0\xe0\0", after=1), "off"),
    "postgresql drips parameters": ("lib-pq", rogue.dripping(b"", rogue.PARAMETERS, after=1), "off"),
    "postgresql drips TLS": ("lib-pq", rogue.dripping(rogue.HANDSHAKE, after=1), "require"),
    "mysql drips its greeting": ("go-mysql", rogue.dripping(b"\xf0\x0f\0\0\x0a"), "off"),
    "mysql drips TLS": ("go-mysql", rogue.mysql(rogue.dripping(rogue.HANDSHAKE[1:])), "require"),
}


@pytest.mark.parametrize("hold", HOLDS)
def test_a_login_has_a_deadline(agent: Agent, hold: str) -> None:
    driver, talk, tls = HOLDS[hold]
    with RogueServer(talk) as server:
        error = refused(agent, nowhere(driver, server.port, tls=tls, timeout=0.4))
    assert (error.code, "within 0.4 s" in str(error)) == ("timeout", True), error


FLOODS: dict[str, tuple[str, Talk]] = {
    "notices": ("pgx", rogue.flooding(rogue.NOTICE, after=1)),
    "parameters": ("lib-pq", rogue.flooding(rogue.PARAMETERS, after=1)),
    "a login packet": ("go-mysql", rogue.mysql(rogue.flooding(b"x", b"\xff\xff\xff\x02\xfe"))),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_server_that_floods_a_login_is_refused(agent: Agent, flood: str) -> None:
    driver, talk = FLOODS[flood]
    with RogueServer(talk) as server:
        error = refused(agent, nowhere(driver, server.port))
    assert error.code == "connect", error
    assert "1 MiB" in str(error)


def nowhere(driver: str, port: int, **more: Any) -> DriverConnection:
    """A login at a server that is none."""
    fields = DriverConnection(
        driver=driver, host="127.0.0.1", port=port, user="u", password=Secret(PASSWORD), database="d"
    )
    return msgspec.structs.replace(fields, **more)


@pytest.fixture(scope="module")
def elsewhere(require: Require) -> Iterator[str]:
    with another_machines() as address:
        require(address, "an address that is not loopback")
        yield address


def test_no_file_of_this_machine_is_sent(agent: Agent, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the-content-of-a-file")
    speak = impostors.asking_for_a_file(str(secret), "8.0.36")
    with Rogue(speak, "127.0.0.1", impostors.PATIENCE) as asking, pytest.raises(AgentError):
        agent.connect("refused", nowhere("go-mysql", asking.port, timeout=60))
    assert b"the-content" not in asking.heard()
    assert asking.lines[0].answered == 2  # it was asked


@pytest.mark.parametrize("driver", POSTGRESQL)
def test_on_this_machine_and_on_a_trusted_network_it_does(agent: Agent, elsewhere: str, driver: str) -> None:
    for host, more in (("127.0.0.1", {}), (elsewhere, {"trusted": True})):
        with Rogue(impostors.POSTGRES["cleartext"], host, impostors.PATIENCE) as rogue_, pytest.raises(AgentError):
            agent.connect("refused", nowhere(driver, rogue_.port, timeout=60, **more) | {"host": host})
        assert rogue_.has_learned_it()
    with (
        Rogue(impostors.POSTGRES["cleartext"], "127.0.0.1") as rogue_,
        pytest.raises(AgentError, match="where anybody could pose as the server") as caught,
    ):
        agent.connect("refused", nowhere(driver, rogue_.port, timeout=60, relayed=True))
    assert caught.value.code == "connect"
    assert not rogue_.has_learned_it()


def test_fields_that_do_not_belong_are_refused(agent: Agent) -> None:
    fields = {
        "type": "connect",
        "arm": "a",
        "driver": "pgx",
        "host": "127.0.0.1",
        "port": 1,
        "user": "u",
        "database": "d",
    }
    for changes, code in (
        ({"driver": "psycopg"}, "bad-message"), ({"port": "1"}, "bad-message"), ({"port": 65536}, "bad-message"),
        ({"color": "red"}, "bad-message"), ({"tls": "preferred"}, "bad-message"), ({"tls_min": "0.9"}, "bad-message"),
        ({"connections": 0}, "bad-message"), ({"options": "prepared"}, "bad-message"), ({"options": "prepared=no"}, "driver"),
        ({"driver": "go-mysql", "search_path": "s"}, "driver"), ({"driver": "lib-pq", "options": "prepared=no"}, "driver"),
        ({"driver": "lib-pq", "tls": "require", "channel_binding": "require"}, "driver"), ({"host": None}, "bad-message"),
        ({}, "connect"), ({"connections": 10_000, "per_request": True}, "connect"),
    ):  # fmt: skip
        message = {name: value for name, value in (fields | changes).items() if value is not None}
        with pytest.raises(AgentError) as caught:
            ask(agent, message)
        assert caught.value.code == code, changes


@every_driver
@pytest.mark.parametrize("prepared", ["true", "false"])
def test_statements_are_prepared_once_or_by_the_driver(
    agent: Agent, server: DriverServer, driver: str, prepared: str
) -> None:
    if driver == "pgx":  # its own cache does the same either way
        prepared = ""
    agent.connect("arm", told(server, driver, options=f"prepared={prepared}" if prepared else None))
    table(agent, "a BIGINT, b VARCHAR(30)")
    program(
        agent,
        ("INSERT INTO seen VALUES ($1, $2)", "u t"),
        ("SELECT b FROM seen WHERE a = $1", "u"),
        u=KINDS["u"],
        t=KINDS["t"],
    )
    answer = operate(agent, "arm", 50)
    assert (answer.operations, answer.errors, answer.rows) == (50, 0, 50), answer.first_error
    count = (
        "SELECT COUNT(*) FROM pg_prepared_statements"
        if driver in POSTGRESQL
        else "SHOW SESSION STATUS LIKE 'Com_stmt_prepare'"
    )
    kept = int(str(agent.query("arm", count)[0][-1]))
    if driver in POSTGRESQL:
        assert kept == (0 if prepared == "false" else 2)
    else:
        assert kept == (100 if prepared == "false" else 2)


# ── the controller's side ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_versions_are_those_that_the_agent_is_built_with(
    agent: Agent, server_of: Callable[[str], DriverServer]
) -> None:
    assert [driver.name for driver in go.LANGUAGE.drivers] == list(DRIVERS)
    for driver in go.LANGUAGE.drivers:
        connected = agent.connect("arm", told(server_of(driver.name), driver.name))
        assert connected.driver_version == f"{VERSIONS[driver.name].partition(' v')[0]} v{driver.version}"
    assert agent.hello.drivers.split() == ["null", *DRIVERS]


def test_it_takes_the_fields_that_a_driver_of_an_application_has() -> None:
    """The rule: they are the names that `readServer` and `session.connect` take."""
    sources = (go.CLONE / "server.go").read_text()
    connect = re.search(r"func \(s \*session\) connect\(.*?\n}\n", (go.CLONE / "session.go").read_text(), re.DOTALL)
    assert connect
    taken = set(re.findall(r'f\.\w+\("(\w+)"', sources + connect[0])) | {"timeout"}
    assert taken == set(DriverConnection.__struct_fields__)


def test_without_the_cpus_instructions_the_agent_says_so(command: list[str]) -> None:
    with Agent(command) as usual, Agent(command, env=go.LANGUAGE.without_aes) as masked:
        assert masked.hello.aes is False
        # The lowest cost of several: other work on the machine only adds to it.
        cost = {
            (each is masked, cipher): min(
                ask(each, {"type": "floor", "cipher": cipher, "bytes": 1_000_000})["ns_per_byte_seal"] for _ in range(5)
            )
            for each in (usual, masked)
            for cipher in ("aes256-gcm", "chacha20")
        }
    if usual.hello.aes:
        ratios = [cost[masked, "aes256-gcm"] / cost[masked, "chacha20"] for masked in (False, True)]
        assert ratios[1] > 3 * ratios[0]


def test_an_agent_that_is_named_is_not_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(go.CHOSEN, str(tmp_path / "missing"))
    with pytest.raises(MissingServer, match="which is not a file"):
        go.program()
    (tmp_path / "agent").touch()
    monkeypatch.setenv(go.CHOSEN, str(tmp_path / "agent"))
    assert go.program() == tmp_path / "agent"
    monkeypatch.delenv(go.CHOSEN)
    monkeypatch.setattr(go, "CLONE", tmp_path)
    with pytest.raises(MissingServer, match="sources are missing"):
        go.program()


def test_the_drivers_settings_stand_in_no_environment(
    command: list[str], server_of: Callable[[str], DriverServer]
) -> None:
    """Both drivers for PostgreSQL would take settings from there, and certificates from the user's home."""
    foreign = {"PGSSLMODE": "verify-full", "PGSSLROOTCERT": "/nonexistent", "PGPORT": "1", "PGOPTIONS": "-c nonsense=1"}
    with Agent(command, env=foreign) as agent:
        for driver in POSTGRESQL:
            assert agent.connect("arm", told(server_of(driver), driver)).encrypted is False
            assert agent.connect("arm", told(server_of(driver), driver, "require")).encrypted
