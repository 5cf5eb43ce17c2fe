"""The agent's firebird driver on a real server: values, rows, transactions, encryption, and every refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import firebird
from asking import ask, raw
from ciphercost.engines.firebird import ENGINE, FirebirdServer
from ciphercost.host.installation import Installation
from ciphercost.host.relay import Relay
from ciphercost.load import script
from ciphercost.load.agent import Agent
from ciphercost.load.program import Program
from ciphercost.model.connection import Changes, WireCrypt
from ciphercost.model.errors import AgentError
from ciphercost.model.secret import reveal
from processes import wait_for

PLUGINS = ("ChaCha64", "ChaCha", "Arc4")


@pytest.fixture(scope="module")
def installation(require_server: Callable[[str], Installation]) -> Installation:
    return require_server("firebird")


@pytest.fixture(scope="module")
def server(installation: Installation) -> Iterator[FirebirdServer]:
    with firebird.started(installation) as running:
        yield running


@pytest.fixture
def agent(server: FirebirdServer) -> Iterator[Agent]:
    """An agent with an arm `plain`, and an empty table t (id, n, word, body)."""
    with Agent() as started:
        started.connect("plain", server.connection())
        wait_for("the end of what the test before had", lambda: alone(started))
        started.query(
            "plain",
            "RECREATE TABLE t (id integer NOT NULL PRIMARY KEY, n bigint, word varchar(40), body blob sub_type text)",
        )
        yield started


def alone(agent: Agent) -> bool:
    """Whether no other connection is attached. A closed one stays visible for a while."""
    return agent.query("plain", "SELECT count(*) FROM MON$ATTACHMENTS WHERE MON$USER = 'CIPHERCOST'") == [["1"]]


def program(*transactions: str) -> Program:
    parsed = tuple((f"t{number}", 1, script.parse(text, {})) for number, text in enumerate(transactions))
    return Program(
        name="p",
        load=(),
        check="",
        transactions=parsed,
        read_only=False,
        per_request=False,
        clients=1,
        parameters={},
    )


def run(agent: Agent, arm: str, operations: int = 20) -> Any:
    return agent.slice(arm, 60, discard=0.0, seed=7, operations=operations)


# ── what is asked once ────────────────────────────────────────────────────────────────────────────────────────────────


def test_values_come_as_text(agent: Agent) -> None:
    rows = agent.query(
        "plain",
        "SELECT 1, CAST(-2.50 AS numeric(9,2)), CAST(7 AS bigint), CAST(1 AS int128), CAST(0.5 AS double precision), true, NULL, "
        "DATE '2024-02-29', TIME '01:02:03', TIMESTAMP '2024-02-29 01:02:03', 'a;b', CAST('ab' AS char(4)), 'ä€😀', "
        "CAST(1.25 AS decfloat(16)) FROM RDB$DATABASE",
    )
    wanted = ["1", "-2.50", "7", "1", "0.5000000000000000", "TRUE", None, "2024-02-29", "01:02:03.0000"]
    assert rows == [[*wanted, "2024-02-29 01:02:03.0000", "a;b", "ab  ", "ä€😀", "1.25"]]


def test_a_blob_is_read_to_its_end(agent: Agent) -> None:
    agent.query(
        "plain", "INSERT INTO t (id, body) VALUES (1, RPAD(CAST('' AS blob sub_type text), 200000, 'abcdefghij'))"
    )
    agent.query("plain", "INSERT INTO t (id, body) VALUES (2, '')")
    agent.query("plain", "INSERT INTO t (id, body) VALUES (3, NULL)")
    rows = agent.query("plain", "SELECT body, id FROM t ORDER BY id")
    assert rows == [["abcdefghij" * 20000, "1"], ["", "2"], [None, "3"]]


def test_the_last_statement_that_gives_rows_answers(agent: Agent) -> None:
    rows = agent.query("plain", "SELECT 1 FROM RDB$DATABASE; INSERT INTO t (id) VALUES (1); -- so ;\n")
    assert rows == [["1"]]
    assert agent.query("plain", "INSERT INTO t (id) VALUES (2) RETURNING id, word") == [["2", None]]


def test_a_block_is_one_statement(agent: Agent) -> None:
    agent.query(
        "plain",
        "EXECUTE BLOCK AS DECLARE n integer = 0; BEGIN WHILE (n < 2500) DO BEGIN n = n + 1; INSERT INTO t (id) VALUES (:n); END END;",
    )
    assert agent.query("plain", "SELECT count(*), sum(id) FROM t") == [["2500", "3126250"]]
    assert len(agent.query("plain", "SELECT id FROM t")) == 2500, "more than one batch of rows"


def test_a_transaction_is_what_stands_between_begin_and_its_end(agent: Agent) -> None:
    agent.query("plain", "BEGIN; INSERT INTO t (id) VALUES (1); ROLLBACK; BEGIN; INSERT INTO t (id) VALUES (2); COMMIT")
    assert agent.query("plain", "SELECT id FROM t") == [["2"]]


@pytest.mark.parametrize(
    ("sql", "code", "words"),
    [
        ("SELECT * FROM nobody", "42S02", "335544580: table unknown NOBODY"),
        ("SELECT nobody FROM t", "42S22", "column unknown NOBODY"),
        ("SELECT", "42000", "end of the statement"),
        ("SELEKT 1", "42000", "token unknown at line 1, column 1"),
        ("INSERT INTO t (id) VALUES (1); INSERT INTO t (id) VALUES (1)", "23000", "violation of primary or unique key"),
        ("INSERT INTO t (id) VALUES (NULL)", "23000", "not a valid value for column"),
        ("SELECT 1 / (n - n) FROM (SELECT 1 AS n FROM RDB$DATABASE)", "22000", "division by zero"),
        ("SELECT CAST('x' AS integer) FROM RDB$DATABASE", "22018", "can't convert from string"),
        ("SELECT RPAD('', 8000, 'x'), RPAD('', 8000, 'x') FROM RDB$TYPES a, RDB$TYPES b", "statement", "16 MiB"),
        ("SELECT n FROM t WHERE id = ?", "statement", "no parameters"),
    ],
)
def test_an_error_has_its_sqlstate_and_words_and_the_connection_goes_on(
    agent: Agent, sql: str, code: str, words: str
) -> None:
    with pytest.raises(AgentError) as caught:
        agent.query("plain", sql)
    assert (caught.value.code, words in str(caught.value)) == (code, True), str(caught.value)
    assert agent.query("plain", "SELECT 1 FROM RDB$DATABASE") == [["1"]]


# ── slices ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_both_arms_return_the_same_rows_whatever_the_cipher(agent: Agent, server: FirebirdServer) -> None:
    agent.query("plain", "INSERT INTO t VALUES (1, 10, 'one', NULL); INSERT INTO t VALUES (2, NULL, NULL, 'two')")
    agent.program(program("\\set id random(1, 2)\nSELECT n, word FROM t WHERE id = :id", "SELECT count(*) FROM t"))
    plain = run(agent, "plain")
    assert (plain.operations, plain.errors, plain.rows) == (20, 0, 20)
    for plugin in PLUGINS:
        agent.connect("encrypted", server.connection() | {"wire_crypt": "require", "wire_crypt_plugins": plugin})
        encrypted = run(agent, "encrypted")
        assert (encrypted.rows, encrypted.checksum) == (plain.rows, plain.checksum), plugin
        assert (encrypted.bytes_sent, encrypted.bytes_received) == (plain.bytes_sent, plain.bytes_received)


def test_an_operation_is_three_round_trips(agent: Agent) -> None:
    agent.program(program("SELECT 1 FROM RDB$DATABASE"))
    # If the other side is slow, bare acknowledgements are added.
    for _ in range(10):
        sent = run(agent, "plain").segments_sent
        assert sent >= 3 * 20
        if sent <= 3 * 20 + 10:
            break
    assert sent <= 3 * 20 + 10


def test_the_content_of_blobs_is_fetched_and_compared(agent: Agent) -> None:
    agent.query(
        "plain",
        "INSERT INTO t (id, body) VALUES (1, RPAD(CAST('' AS blob sub_type text), 100000, 'x')); INSERT INTO t (id) VALUES (2)",
    )
    agent.program(program("SELECT id, body FROM t"))
    first = run(agent, "plain", 3)
    assert (first.errors, first.rows) == (0, 6)
    assert first.bytes_received > 3 * 100_000
    agent.query("plain", "UPDATE t SET body = RPAD(CAST('' AS blob sub_type text), 100000, 'y') WHERE id = 1")
    assert run(agent, "plain", 3).checksum != first.checksum


def test_a_large_result_is_streamed(agent: Agent) -> None:
    agent.program(program("SELECT RPAD('', 8000, 'x') FROM RDB$TYPES"))
    count = int(str(agent.query("plain", "SELECT count(*) FROM RDB$TYPES")[0][0]))
    answer = run(agent, "plain", 2)
    assert (answer.errors, answer.rows) == (0, 2 * count)
    assert answer.bytes_received > 2 * count * 8000


def test_a_key_that_is_a_parameter_is_looked_up_by_its_index(agent: Agent) -> None:
    agent.query(
        "plain",
        "EXECUTE BLOCK AS DECLARE n integer = 0; BEGIN WHILE (n < 1000) DO BEGIN n = n + 1; INSERT INTO t (id) VALUES (:n); END END",
    )
    reads = (
        "SELECT SUM(MON$RECORD_SEQ_READS), SUM(MON$RECORD_IDX_READS) FROM MON$RECORD_STATS r "
        "JOIN MON$TABLE_STATS s ON s.MON$RECORD_STAT_ID = r.MON$STAT_ID WHERE s.MON$TABLE_NAME = 'T' AND s.MON$STAT_GROUP = 0"
    )
    agent.program(program("\\set id random(1, 1000)\nSELECT id FROM t WHERE id = :id"))
    before = agent.query("plain", reads)[0]
    assert run(agent, "plain", 50).rows == 50
    after = agent.query("plain", reads)[0]
    assert int(str(after[1])) - int(str(before[1])) == 50
    assert after[0] == before[0], "no table scan"


def test_parameters_of_every_kind_reach_the_server(agent: Agent) -> None:
    agent.program(
        program(
            "\\set id sequence(1)\n\\set n random(-5, 5)\n\\set word random_text(9)\n"
            "INSERT INTO t VALUES (:id, :n, :word, :word || :word)"
        )
    )
    assert run(agent, "plain").errors == 0
    rows = agent.query("plain", "SELECT id, n, word, body FROM t ORDER BY id")
    assert [row[0] for row in rows] == [str(number) for number in range(1, 21)]
    assert all(len(str(row[2])) == 9 and row[3] == f"{row[2]}{row[2]}" for row in rows)
    assert len({row[2] for row in rows}) == 20


def test_a_transaction_of_several_statements_is_rolled_back_whole(agent: Agent) -> None:
    agent.program(
        program("\\set id sequence(1)\nBEGIN; INSERT INTO t (id) VALUES (:id); INSERT INTO t (id) VALUES (:id); END;")
    )
    answer = run(agent, "plain", 5)
    assert (answer.operations, answer.errors) == (0, 5)
    assert answer.first_error.startswith("23000: 335544665: ")
    assert agent.query("plain", "SELECT count(*) FROM t") == [["0"]]


def test_a_value_that_does_not_fit_is_an_error_of_the_operation(agent: Agent) -> None:
    agent.program(program("\\set id random(5000000000, 5000000001)\nSELECT id FROM t WHERE id = :id"))
    answer = run(agent, "plain", 3)
    assert (answer.errors, "not an integer" in answer.first_error) == (3, True)
    assert agent.query("plain", "SELECT count(*) FROM t") == [["0"]]


def test_a_statement_that_can_not_be_prepared_is_an_error_of_the_slice(agent: Agent) -> None:
    agent.program(program("SELECT * FROM nobody"))
    with pytest.raises(AgentError, match="table unknown NOBODY"):
        run(agent, "plain")
    assert agent.query("plain", "SELECT 1 FROM RDB$DATABASE") == [["1"]]


def test_several_connections_share_a_thread(agent: Agent, server: FirebirdServer) -> None:
    agent.connect("many", server.connection() | {"connections": 6, "threads": 2, "wire_crypt": "require"})
    agent.program(
        program("\\set id sequence(1)\nBEGIN; INSERT INTO t (id) VALUES (:id); SELECT id FROM t WHERE id = :id; COMMIT")
    )
    answer = run(agent, "many", 60)
    assert (answer.operations, answer.errors, answer.rows) == (60, 0, 60)


@pytest.mark.parametrize("connections", [1, 3])
def test_each_operation_can_have_a_connection_of_its_own(
    agent: Agent, server: FirebirdServer, connections: int
) -> None:
    agent.program(
        program("\\set id sequence(1)\nBEGIN; INSERT INTO t (id) VALUES (:id); SELECT id FROM t WHERE id = :id; END")
    )
    fields = server.connection() | {"connections": connections, "threads": 1, "per_request": True}
    ways: list[tuple[str, WireCrypt]] = [("one", "off"), ("two", "require")]
    for arm, crypt in ways:
        agent.query("plain", "DELETE FROM t")
        agent.connect(arm, fields | {"wire_crypt": crypt})
        answer = run(agent, arm, 6)
        assert (answer.operations, answer.errors, answer.rows, answer.connects) == (6, 0, 6, 6), answer.first_error
    wait_for("the others' end", lambda: alone(agent))


# ── encryption and refusals ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("plugin", PLUGINS)
def test_client_and_server_agree_on_what_encrypts(agent: Agent, server: FirebirdServer, plugin: str) -> None:
    answer = agent.connect("e", server.connection() | {"wire_crypt": "require", "wire_crypt_plugins": plugin})
    assert (answer.encrypted, answer.protocol, answer.cipher) == (True, "wire-crypt", plugin)
    assert agent.query("e", ENGINE.tls_witness) == [["TRUE", "wire-crypt", plugin]]


def test_in_clear_both_say_so(agent: Agent, server: FirebirdServer) -> None:
    answer = agent.connect("p", server.connection())
    assert (answer.encrypted, answer.protocol, answer.cipher) == (False, "", "")
    assert agent.query("p", ENGINE.tls_witness) == [["FALSE", "", ""]]


def test_the_password_is_on_no_wire(agent: Agent, server: FirebirdServer) -> None:
    fields = server.connection()
    with Relay("127.0.0.1", server.port) as relay:
        agent.connect("p", fields | {"port": relay.port})
        agent.disconnect("p")
        assert reveal(fields.password).encode() not in bytes(relay.to_server) + bytes(relay.to_client)


@pytest.mark.parametrize(
    ("setting", "fields", "code", "words"),
    [
        ({"WireCrypt": "Required"}, {"wire_crypt": "off"}, "28000", "The server requires wire encryption"),
        ({"WireCrypt": "Disabled"}, {"wire_crypt": "require"}, "tls", "The server has wire encryption off"),
        (
            {"WireCryptPlugin": "Arc4"},
            {"wire_crypt": "require", "wire_crypt_plugins": "ChaCha64"},
            "tls",
            "no common wire encryption plugin: requested ChaCha64, the server has Arc4",
        ),
    ],
    ids=["required", "disabled", "mismatch"],
)
def test_nothing_ever_falls_back(
    installation: Installation, setting: dict[str, str], fields: Changes, code: str, words: str
) -> None:
    with firebird.started(installation, **setting) as server, Agent() as agent:
        with pytest.raises(AgentError) as caught:
            agent.connect("x", server.connection() | fields)
        assert (caught.value.code, words in str(caught.value)) == (code, True), str(caught.value)


def test_a_server_that_wants_an_older_login_is_answered(installation: Installation) -> None:
    with firebird.started(installation, AuthServer="Srp") as server, Agent() as agent:
        for crypt in ("off", "require"):
            answer = agent.connect("x", server.connection() | {"wire_crypt": crypt})
            assert (answer.auth, answer.encrypted) == ("Srp", crypt == "require")


def test_a_database_is_made_only_where_there_is_none(agent: Agent, server: FirebirdServer) -> None:
    assert server.directory is not None
    fields = server.connection() | {"database": str(server.directory / "made.fdb")}
    with pytest.raises(AgentError, match="error while opening the file"):
        agent.connect("new", fields)
    agent.connect("new", fields | {"create": True})
    with pytest.raises(AgentError, match="DATABASE is in use"):
        agent.connect("again", fields | {"create": True})
    agent.query("new", "CREATE TABLE x (n integer); INSERT INTO x VALUES (1)")
    assert agent.query("new", "SELECT n FROM x") == [["1"]]
    agent.disconnect("new")
    with pytest.raises(AgentError, match=r"exists already|is in use|File exists"):
        agent.connect("again", fields | {"create": True})
    agent.connect("new", fields)
    agent.query("new", "DROP DATABASE")
    assert not (server.directory / "made.fdb").exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"wire_crypt": "maybe"},
        {"wire_crypt_plugins": "Blowfish"},
        {"wire_crypt_plugins": ""},
        {"tls": "off"},
        {"create": "yes"},
    ],
    ids=str,
)
def test_a_field_that_is_not_understood_is_refused(
    agent: Agent, server: FirebirdServer, fields: dict[str, str]
) -> None:
    with pytest.raises(AgentError) as caught:
        ask(agent, raw("x", server.connection()) | fields)
    assert caught.value.code == "bad-message"


def test_a_lost_connection_ends_the_slice_with_an_error(installation: Installation) -> None:
    with firebird.started(installation) as server, Agent() as agent:
        agent.connect("plain", server.connection())
        agent.program(program("SELECT 1 FROM RDB$DATABASE"))
        assert run(agent, "plain", 3).errors == 0
        server.stop()
        with pytest.raises(AgentError) as caught:
            run(agent, "plain", 3)
        assert caught.value.code in ("connect", "08003", "08006"), str(caught.value)
