"""impostors: over an unencrypted connection to another machine no client of ours sends a password that the other side could recover.

Real clients against rogue servers, at an address of this machine that is not loopback.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ciphercost import drivers, engines, guard, java, jdbc, record
from ciphercost.agent import Agent
from ciphercost.errors import AgentError, CiphercostError
from ciphercost.relay import Relay, moved
from conftest import Require, RequireServer
from impostors import FIREBIRD, MYSQL, PASSWORD, POSTGRES, Rogue, another_machines
from userservers import user_server

RUST = {"postgres": POSTGRES, "mysql": MYSQL, "firebird": FIREBIRD}
JDBC = {"pgjdbc": POSTGRES, "connector-j": MYSQL, "mariadb": MYSQL, "jaybird": FIREBIRD}
ENGINES = {"pgjdbc": "postgresql", "connector-j": "mysql", "mariadb": "mariadb", "jaybird": "firebird"}


@pytest.fixture(scope="module")
def address(require: Require) -> str:
    found = another_machines()
    require(found, "this machine has no address but loopback")
    return found


@pytest.fixture(scope="module")
def rust() -> Iterator[Agent]:
    with Agent() as agent:
        yield agent


@pytest.fixture(scope="module")
def guarded() -> Iterator[guard.Guard]:
    """Java agents keep files of their own in the scratch of a run."""
    with guard.Guard(record.new_id()) as made:
        yield made


@pytest.fixture(scope="module")
def jdbc_agents(require: Require, guarded: guard.Guard) -> Iterator[dict[str, jdbc.JdbcAgent]]:
    """By title: one of each driver that is known."""
    made: dict[str, jdbc.JdbcAgent] = {}
    try:
        java.command()
        for driver in drivers.DRIVERS:
            driver.jars()
            like = {"host": "127.0.0.1", "port": 1}
            made[driver.title] = jdbc.JdbcAgent(driver, engines.get(ENGINES[driver.family]), {}, like, guard=guarded)
    except CiphercostError as error:
        require(None, str(error))
    yield made
    for agent in made.values():
        agent.close()


def fields(driver: str, host: str, port: int, **more: Any) -> dict[str, Any]:
    return {
        "driver": driver,
        "host": host,
        "port": port,
        "user": "me",
        "database": "shop",
        "password": PASSWORD,
        "connections": 1,
        "threads": 1,
        **more,
    }


@pytest.mark.parametrize(("driver", "way"), [(driver, way) for driver, ways in RUST.items() for way in ways])
def test_rust_keeps_the_password(rust: Agent, address: str, driver: str, way: str) -> None:
    with Rogue(RUST[driver][way], address) as rogue, pytest.raises(AgentError):
        rust.connect("rogue", **fields(driver, address, rogue.port))
    assert rogue.lines
    assert not rogue.has_learned_it()


@pytest.mark.parametrize(
    ("driver", "way"), [(each.title, way) for each in drivers.DRIVERS for way in JDBC[each.family]]
)
def test_jdbc_keeps_the_password(jdbc_agents: dict[str, jdbc.JdbcAgent], address: str, driver: str, way: str) -> None:
    agent = jdbc_agents[driver]
    with Rogue(JDBC[agent.driver.family][way], address) as rogue, pytest.raises(AgentError):
        agent.connect("rogue", **fields(agent.engine.driver, address, rogue.port))
    assert rogue.lines
    assert not rogue.has_learned_it()


def through_a_relay(agent: Agent, driver: str, way: str, ways: dict[str, Any], address: str) -> None:
    """A relay of ours listens on loopback; the server behind it is on another machine all the same."""
    with Rogue(ways[way], address) as rogue, Relay(address, rogue.port) as relay, pytest.raises(AgentError):
        agent.connect("rogue", **moved(fields(driver, address, rogue.port), "127.0.0.1", relay.port))
    assert rogue.lines
    assert not rogue.has_learned_it()


@pytest.mark.parametrize(("driver", "way"), [("postgres", "cleartext"), ("mysql", "sha256"), ("firebird", "legacy")])
def test_a_relay_of_ours_does_not_make_rust_trust_the_server(rust: Agent, address: str, driver: str, way: str) -> None:
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
def test_a_relay_of_ours_does_not_make_jdbc_trust_the_server(
    jdbc_agents: dict[str, jdbc.JdbcAgent], address: str, title: str, way: str
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
def test_no_property_makes_a_driver_give_it_away(
    java_here: None, guarded: guard.Guard, address: str, title: str, way: str, options: str
) -> None:
    del java_here
    driver = next(each for each in drivers.DRIVERS if each.title == title)
    like = {"host": "127.0.0.1", "port": 1}
    engine = engines.get(ENGINES[driver.family])
    with (
        jdbc.JdbcAgent(driver, engine, {"properties": options}, like, guard=guarded) as agent,
        Rogue(JDBC[driver.family][way], address) as rogue,
        pytest.raises(AgentError, match=r"refused|authenti|login|SQL|connect"),
    ):
        agent.connect("rogue", **fields(engine.driver, address, rogue.port))
    assert rogue.lines
    assert not rogue.has_learned_it()


@pytest.fixture(scope="module")
def java_here(jdbc_agents: dict[str, jdbc.JdbcAgent]) -> None:
    del jdbc_agents


def test_the_rogues_can_learn_a_password(rust: Agent) -> None:
    """On loopback a whole password is no secret to the server, so that there the rogues are told it."""
    for driver, way in (("postgres", "cleartext"), ("mysql", "sha256")):
        with Rogue(RUST[driver][way], "127.0.0.1") as rogue, pytest.raises(AgentError):
            rust.connect("rogue", **fields(driver, "127.0.0.1", rogue.port))
        assert rogue.has_learned_it(), driver


def test_java_says_why_it_refused(jdbc_agents: dict[str, jdbc.JdbcAgent], address: str) -> None:
    agent = jdbc_agents["PostgreSQL JDBC Driver 42.7.14"]
    with (
        Rogue(POSTGRES["cleartext"], address) as rogue,
        pytest.raises(
            AgentError, match=r"password in clear.*unencrypted connection to another machine.*refused"
        ) as told,
    ):
        agent.connect("rogue", **fields("postgres", address, rogue.port))
    assert PASSWORD not in str(told.value)


# ── and yet it logs in ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["postgresql", "mysql", "mariadb", "firebird"])
def test_a_real_server_on_another_machine_lets_every_client_in(
    require_server: RequireServer,
    jdbc_agents: dict[str, jdbc.JdbcAgent],
    rust: Agent,
    address: str,
    tmp_path: Path,
    name: str,
) -> None:
    """Encrypted first, as everywhere: MySQL then remembers the account, and needs no public key unencrypted."""
    require_server(name, VERSIONS[name])
    with user_server(name, tmp_path) as server:
        own = {**server.fields, "connections": 1, "threads": 1}
        clear, secret = ("wire_crypt", "require") if name == "firebird" else ("tls", "require")
        with Relay("127.0.0.1", int(str(own["port"])), listen=address) as relay:
            away = {**own, "host": address, "port": relay.port}
            clients: list[Agent] = [rust]
            clients += [each for each in jdbc_agents.values() if each.engine.name == name and newer(each.driver)]
            for agent in clients:
                for way in (secret, "off"):
                    answer = agent.connect("away", **{**away, clear: way})
                    assert bool(answer["encrypted"]) == (way != "off")
                    assert agent.query("away", ASK[name]) == [["1"]]
                agent.disconnect("away")


def newer(driver: drivers.Driver) -> bool:
    """One that knows the logins of today's servers."""
    return driver.version not in ("5.1.6", "5.1.49", "8.0.16")


VERSIONS = {"postgresql": "15", "mysql": "9.7", "mariadb": "10.11", "firebird": "4.0"}
ASK = dict.fromkeys(VERSIONS, "SELECT 1") | {"firebird": "SELECT 1 FROM rdb$database"}
