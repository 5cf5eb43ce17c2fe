"""impostors: over an unencrypted connection to another machine, no client sends a password that the other side could
recover.

Real clients against rogue servers, at an address of this machine that is not loopback.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ciphercost import engines
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.host import supervisor
from ciphercost.host.relay import Relay, moved
from ciphercost.load.agent import Agent
from ciphercost.load.jdbc import drivers, java, jdbc_agent
from ciphercost.model import run_directory
from ciphercost.model.connection import Changes, Connection
from ciphercost.model.errors import AgentError, CiphercostError
from ciphercost.model.secret import Secret
from conftest import Require, RequireServer
from impostors import (
    FIREBIRD,
    MYSQL,
    OF_MARIADB,
    PASSWORD,
    PATIENCE,
    POSTGRES,
    VALKEY,
    Line,
    Rogue,
    another_machines,
    asking_for_a_file,
)
from processes import wait_for
from userservers import user_server

RUST = {"postgres": POSTGRES, "mysql": MYSQL, "firebird": FIREBIRD, "resp": VALKEY}
JDBC: dict[str, dict[str, Any]] = {
    "pgjdbc": POSTGRES,
    "connector-j": MYSQL,
    "mariadb": MYSQL,
    "jaybird": FIREBIRD,
    "h2": {"silent": Line.rest},
}
ENGINES = {"pgjdbc": "postgresql", "connector-j": "mysql", "mariadb": "mariadb", "jaybird": "firebird", "h2": "h2"}


@pytest.fixture(scope="module")
def address(require: Require) -> Iterator[str]:
    with another_machines() as address:
        require(address, "this machine has no address but loopback")
        yield address


@pytest.fixture(scope="module")
def rust() -> Iterator[Agent]:
    with Agent() as agent:
        yield agent


@pytest.fixture(scope="module")
def supervised() -> Iterator[supervisor.Supervisor]:
    """Java agents keep their files in the scratch of a run."""
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
        yield run_supervisor


@pytest.fixture(scope="module")
def jdbc_agents(require: Require, supervised: supervisor.Supervisor) -> Iterator[dict[str, jdbc_agent.JdbcAgent]]:
    """By title: one for each known driver."""
    agents: dict[str, jdbc_agent.JdbcAgent] = {}
    try:
        java.command()
        for driver in drivers.DRIVERS:
            driver.jars()
            like = Connection(driver="none", host="127.0.0.1", port=1)
            agents[driver.title] = jdbc_agent.JdbcAgent(
                driver, EncryptsConnections.of(engines.get(ENGINES[driver.family])), {}, like, supervisor=supervised
            )
    except CiphercostError as error:
        require(None, str(error))
    yield agents
    for agent in agents.values():
        agent.close()


def fields(driver: str, host: str, port: int) -> Connection:
    told = Connection(driver=driver, host=host, port=port, user="me", password=Secret(PASSWORD))
    return told | {"database": None if driver == "resp" else "shop"}


def log_in_and_ask(agent: Agent, told: Connection) -> None:
    agent.connect("rogue", told)
    agent.query("rogue", "SELECT 1")


@pytest.mark.parametrize(("driver", "way"), [(driver, way) for driver, ways in RUST.items() for way in ways])
def test_rust_keeps_the_password(rust: Agent, address: str, driver: str, way: str) -> None:
    with Rogue(RUST[driver][way], address) as rogue, pytest.raises(AgentError):
        log_in_and_ask(rust, fields(driver, address, rogue.port))
    assert rogue.lines
    assert not rogue.has_learned_it()


@pytest.mark.parametrize(
    ("driver", "way"), [(driver.title, way) for driver in drivers.DRIVERS for way in JDBC[driver.family]]
)
def test_jdbc_keeps_the_password(
    jdbc_agents: dict[str, jdbc_agent.JdbcAgent], address: str, driver: str, way: str
) -> None:
    agent = jdbc_agents[driver]
    with Rogue(JDBC[agent.driver.family][way], address) as rogue, pytest.raises(AgentError):
        log_in_and_ask(agent, fields(agent.engine.driver, address, rogue.port))
    assert rogue.lines
    assert not rogue.has_learned_it()


def through_a_relay(agent: Agent, driver: str, way: str, ways: dict[str, Any], address: str) -> None:
    """A relay of ciphercost's listens on loopback, but the server behind it is on another machine."""
    with Rogue(ways[way], address) as rogue, Relay(address, rogue.port) as relay:
        with pytest.raises(AgentError):
            agent.connect("rogue", moved(fields(driver, address, rogue.port), "127.0.0.1", relay.port))
        wait_for("the relay to reach the server", lambda: bool(rogue.lines))
    assert not rogue.has_learned_it()


@pytest.mark.parametrize(
    ("driver", "way"),
    [("postgres", "cleartext"), ("mysql", "sha256"), ("firebird", "legacy"), ("resp", "let in")],
)
def test_a_relay_does_not_make_rust_trust_the_server(rust: Agent, address: str, driver: str, way: str) -> None:
    through_a_relay(rust, driver, way, RUST[driver], address)


@pytest.mark.parametrize(
    ("title", "way"),
    [
        ("PostgreSQL JDBC Driver 42.7.14", "cleartext"),
        ("MySQL Connector/J 9.7.0", "caching_sha2"),
        ("MariaDB Connector/J 3.5.11", "caching_sha2"),
        ("Jaybird 6.0.5", "legacy"),
    ],
)
def test_a_relay_does_not_make_jdbc_trust_the_server(
    jdbc_agents: dict[str, jdbc_agent.JdbcAgent], address: str, title: str, way: str
) -> None:
    agent = jdbc_agents[title]
    through_a_relay(agent, agent.engine.driver, way, JDBC[agent.driver.family], address)


@pytest.mark.parametrize(
    ("title", "way", "options"),
    [
        ("MySQL Connector/J 9.7.0", "caching_sha2", "allowPublicKeyRetrieval=true"),
        ("MySQL Connector/J 8.0.16", "sha256 in the greeting", "allowPublicKeyRetrieval=true;defaultAuthenticationPlugin=sha256_password"),
        ("MariaDB Connector/J 2.7.15", "caching_sha2", "allowPublicKeyRetrieval=true"),
        ("PostgreSQL JDBC Driver 42.7.14", "cleartext", "sslmode=prefer;loginTimeout=5"),
        ("Jaybird 6.0.5", "legacy", "authPlugins=Legacy_Auth,Srp"),
        ("Jaybird 6.0.5", "protocol 10", "enableProtocol=*"),
        ("Jaybird 6.0.5", "protocol 12", "enableProtocol=*"),
        ("Jaybird 6.0.5", "legacy at the end", "authPlugins=Srp,Legacy_Auth"),
    ],
)  # fmt: skip
def test_no_property_makes_a_driver_reveal_the_password(
    java_here: None, supervised: supervisor.Supervisor, address: str, title: str, way: str, options: str
) -> None:
    del java_here
    driver = next(candidate for candidate in drivers.DRIVERS if candidate.title == title)
    like = Connection(driver="none", host="127.0.0.1", port=1)
    engine = engines.get(ENGINES[driver.family])
    with (
        jdbc_agent.JdbcAgent(
            driver, EncryptsConnections.of(engine), {"properties": options}, like, supervisor=supervised
        ) as agent,
        Rogue(JDBC[driver.family][way], address) as rogue,
        pytest.raises(AgentError, match=r"refused|authenti|login|SQL|connect"),
    ):
        agent.connect("rogue", fields(engine.driver, address, rogue.port))
    assert rogue.lines
    assert not rogue.has_learned_it()


@pytest.fixture(scope="module")
def java_here(jdbc_agents: dict[str, jdbc_agent.JdbcAgent]) -> None:
    del jdbc_agents


def test_the_rogues_can_learn_a_password(rust: Agent) -> None:
    """On loopback, the server may see the whole password, so the rogues receive it there."""
    for driver, way in (("postgres", "cleartext"), ("mysql", "sha256"), ("resp", "asking for it")):
        with Rogue(RUST[driver][way], "127.0.0.1", PATIENCE) as rogue, pytest.raises(AgentError):
            rust.connect("rogue", fields(driver, "127.0.0.1", rogue.port))
        assert rogue.has_learned_it(), driver


def test_java_reports_why_it_refused(jdbc_agents: dict[str, jdbc_agent.JdbcAgent], address: str) -> None:
    agent = jdbc_agents["PostgreSQL JDBC Driver 42.7.14"]
    with (
        Rogue(POSTGRES["cleartext"], address) as rogue,
        pytest.raises(
            AgentError, match=r"password unencrypted.*unencrypted connection to another machine.*refused"
        ) as told,
    ):
        agent.connect("rogue", fields("postgres", address, rogue.port))
    assert PASSWORD not in str(told.value)


# ── files of the client's machine ─────────────────────────────────────────────────────────────────────────────────────

MARKER = b"a line of a file that no server may have"
SPEAKS_MYSQL = [driver for driver in drivers.DRIVERS if driver.family in ("connector-j", "mariadb")]
ALLOWED = {
    "allowLoadLocalInfile": "true",
    "AllowLoadLocalInfile": "true",
    "allowUrlInLocalInfile": "true",
    "allowLocalInfile": "true",
    "allowLoadLocalInfileInPath": "/",
}


@pytest.fixture(scope="module")
def secret_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("files") / "file"
    path.write_bytes(MARKER)
    return str(path)


def keeps_its_files(agent: Agent, host: str, path: str, version: str) -> None:
    with Rogue(asking_for_a_file(path, version), host, PATIENCE) as rogue, pytest.raises(AgentError):
        log_in_and_ask(agent, fields("mysql", host, rogue.port))
    assert any(line.answered == 2 for line in rogue.lines), "the rogue was not sent a statement"
    assert MARKER not in rogue.heard()


@pytest.mark.parametrize("version", ["8.0.36", OF_MARIADB])
def test_rust_sends_no_file(rust: Agent, address: str, secret_file: str, version: str) -> None:
    for host in (address, "127.0.0.1"):
        keeps_its_files(rust, host, secret_file, version)


@pytest.mark.parametrize("allowed", [{}, ALLOWED], ids=["as it is", "allowed by its properties"])
@pytest.mark.parametrize("driver", SPEAKS_MYSQL, ids=lambda driver: str(driver.title))
def test_no_driver_sends_a_file(
    jdbc_agents: dict[str, jdbc_agent.JdbcAgent],
    address: str,
    secret_file: str,
    driver: drivers.Driver,
    allowed: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`allowed`: what the command line refuses, the agent does not pass on either."""
    agent = jdbc_agents[driver.title]
    for name, value in allowed.items():
        monkeypatch.setitem(agent._options, name, value)
    for host in (address, "127.0.0.1"):
        keeps_its_files(agent, host, secret_file, "8.0.36" if driver.family == "connector-j" else OF_MARIADB)


@pytest.mark.parametrize(
    "words", ["?allowLoadLocalInfile=true", "?a=b&AllowLocalInfile=1", "?allowLoadLocalInfileInPath=/tmp", "?allow%4coadLocalInfile=yes"]
)  # fmt: skip
def test_no_url_allows_files(jdbc_agents: dict[str, jdbc_agent.JdbcAgent], secret_file: str, words: str) -> None:
    driver = drivers.find("8.0.16", "mysql")
    agent = jdbc_agents[driver.title]
    with Rogue(asking_for_a_file(secret_file, "8.0.36"), "127.0.0.1") as rogue:
        told = drivers.Address(f"jdbc:mysql://127.0.0.1:{rogue.port}/shop{words}", {})
        with pytest.raises(AgentError, match=r"URL sets [aA]llow\w+.*remove it"):
            agent.connect("rogue", drivers.connection(driver, told, "me", Secret(PASSWORD)))
    assert not rogue.lines


# ── and yet it logs in ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["postgresql", "mysql", "mariadb", "firebird"])
def test_a_real_server_on_another_machine_lets_every_client_in(
    require_server: RequireServer,
    jdbc_agents: dict[str, jdbc_agent.JdbcAgent],
    rust: Agent,
    address: str,
    tmp_path: Path,
    name: str,
) -> None:
    """Encrypted first, as everywhere: MySQL then remembers the account, and needs no public key unencrypted."""
    require_server(name, VERSIONS[name])
    with user_server(name, tmp_path) as server:
        direct = server.fields | {"connections": 1, "threads": 1}
        clear: Changes = {"wire_crypt": "off"} if name == "firebird" else {"tls": "off"}
        secret: Changes = {"wire_crypt": "require"} if name == "firebird" else {"tls": "require"}
        with Relay("127.0.0.1", direct.port, listen=address) as relay:
            away = direct | {"host": address, "port": relay.port}
            clients: list[Agent] = [rust]
            clients += [jdbc for jdbc in jdbc_agents.values() if jdbc.engine.name == name and newer(jdbc.driver)]
            for agent in clients:
                for way in (secret, clear):
                    answer = agent.connect("away", away | way)
                    assert bool(answer.encrypted) == (way == secret)
                    assert agent.query("away", ASK[name]) == [["1"]]
                agent.disconnect("away")


def test_old_drivers_and_empty_passwords_are_allowed(
    require_server: RequireServer, java_here: None, supervised: supervisor.Supervisor, address: str, tmp_path: Path
) -> None:
    """Unencrypted to a server on another machine. A login that the server refuses fails with the server's message, not
    with the agent's own refusal.
    """
    del java_here
    require_server("mariadb", VERSIONS["mariadb"])
    with (
        user_server("mariadb", tmp_path) as server,
        Relay("127.0.0.1", server.fields.port, listen=address) as relay,
    ):
        away = server.fields | {"host": address, "port": relay.port, "tls": "off", "connections": 1, "threads": 1}
        for driver in (candidate for candidate in SPEAKS_MYSQL if not newer(candidate)):
            engine, like = engines.get("mariadb"), Connection(driver="mysql", host="127.0.0.1", port=1)
            with jdbc_agent.JdbcAgent(driver, EncryptsConnections.of(engine), {}, like, supervisor=supervised) as agent:
                agent.connect("away", away)
                assert agent.query("away", "SELECT 1") == [["1"]]
                for password in ("", "nonsense"):
                    with pytest.raises(AgentError, match="Access denied"):
                        agent.connect("wrong", away | {"password": Secret(password)})


def newer(driver: drivers.Driver) -> bool:
    """A driver that knows the login methods of today's servers."""
    return driver.version not in ("5.1.6", "5.1.49", "8.0.16")


VERSIONS = {"postgresql": "15", "mysql": "9.7", "mariadb": "10.11", "firebird": "4.0"}
ASK = dict.fromkeys(VERSIONS, "SELECT 1") | {"firebird": "SELECT 1 FROM rdb$database"}
