"""One captured insert and its OK have the bytes in the post's debug output, with real drivers on real servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost import engines, studies
from ciphercost.engines import Server
from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.host import supervisor
from ciphercost.host.relay import Relay, moved, tls_record_sizes
from ciphercost.load import workloads
from ciphercost.load.jdbc import drivers, java, jdbc_agent
from ciphercost.model import run_directory
from ciphercost.model.errors import CiphercostError
from ciphercost.studies.jdbc_tls import loops, published, setups, wire
from ciphercost.studies.jdbc_tls.loops import CAPTURED, ROWS, Loop
from ciphercost.studies.jdbc_tls.setups import EXECUTE, SERVER_VERSION, UPDATE, Setup
from ciphercost.studies.jdbc_tls.wire import Sizes
from conftest import Require, RequireServer
from mysql_servers import ServerCopies, server_copies

INSERT, OK = published.packets(studies.get("jdbc-tls"))
GCM = {"version": "1.2", "verify": "require", "cipher": "aes128-gcm"}


@pytest.fixture(scope="module")
def java_here(require: Require) -> None:
    try:
        java.command()
        for version in (setups.OLD, setups.NEW):
            drivers.find(version, "mariadb").jars()
    except CiphercostError as error:
        require(None, str(error))


@pytest.fixture(scope="module")
def run_supervisor() -> Iterator[supervisor.Supervisor]:
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
        yield run_supervisor


@pytest.fixture(scope="module")
def mariadb(
    require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory, java_here: None
) -> Iterator[tuple[ServerCopies, Server]]:
    del java_here
    with (
        server_copies(require_server("mariadb", "10.11"), tmp_path_factory.mktemp("logs")) as home,
        # Offers every suite of TLS 1.2 that a cell may request.
        home.started({"version": SERVER_VERSION}, version="1.2") as server,
    ):
        yield home, server


def on_the_wire(
    home: ServerCopies,
    server: Server,
    setup: Setup,
    run_supervisor: supervisor.Supervisor,
    loop: Loop = CAPTURED,
    tls: Mapping[str, str] | None = None,
) -> tuple[Sizes, str]:
    """Sizes of one insert and its answer through a relay, and the negotiated suite."""
    engine = home.engine
    program = workloads.prepare(workloads.get(loop.workload), engine.dialect, {})
    loaded = ";".join(step.sql for step in program.load)
    assert home.client(server, f"DROP TABLE IF EXISTS {loop.table}; {loaded}").returncode == 0
    factors = dict(tls or loop.tls)
    fields = home.fields(server, setup.arm, **factors) | {"connections": 1, "threads": 1}
    like = home.fields(server, "encrypted", **factors)
    driver, options = drivers.find(setup.driver, engine.name), {**loop.options, **setup.options}
    with (
        Relay("127.0.0.1", fields.port) as relay,
        jdbc_agent.JdbcAgent(
            driver, EncryptsConnections.of(engines.get(engine.name)), options, like, supervisor=run_supervisor
        ) as agent,
    ):
        agent.program(program)
        answer = agent.connect(setup.arm, moved(fields, "127.0.0.1", relay.port))
        assert answer.encrypted == (setup.arm == "encrypted")
        sizes = wire.of_an_insert(agent, setup.arm, relay, encrypted=setup.arm == "encrypted")
        return sizes, str(answer.cipher)


# ── what was published ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_published_sizes_add_up() -> None:
    """An IV of 16 bytes, the packet, a MAC of 32 and padding to whole AES blocks."""
    assert (INSERT.record, OK.record) == (96, 64)
    for packet in (INSERT, OK):
        iv, mac, padding = packet.parts
        assert iv + packet.mysql + mac + padding == packet.record
        assert packet.record % 16 == 0
        assert 1 <= padding <= 16
    statement = "insert into words (word)  values('123')"
    assert len(statement) + 1 + wire.HEADER == INSERT.mysql  # COM_QUERY is one byte
    # 0, one row, the id behind 0xfd, status, warnings.
    assert OK.mysql == wire.HEADER + 1 + 1 + 4 + 2 + 2


def test_the_statement_is_sent_as_it_was_captured() -> None:
    (transaction,) = workloads.prepare(workloads.get(CAPTURED.workload), "mysql", {}).transactions
    (statement,) = transaction[2].statements
    assert statement.sql == "insert into words (word)  values('123')"
    assert not statement.parameters


@given(st.lists(st.integers(0, 300)), st.lists(st.integers(1, 300)))
def test_sizes_of_packets_and_records_are_read_back(packets: list[int], records: list[int]) -> None:
    clear = b"".join(size.to_bytes(3, "little") + b"\0" + b"x" * size for size in packets)
    assert wire.packet_sizes(clear) == [size + 4 for size in packets]
    hello = b"\x16\x03\x01\x00\x01\x01"
    coded = hello + b"".join(b"\x17\x03\x03" + size.to_bytes(2, "big") + b"y" * size for size in records)
    assert tls_record_sizes(coded) == records


# ── for real ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_records_have_the_published_sizes(
    mariadb: tuple[ServerCopies, Server], run_supervisor: supervisor.Supervisor
) -> None:
    sizes, suite = on_the_wire(*mariadb, setups.after(UPDATE), run_supervisor)
    assert suite == "ECDHE-RSA-AES128-SHA256"
    assert sizes == Sizes([INSERT.record], [OK.record])


@pytest.mark.parametrize(
    "setup", [setups.before(UPDATE), setups.after_in_clear(UPDATE)], ids=lambda setup: setup.driver
)
def test_packets_have_the_published_sizes(
    mariadb: tuple[ServerCopies, Server], run_supervisor: supervisor.Supervisor, setup: Setup
) -> None:
    """With both drivers: one text query, one OK, and nothing between two inserts."""
    sizes, _ = on_the_wire(*mariadb, setup, run_supervisor)
    assert sizes == Sizes([INSERT.mysql], [OK.mysql])


def test_a_transaction_is_open_and_autocommit_is_off(
    mariadb: tuple[ServerCopies, Server], run_supervisor: supervisor.Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The OK of an insert equals the captured one byte by byte, except for its id."""
    seen: list[bytes] = []
    close = Relay.close

    def kept(relay: Relay) -> None:
        seen.append(bytes(relay.to_client))
        close(relay)

    monkeypatch.setattr(Relay, "close", kept)
    on_the_wire(*mariadb, setups.after_in_clear(UPDATE), run_supervisor)
    captured = bytes.fromhex("0a000001 00 01 fd3cb702 0100 0000")
    assert captured in b"".join(seen)  # the first insert's id is the captured one


def test_by_execute_an_insert_is_two_messages(
    mariadb: tuple[ServerCopies, Server], run_supervisor: supervisor.Supervisor
) -> None:
    """So the captured loop, in which an insert follows an OK directly, did not use `execute()` with its defaults."""
    sizes, _ = on_the_wire(*mariadb, setups.after(EXECUTE), run_supervisor)
    assert len(sizes.sent) == 2
    assert len(sizes.received) >= 2
    quiet, _ = on_the_wire(*mariadb, setups.without_queries(EXECUTE), run_supervisor)
    assert quiet == Sizes([INSERT.mysql], [OK.mysql])


def test_the_other_loop_has_other_sizes(
    mariadb: tuple[ServerCopies, Server], run_supervisor: supervisor.Supervisor
) -> None:
    sizes, suite = on_the_wire(*mariadb, setups.after(UPDATE), run_supervisor, ROWS)
    assert "GCM" in suite or "CHACHA20" in suite  # Java's own choice
    assert sizes.sent[0] > INSERT.record


def test_mysql_has_the_same_packets_and_no_such_suite(
    require_server: RequireServer, tmp_path: Path, run_supervisor: supervisor.Supervisor, java_here: None
) -> None:
    """MySQL no longer accepts CBC suites: with AES-GCM a record has a nonce of 8 bytes and a tag of 16."""
    del java_here
    with server_copies(require_server("mysql", "9.7"), tmp_path) as home, home.started(version="1.2") as server:
        clear, _ = on_the_wire(home, server, setups.after_in_clear(UPDATE), run_supervisor)
        coded, suite = on_the_wire(home, server, setups.after(UPDATE), run_supervisor, tls=GCM)
    assert clear == Sizes([INSERT.mysql], [OK.mysql])
    assert suite == "ECDHE-RSA-AES128-GCM-SHA256"
    assert coded == Sizes([8 + INSERT.mysql + 16], [8 + OK.mysql + 16])


def test_a_record_names_its_loop() -> None:
    study = studies.get("jdbc-tls")
    assert loops.of(study.begin("mariadb")) is CAPTURED
    assert loops.of(study.configured({"loop": "insert-loop"}).begin("mariadb")) is ROWS
