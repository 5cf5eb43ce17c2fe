"""The words of `--client`, and what a driver can't do, refused before anything starts."""

from __future__ import annotations

from typing import Any

import pytest

from ciphercost.host import package_cache
from ciphercost.load import clients, drivers
from ciphercost.load.drivers import python
from ciphercost.model.errors import MissingServer, UsageError
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import cluster_checks, matrix, specs
from ciphercost.plan.resolve import resolve
from ciphercost.report import inventory


def cell(engine: str = "postgresql", client: str = "psycopg", mechanism: str = "tls", **more: Any) -> CellSpec:
    return CellSpec(engine, mechanism, client=client, **more)


@pytest.mark.parametrize(
    ("engine", "client", "title"),
    [
        ("postgresql", "psycopg", "psycopg 3.3.9"),
        ("postgresql", "psycopg@3.2", "psycopg 3.2.13"),
        ("postgresql", "psycopg@3", "psycopg 3.3.9"),
        ("postgresql", "asyncpg@0.30.0", "asyncpg 0.30.0"),
        ("mysql", "pymysql", "pymysql 1.2.4"),
        ("mariadb", "mysql-connector", "mysql-connector 26.10.0"),
        ("mariadb", "mysql-connector@9.7", "mysql-connector 9.7.0"),
        ("postgresql", "jdbc:42.7.14", "PostgreSQL JDBC Driver 42.7.14"),
    ],
)
def test_a_client_names_a_driver(engine: str, client: str, title: str) -> None:
    assert clients.driver_of(cell(engine, client)).title == title


@pytest.mark.parametrize(
    ("engine", "client", "words"),
    [
        ("postgresql", "psycog", "did you mean 'psycopg'?"),
        ("postgresql", "psycopg:3.2", "a version follows '@'; write psycopg@3.2"),
        ("postgresql", "psycopg@2", "known: 3.2.13, 3.3.9"),
        ("postgresql", "psycopg@", "known: 3.2.13, 3.3.9"),
        ("postgresql", "pymysql", "pymysql speaks to mysql and mariadb, not to postgresql; use "),
        ("valkey", "psycopg", "psycopg speaks to postgresql, not to valkey; remove --client"),
        ("h2", "psycopg", "psycopg speaks to postgresql, not to h2"),
        ("postgresql", "", None),
        ("postgresql", "rust", None),
    ],
)
def test_an_unknown_client_is_refused_with_what_there_is(engine: str, client: str, words: str | None) -> None:
    if words is None:
        assert not clients.asked(cell(engine, client))
        return
    with pytest.raises(UsageError) as caught:
        clients.driver_of(cell(engine, client))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (cell(factors={"group": "x25519"}), "remove group, or remove --client psycopg"),
        (cell(factors={"resumption": "on"}), "resum"),
        (cell(factors={"certificate": "mldsa65"}), "ML-DSA"),
        (cell(factors={"version": "1.1"}), "write version=1.2"),
        (cell(client="asyncpg", factors={"channel-binding": "require"}), "asyncpg has no setting for channel binding"),
        (
            cell(client="asyncpg", version="18", factors={"negotiation": "direct"}),
            "can't begin TLS with the first byte",
        ),
        (cell(factors={"hop": "pgbouncer"}), "remove --client psycopg"),
        (cell(protocol="simple", workload="point-select"), "--protocol simple"),
        (cell(factors={"prepared": "maybe"}), "prepared can't be 'maybe'"),
        (cell("mysql", "pymysql", factors={"prepared": "true"}), "--set prepared"),
        (cell(client="asyncpg", factors={"prepared": "false"}), "--set prepared"),
        (cell(mechanism="client-aes-gcm-256", workload="hospital-client"), "remove --client psycopg"),
        (cell(driver="some.jar"), "--driver both choose the driver"),
        (cell(versus={"client": "asyncpg"}), "two versions of another driver"),
        (cell(versus={"client": "rust"}), "two versions of another driver"),
    ],
)
def test_what_a_driver_can_not_do_is_refused_by_name(wrong: CellSpec, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(wrong)
    assert words in str(caught.value)


def test_two_versions_of_a_driver_may_be_two_arms() -> None:
    planned = resolve(cell(client="psycopg@3.3", versus={"client": "psycopg@3.2"}))
    assert planned.client is not None
    assert planned.reference is not None
    assert planned.reference.client is not None
    assert [planned.client.driver.version, planned.reference.client.driver.version] == ["3.3.9", "3.2.13"]


def test_a_matrix_has_drivers_of_every_kind_and_their_settings_only_where_they_are_known() -> None:
    cells = matrix.matrix(
        CellSpec("postgresql", "tls", factors={"prepared": "false"}), ["client=rust,psycopg@3.2,lib-pq,jdbc"]
    )
    assert [each.client for each in cells] == ["rust", "psycopg@3.2", "lib-pq", "jdbc"]
    assert [each.factors.get("prepared") for each in cells] == [None, "false", "false", "false"]
    with pytest.raises(UsageError, match="conflicts with --driver, and with any --client but jdbc"):
        matrix.matrix(cell(), ["driver=1,2"])


def test_a_cluster_can_not_run_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_checks, "installed", lambda: True)
    with pytest.raises(UsageError, match="driver of --client runs on this machine only"):
        specs.plan(Spec([cell(clients=8)], cluster="auto"))


def test_every_driver_is_listed_with_its_versions() -> None:
    text = inventory.show("drivers")
    for driver in drivers.every():
        assert driver.name in text
        assert driver.version in text


def test_a_language_has_its_drivers_versions_together_the_oldest_first() -> None:
    for name in drivers.REGISTRY.names():
        listed = [driver.name for driver in drivers.language(name).drivers]
        assert listed == sorted(listed, key=listed.index)
        for driver in drivers.language(name).drivers:
            assert driver.language == name
            assert driver.engines
            assert drivers.named(driver.name) == [
                other for other in drivers.language(name).drivers if other.name == driver.name
            ]


# ── Python ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_lock_pins_every_package_by_its_hashes() -> None:
    for path in python.LOCKS.glob("*.txt"):
        packages = [block for block in path.read_text().split("\n") if "==" in block]
        assert packages
        assert path.read_text().count("--hash=sha256:") >= len(packages)


def test_a_driver_that_was_not_fetched_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("CIPHERCOST_CACHE", str(tmp_path))
    driver = drivers.named("psycopg")[-1]
    assert not drivers.language("python").is_here(driver)
    with package_cache.offline(), pytest.raises(MissingServer, match=r"psycopg-3\.3\.9-\S* was not fetched yet"):
        python.packages(driver)
    assert not list(tmp_path.glob("*/psycopg*"))
