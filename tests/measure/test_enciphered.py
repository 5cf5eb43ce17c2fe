"""Bytes that a server reads and writes per operation, from its counters; and the floors of every mechanism that names a cipher."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from ciphercost import engines, mechanisms
from ciphercost.engines.capabilities.io_counters import CountsIo
from ciphercost.load.agent import Agent
from ciphercost.measure.enciphered import added, io_of
from ciphercost.mechanisms import sqlcipher
from ciphercost.mechanisms._rest import AtRest
from ciphercost.model.cipher_work import CipherWork, Enciphered, Stream
from ciphercost.model.connection import Connection

PAGES = Stream(CipherWork("aes256-cbc", unit=4080), 4096)


def test_rows_of_several_connections_add_up() -> None:
    assert io_of([["pages", "10", "5"], ["redo log", "0", None], ["pages", "1", "2.0"]]) == {
        "pages": (11, 7),
        "redo log": (0, 0),
    }


def test_sessions_add_up_and_a_counter_that_fell_or_is_missing_adds_nothing() -> None:
    first = added(Enciphered({"pages": PAGES}), {"pages": (10, 5)}, {"pages": (30, 6), "other": (1, 1)}, 4)
    assert (first.streams["pages"].read, first.streams["pages"].written, first.operations) == (20, 1, 4)
    second = added(first, {"pages": (0, 0)}, {"pages": (5, 5)}, 2)
    assert (second.streams["pages"].read, second.streams["pages"].written, second.operations) == (25, 6, 6)
    assert added(second, {"pages": (5, 5)}, {"pages": (4, 9)}, 2) == second
    assert added(second, {}, {"pages": (4, 9)}, 2) == second


def factors_of(mechanism: mechanisms.Mechanism) -> list[dict[str, str]]:
    """Every combination of the factors that have values."""
    with_values = [factor for factor in mechanism.factors if factor.values]
    return [
        mechanism.check(dict(zip((factor.name for factor in with_values), values, strict=True)))
        for values in product(*(factor.values for factor in with_values))
    ]


def at_rest() -> list[AtRest]:
    return [mechanism for name in mechanisms.names() if isinstance(mechanism := mechanisms.get(name), AtRest)]


def test_the_agent_knows_every_cipher_that_a_mechanism_names() -> None:
    works = {work for mechanism in at_rest() for factors in factors_of(mechanism) for work in mechanism.floors(factors)}
    works |= set(mechanisms.get("tls").floors(mechanisms.get("tls").check({})))
    assert {work.cipher for work in works} >= {"aes256-cbc", "aes256-ctr", "aes256-gcm", "chacha20"}
    with Agent() as agent:
        for work in works:
            cost = agent.floor(work.cipher, 1, mac=work.mac, unit=work.unit)
            assert min(cost.values()) > 0, work


@pytest.mark.parametrize("mechanism", at_rest(), ids=lambda mechanism: mechanism.name)
def test_a_mechanism_names_kinds_of_files_that_its_servers_count(mechanism: AtRest) -> None:
    for factors in factors_of(mechanism):
        for kind, stream in mechanism.streams(factors).items():
            assert 0 < stream.work.unit <= stream.page
            for name in mechanism.engines:
                engine = engines.get(name)
                assert not isinstance(engine, CountsIo) or f"'{kind}'" in engine.io_counters


def test_factors_decide_what_a_page_costs() -> None:
    streams = sqlcipher.MECHANISM.streams(sqlcipher.MECHANISM.check({"page_size": "16384", "hmac": "sha256"}))
    assert streams == {"pages": Stream(CipherWork("aes256-cbc", "hmac-sha256", 16384 - 80), 16384)}
    off = sqlcipher.MECHANISM.streams(sqlcipher.MECHANISM.check({"hmac": "off"}))
    assert off["pages"].work.mac == ""
    innodb = mechanisms.get("innodb-tde")
    assert isinstance(innodb, AtRest)
    assert list(innodb.streams(innodb.check({"logs": "off"}))) == ["pages"]


def test_sqlite_counts_the_pages_that_each_connection_reads_and_writes(tmp_path: Path) -> None:
    """A table of 100 pages and more is written once; a connection with a small cache reads it again each time, another never did."""
    sqlite = engines.get("sqlite")
    assert isinstance(sqlite, CountsIo)
    pragmas = "PRAGMA page_size=4096;PRAGMA journal_mode=WAL;PRAGMA cache_size=16"
    with Agent() as agent:
        agent.connect(
            "a", Connection(driver="sqlite", path=str(tmp_path / "file"), pragmas=pragmas, connections=2, threads=2)
        )

        def counted() -> list[tuple[int, int]]:
            rows = agent.query("a", sqlite.io_counters, everywhere=True)
            return [(int(read or 0), int(written or 0)) for _, read, written in rows]

        before = counted()
        agent.query(
            "a",
            "CREATE TABLE t (n INTEGER PRIMARY KEY, x TEXT); WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 4000) "
            "INSERT INTO t SELECT n, printf('%0100d', n) FROM c",
        )
        pages = int(str(agent.query("a", "SELECT page_count FROM pragma_page_count")[0][0]))
        assert pages > 100
        written = counted()
        assert written[0][1] - before[0][1] >= (pages - 1) * 4096
        assert written[1][1] == before[1][1]
        agent.query("a", "PRAGMA wal_checkpoint(TRUNCATE)")
        assert counted()[0][1] == written[0][1], "a checkpoint copies pages as they are"
        start = counted()
        for _ in range(2):
            agent.query("a", "SELECT sum(length(x)) FROM t")
        read = counted()
        assert read[0][1] == start[0][1]
        # All but the few pages that the cache kept, twice.
        assert 2 * (pages - 40) * 4096 <= read[0][0] - start[0][0] <= 2 * pages * 4096
