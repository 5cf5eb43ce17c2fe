"""What --storm and --connections may say, and which cells and machines refuse them, each in one line."""

from __future__ import annotations

import resource

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.host import ports
from ciphercost.model.connection_memory import USUAL_CONNECTIONS
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import connection_loads, specs
from ciphercost.plan.resolve import resolve

CELL = CellSpec("postgresql", "tls", workload="storm")


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_a_storm_is_read_as_it_is_written(rate: int, clients: int) -> None:
    assert connection_loads.storm_of(f"{rate}").rate == connection_loads.storm_of(f"{rate}/s").rate == rate
    saturated = connection_loads.storm_of(f"saturated={rate}")
    assert (saturated.kind, saturated.rate) == ("saturated", rate)
    assert connection_loads.storm_of(f"failover={clients}").clients == clients
    pool = connection_loads.storm_of(f"rotation={rate}m/{clients}")
    assert (pool.kind, pool.every_s, pool.clients) == ("rotation", 60.0 * rate, clients)


@given(
    st.text(max_size=30).filter(
        lambda text: not any(character.isdigit() for character in text) and text.strip() != "failover"
    )
)
def test_any_other_text_is_refused_with_the_option(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        connection_loads.storm_of(text)
    assert str(refused.value).startswith(f"--storm {text}")


def test_workloads_imply_what_they_are_for() -> None:
    storm = resolve(CELL)
    assert (storm.storm and storm.storm.rate, storm.clients, storm.idle_connections) == (160, 200, 0)
    idle = resolve(msgspec.structs.replace(CELL, workload="idle-connections"))
    assert (idle.storm, idle.idle_connections) == (None, USUAL_CONNECTIONS)
    failover = resolve(msgspec.structs.replace(CELL, storm="failover", clients=30))
    assert failover.storm
    assert failover.storm.clients == 30


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"engine": "sqlite", "mechanism": "sqlcipher", "workload": "point-select", "storm": "10"},
            "runs in the client",
        ),
        ({"mechanism": "gocryptfs", "workload": "point-select", "storm": "10"}, "encrypts none"),
        ({"workload": "connect", "storm": "10"}, "each operation opens its own"),
        ({"workload": "connect", "connections": 100}, "each operation opens its own"),
        ({"client": "psycopg"}, "only the Rust agent"),
        ({"url": "postgresql://me@db/x", "storm": "failover"}, "starts none beside yours"),
        ({"url": "postgresql://me@db/x", "connections": 100}, "can't be yours"),
        ({"connections": 10_001}, "at most 10,000"),
        ({"connections": 3}, "at least 8"),
        ({"connections": 100, "bandwidth": "100mbit"}, "over loopback"),
        ({"max_rate": 100.0, "regime": "latency"}, "--max-rate"),
        ({"storm": "0"}, "above 0"),
        ({"storm": "saturated"}, "write --storm 160"),
        ({"storm": "saturated=0"}, "above 0"),
        ({"storm": "saturated=160", "rate": 500.0}, "remove --rate, or write --storm 160"),
        ({"storm": "rotation=30m"}, "rotation=30m/15"),
        ({"storm": "failover=0"}, "from 1 to 10,000"),
    ],
)
def test_what_can_not_be_is_refused_in_one_line(changes: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        resolve(msgspec.structs.replace(CELL, **changes))
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_run_on_a_cluster_is_refused() -> None:
    with pytest.raises(UsageError, match="--storm: only this machine's own agent"):
        specs.plan(Spec([CELL], cluster="auto"), load=False)


def test_limits_of_the_machine_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 1024))
    spec = Spec([msgspec.structs.replace(CELL, clients=10, storm="failover=900")])
    with pytest.raises(UsageError, match="900 connections need 1864 open files"):
        specs.plan(spec)
    monkeypatch.setattr(ports, "free_ports", lambda: 500)
    with pytest.raises(UsageError, match="room for 500 connections to one server"):
        resolve(msgspec.structs.replace(CELL, connections=600))


def test_a_server_gets_room_for_the_new_connections() -> None:
    assert connection_loads.server_clients(resolve(msgspec.structs.replace(CELL, clients=20))) == 100
    assert (
        connection_loads.server_clients(resolve(msgspec.structs.replace(CELL, clients=20, storm="failover=1000")))
        == 530
    )
    assert (
        connection_loads.server_clients(resolve(msgspec.structs.replace(CELL, clients=20, storm="1", connections=900)))
        == 450
    )
    assert connection_loads.server_clients(resolve(msgspec.structs.replace(CELL, workload="point-select"))) == 8
