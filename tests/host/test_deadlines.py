"""deadlines: no server can block ciphercost, whatever it sends and however slowly: logins, witness queries, slices;
both agents, all protocols.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import rogue_servers as rogue
import warm
from asking import ask
from ciphercost import engines, mechanisms
from ciphercost.engines._mysql.greeting import Greeting, greeting
from ciphercost.host import deadlines
from ciphercost.host.relay import Relay
from ciphercost.load.agent import Agent
from ciphercost.load.jdbc import drivers, java
from ciphercost.load.jdbc.drivers import Target, TlsRequest, find
from ciphercost.measure import round_trips
from ciphercost.model.connection import Changes, Connection, JdbcConnection, Pool
from ciphercost.model.errors import AgentError, MissingServer, UsageError
from ciphercost.model.secret import Secret
from ciphercost.prove import witnesses
from ciphercost.provision.server_pair import ServerPair
from conftest import Require
from processes import wait_for
from rogue_servers import RogueServer, Talk
from test_real import CLI

SHORT = "0.5"
"""CIPHERCOST_TIMEOUT in these tests."""
BOUND = 60.0
"""Seconds after which something counts as blocked: many times the deadline, however slow the machine is."""


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(deadlines.VARIABLE, SHORT)


@pytest.fixture(scope="module")
def agent() -> Iterator[Agent]:
    with Agent() as started:
        yield started


def connection(driver: str, port: int) -> Connection:
    fields = Connection(driver=driver, host="127.0.0.1", port=port)
    if driver != "http":
        fields |= {"user": "me", "password": Secret("p")}
    return fields if driver in ("http", "resp") else fields | {"database": "d"}


def refused(agent: Agent, arm: str, fields: Pool) -> AgentError:
    began = time.monotonic()
    with pytest.raises(AgentError) as caught:
        agent.connect(arm, fields)
    assert time.monotonic() - began < BOUND
    assert "\n" not in str(caught.value)
    return caught.value


# ── the setting ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_deadline_is_a_multiple_of_one_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(deadlines.VARIABLE, raising=False)
    assert (deadlines.login(), deadlines.query(), deadlines.overtime()) == (30, 60, 120)
    assert (deadlines.connections(8), deadlines.connections(64)) == (150, 360)
    monkeypatch.setenv(deadlines.VARIABLE, "1")
    assert (deadlines.login(), deadlines.query(), deadlines.check(), deadlines.load()) == (1, 2, 20, 120)


@pytest.mark.parametrize("wrong", ["soon", "0", "-1", "nan", "inf", "1e9", "10s"])
def test_a_timeout_that_is_not_a_number_of_seconds_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    monkeypatch.setenv(deadlines.VARIABLE, wrong)
    with pytest.raises(UsageError, match=r"CIPHERCOST_TIMEOUT=.*seconds from 0\.1 to 600"):
        deadlines.login()


def test_the_command_reports_it_and_starts_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [CLI, "prove", "postgresql:tls", "--url", "postgresql://me@127.0.0.1:1/d"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, deadlines.VARIABLE: "soon"},
        timeout=BOUND,
    )
    assert done.returncode == 2, done.stderr
    assert "CIPHERCOST_TIMEOUT=soon: not a number of seconds" in done.stderr
    assert "Traceback" not in done.stderr


# ── the Rust agent: logins ────────────────────────────────────────────────────────────────────────────────────────────

HELD: dict[str, tuple[str, Talk, Changes]] = {
    "postgresql is silent": ("postgres", rogue.silent, {}),
    "postgresql drips a notice": ("postgres", rogue.dripping(b"N\0\0\xe0\0", after=1), {}),
    "postgresql drips parameters": ("postgres", rogue.dripping(b"", rogue.PARAMETERS, after=1), {}),
    "postgresql drips TLS": ("postgres", rogue.dripping(rogue.HANDSHAKE, after=1), {"tls": "require"}),
    "mysql drips its greeting": ("mysql", rogue.dripping(b"\xf0\x0f\0\0\x0a"), {}),
    "mysql drips the login": ("mysql", rogue.mysql(rogue.dripping(b"\xf0\xff\0\x02\xff\x01\x01")), {}),
    "mysql drips TLS": ("mysql", rogue.mysql(rogue.dripping(rogue.HANDSHAKE[1:])), {"tls": "require"}),
    "firebird drips an answer": ("firebird", rogue.dripping(struct.pack("!5I", 9, 0, 0, 0, 60_000), after=1), {}),
    "firebird drips signs of life": ("firebird", rogue.dripping(b"", struct.pack("!I", 71), after=1), {}),
    "valkey drips its answer": ("resp", rogue.dripping(b"*14\r\n$6\r\nserver\r\n$6000\r\n", after=1), {}),
    "valkey drips lines": ("resp", rogue.dripping(b"*99999999\r\n", b"+x\r\n", after=1), {}),
    "a web server drips TLS": ("http", rogue.dripping(rogue.HANDSHAKE[1:], after=1), {"tls": "require"}),
}


@pytest.mark.parametrize("what", HELD)
@pytest.mark.usefixtures("short")
def test_a_login_that_drips_ends_at_its_deadline(agent: Agent, what: str) -> None:
    driver, talk, fields = HELD[what]
    with RogueServer(talk) as server:
        error = refused(agent, "held", connection(driver, server.port) | fields)
    assert error.code == "timeout", error
    assert "login within 0.5 s" in str(error), error
    with pytest.raises(AgentError) as caught:
        agent.query("held", "SELECT 1")
    assert caught.value.code == "no-arm"


def test_slow_logins_go_on_side_by_side_so_that_all_meet_their_deadline(
    agent: Agent,
) -> None:
    alone, together = threading.Lock(), threading.Barrier(39)

    def let_in(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        if not alone.acquire(blocking=False):  # the first connection is opened alone
            with contextlib.suppress(threading.BrokenBarrierError):
                together.wait()  # until all others wait for their answer too
        connection.sendall(rogue.LET_IN)
        rogue.silent(connection)

    with contextlib.ExitStack() as stack:
        server = stack.enter_context(RogueServer(let_in))
        stack.callback(together.abort)
        answer = agent.connect("many", connection("postgres", server.port) | {"connections": 40})
    assert answer.connections == 40


FLOODED: dict[str, tuple[str, Talk, str]] = {
    "notices": ("postgres", rogue.flooding(rogue.NOTICE, after=1), "more than 1 MiB before the login"),
    "parameters": ("postgres", rogue.flooding(rogue.PARAMETERS, after=1), "more than 1 MiB before the login"),
    "an endless error": ("postgres", rogue.flooding(b"x", b"E\x3f\0\0\0SERROR\0M", after=1), "more than 1 MiB"),
    "a greeting of 16 MiB": ("mysql", rogue.flooding(b"x", b"\xff\xff\xff\0\x0a"), "does not speak MySQL's protocol"),
    "a login packet": ("mysql", rogue.mysql(rogue.flooding(b"x", b"\xff\xff\xff\x02\xfe")), "more than 1 MiB"),
    "a greeting's names": ("resp", rogue.flooding(b"+x\r\n", b"*99999999\r\n", after=1), "more than 1 MiB"),
    "signs of life": ("firebird", rogue.flooding(struct.pack("!I", 71), after=1), "more than 1 MiB"),
}


@pytest.mark.parametrize("what", FLOODED)
def test_a_login_that_never_ends_is_refused_by_its_size(agent: Agent, what: str) -> None:
    driver, talk, words = FLOODED[what]
    with RogueServer(talk) as server:
        error = refused(agent, "flooded", connection(driver, server.port))
    assert words in str(error), error


def test_an_error_text_is_bounded_and_shows_no_control_characters(agent: Agent) -> None:
    text = rogue.message(b"E", b"SFATAL\0C28000\0M\x1b]0;title\x07\r\n" + b"long " * 100_000 + b"\0\0")

    def talk(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(text)
        rogue.silent(connection)

    with RogueServer(talk) as server:
        error = refused(agent, "refused", connection("postgres", server.port))
    assert error.code == "28000"
    assert len(str(error)) <= 2001
    assert str(error).isprintable(), error


# ── the Rust agent: queries ───────────────────────────────────────────────────────────────────────────────────────────

QUERIES: dict[str, tuple[str, Talk, Changes, str]] = {
    "a row drips": ("postgres", rogue.postgres(rogue.dripping(rogue.LONG_ROW), b"WITNESS"), {}, "timeout"),
    "rows without end": ("postgres", rogue.postgres(rogue.flooding(rogue.ROW, rogue.COLUMNS), b"WITNESS"), {}, "timeout"),
    "columns without end": ("postgres", rogue.postgres(rogue.flooding(rogue.COLUMNS), b"WITNESS"), {}, "timeout"),
    "notices without end": ("postgres", rogue.postgres(rogue.flooding(rogue.NOTICE), b"WITNESS"), {}, "timeout"),
    "a head drips": ("http", rogue.http(rogue.dripping(rogue.HEAD + b"X-Long: ")), {}, "timeout"),
    "a body drips": ("http", rogue.http(rogue.dripping(rogue.HEAD + b"Content-Length: 99999\r\n\r\n")), {}, "timeout"),
    "chunks drip": ("http", rogue.http(rogue.dripping(rogue.HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n")), {}, "timeout"),
    "interim responses": ("http", rogue.http(rogue.flooding(b"HTTP/1.1 100 Continue\r\n\r\n")), {}, "malformed"),
    "header fields": ("http", rogue.http(rogue.flooding(b"X-Field: x\r\n", rogue.HEAD)), {}, "malformed"),
    "a body without end": ("http", rogue.http(rogue.flooding(b"x", rogue.HEAD + b"\r\n")), {}, "timeout"),
    "http/2 drips": ("http", rogue.http2(rogue.dripping(b"\0\x3f\0\1\4\0\0\0\1", b"\x88")), {"http": "2"}, "timeout"),
    "http/2 pings": ("http", rogue.http2(rogue.flooding(rogue.frame(6, 0, 0, b"12345678"))), {"http": "2"}, "malformed"),
    "http/2 interim": ("http", rogue.http2(rogue.flooding(rogue.frame(1, 4, 1, b"\x08\x03103"))), {"http": "2"}, "malformed"),
    "http/2 fields": ("http", rogue.http2(rogue.flooding(rogue.frame(1, 4, 1, b"\x88" + b"\x90" * 300))), {"http": "2"}, "malformed"),
    "http/2 continuations": (
        "http",
        rogue.http2(rogue.flooding(rogue.frame(9, 0, 1), rogue.frame(1, 0, 1, b"\x88"))),
        {"http": "2"},
        "malformed",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", QUERIES)
def test_a_query_with_an_endless_answer_is_abandoned(agent: Agent, what: str) -> None:
    driver, talk, fields, code = QUERIES[what]
    with RogueServer(talk) as server:
        agent.connect("asked", connection(driver, server.port) | fields)
        began = time.monotonic()
        with pytest.raises(AgentError) as caught:
            agent.query(
                "asked",
                "GET /" if driver == "http" else "SELECT 'WITNESS'",
                timeout=1.0 if code == "timeout" else BOUND,
            )
        assert time.monotonic() - began < BOUND
    assert caught.value.code == code, caught.value
    if code == "timeout":
        assert "answer within 1 s" in str(caught.value), caught.value
        with pytest.raises(AgentError) as caught:
            agent.disconnect("asked")
        assert caught.value.code == "no-arm"


def test_closing_a_connection_does_not_wait_for_a_server_that_reads_nothing(agent: Agent) -> None:
    with RogueServer(rogue.postgres(rogue.silent, b"WITNESS")) as server:
        agent.connect("left", connection("postgres", server.port))
        began = time.monotonic()
        agent.disconnect("left")
        assert time.monotonic() - began < BOUND / 2


# ── slices ────────────────────────────────────────────────────────────────────────────────────────────────────────────

HOLDS: dict[str, Talk] = {
    "silent": rogue.silent,
    "drips": rogue.dripping(b"2\0\0\0\4" + rogue.LONG_ROW[len(rogue.COLUMNS) :]),
    "floods": rogue.flooding(rogue.ROW, b"2\0\0\0\4"),
}
SHAPES: dict[str, Changes] = {
    "one connection": {},
    "polled": {"connections": 3, "threads": 1},
    "each its own": {"per_request": True},
    "each its own, polled": {"connections": 3, "threads": 1, "per_request": True},
}


def outcome(agent: Agent) -> tuple[int | None, str]:
    """Operations of a slice (None: it failed), and its error."""
    try:
        answer = agent.slice("load", 0.3)
    except AgentError as error:
        return None, str(error)
    return answer.operations, answer.first_error


@pytest.mark.parametrize("hold", HOLDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_slice_ends_although_an_answer_never_does(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, hold: str, shape: str
) -> None:
    ask(agent, {"type": "program", "name": "held"})
    ask(agent, {"type": "transaction", "name": "t", "weight": 1})
    ask(agent, {"type": "statement", "transaction": "t", "sql": "SELECT 1", "parameters": ""})
    with RogueServer(rogue.postgres(HOLDS[hold], b"")) as server:
        agent.connect("load", connection("postgres", server.port) | SHAPES[shape])
        monkeypatch.setenv(deadlines.VARIABLE, "0.25")
        began = time.monotonic()
        counted, error = outcome(agent)
        # If each operation has its own connection, losing it may fail the operation and not the slice.
        assert counted in ((0, None) if "each its own" in shape else (None,)), error
        assert "within 1 s of the slice's end" in error or "nothing has come" in error or "connection lost" in error, (
            error
        )
        assert time.monotonic() - began < BOUND
    assert ask(agent, {"type": "program", "name": "after"}) == {"type": "ok"}


# ── the Java agent ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def jdbc(require_java: None) -> Iterator[Agent]:
    del require_java
    with Agent(java.command(), env=java.OTHERS) as started:
        yield started


def told(engine: str, port: int, require: Require) -> JdbcConnection:
    driver = find("newest", engine)
    try:
        driver.jars()
    except MissingServer as error:
        require(None, str(error))
    told_ = drivers.address(driver, Target("127.0.0.1", port, "d"), TlsRequest())
    return drivers.connection(driver, told_, "me", Secret("p"))


JDBC: dict[str, tuple[str, Talk]] = {
    "postgresql drips an error": ("postgresql", rogue.dripping(b"E\0\0\x4e\x20", after=1)),
    "postgresql drips parameters": (
        "postgresql",
        rogue.dripping(b"R\0\0\0\x08\0\0\0\0", rogue.PARAMETERS, after=1),
    ),
    "mysql drips its greeting": ("mysql", rogue.dripping(b"\xf0\x0f\0\0\x0a")),
    "mysql drips the login": ("mysql", rogue.mysql(rogue.dripping(b"\xf0\xff\0\x02\xff\x01\x01"))),
    "mariadb drips its greeting": ("mariadb", rogue.dripping(b"\xf0\x0f\0\0\x0a")),
    "firebird drips its accept": (
        "firebird",
        rogue.dripping(struct.pack("!5I", 98, 0xFFFF800D, 1, 5, 60_000), after=1),
    ),
}


@pytest.mark.parametrize("what", JDBC)
def test_a_drivers_login_that_drips_ends_at_its_deadline(jdbc: Agent, require: Require, what: str) -> None:
    engine, talk = JDBC[what]
    with RogueServer(talk) as server:
        error = refused(jdbc, "held", told(engine, server.port, require) | {"timeout": 2})
    assert error.code == "timeout", error
    assert "login within 2 s" in str(error), error


@pytest.mark.parametrize("hold", ["drips", "floods"])
def test_a_drivers_query_and_slice_end_at_their_deadline(
    jdbc: Agent, require: Require, monkeypatch: pytest.MonkeyPatch, hold: str
) -> None:
    way = {
        "drips": rogue.dripping(b"1\0\0\0\4" + b"2\0\0\0\4" + rogue.LONG_ROW),
        "floods": rogue.flooding(rogue.NOTICE),
    }[hold]
    with RogueServer(rogue.postgres(way, b"WITNESS")) as server:
        jdbc.connect("asked", told("postgresql", server.port, require))
        began = time.monotonic()
        with pytest.raises(AgentError) as caught:
            jdbc.query("asked", "SELECT 'WITNESS'", timeout=1.0)
        assert caught.value.code == "timeout", caught.value
        with pytest.raises(AgentError) as caught:
            jdbc.query("asked", "SELECT 1")
        assert caught.value.code == "no-arm"
        ask(jdbc, {"type": "program", "name": "held"})
        ask(jdbc, {"type": "transaction", "name": "t", "weight": 1})
        ask(jdbc, {"type": "statement", "transaction": "t", "sql": "SELECT 'WITNESS'", "parameters": ""})
        jdbc.connect("load", told("postgresql", server.port, require) | {"prepared": False})
        monkeypatch.setenv(deadlines.VARIABLE, "0.5")
        try:
            answer = jdbc.slice("load", 0.3)
            ended = "driver" if (answer.operations, answer.errors) == (0, 1) else str(answer)
        except AgentError as error:
            ended = error.code
        # "driver": it gave up before the deadline.
        assert ended in ("timeout", "connect", "driver")
        assert time.monotonic() - began < 2 * BOUND


# ── what Python reads itself ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_dripping_or_endless_mysql_greeting_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ciphercost.engines._mysql.greeting.SECONDS", 0.5)
    for talk in (rogue.dripping(b"\xf0\x0f\0\0\x0a"), rogue.flooding(b"x", b"\xff\xff\xff\0\x0a"), rogue.silent):
        with RogueServer(talk) as server:
            began = time.monotonic()
            assert greeting("127.0.0.1", server.port) == Greeting()
            assert time.monotonic() - began < BOUND
    with RogueServer(rogue.mysql(rogue.silent)) as server:
        monkeypatch.setattr("ciphercost.engines._mysql.greeting.SECONDS", 5.0)
        assert greeting("127.0.0.1", server.port).version == "8.4.3"


@pytest.mark.usefixtures("short")
def test_a_server_that_keeps_sending_does_not_block_the_byte_count() -> None:
    with (
        RogueServer(rogue.dripping()) as server,
        Relay("127.0.0.1", server.port) as relay,
        socket.create_connection(("127.0.0.1", relay.port)),
    ):
        wait_for("the server's first byte", lambda: relay.received > 0)
        began = time.monotonic()
        # Between two checks something always arrives: PAUSE is as long as the wait between them.
        with contextlib.suppress(AgentError):
            round_trips._settled(relay)
        assert time.monotonic() - began < BOUND


# ── the command ───────────────────────────────────────────────────────────────────────────────────────────────────────

DRIPS: dict[str, tuple[str, Talk]] = {
    "postgresql": ("postgresql", rogue.dripping(b"N\0\0\xe0\0", after=1)),
    "postgresql, TLS": ("postgresql", rogue.dripping(rogue.HANDSHAKE, after=1)),
    "postgresql, a witness": ("postgresql", rogue.postgres(rogue.dripping(rogue.LONG_ROW), b"SELECT")),
    "mysql": ("mysql", rogue.mysql(rogue.dripping(b"\xf0\xff\0\x02\xff\x01\x01"))),
    "mysql, TLS": ("mysql", rogue.mysql(rogue.dripping(rogue.HANDSHAKE[1:]))),
    "mysql, its greeting": ("mysql", rogue.dripping(b"\xf0\x0f\0\0\x0a")),
    "firebird": ("firebird", rogue.dripping(struct.pack("!5I", 9, 0, 0, 0, 60_000), after=1)),
    "web": ("url", rogue.http(rogue.dripping(rogue.HEAD + b"X-Long: "))),
}
TARGETS = {"postgresql": "postgresql:tls", "mysql": "mysql:tls", "firebird": "firebird:wire-crypt", "url": "url:tls"}
# A server that does not even encrypt is sent nothing more, so it can drip no further.
WORDS = ("did not finish", "nothing at", "no MySQL", "says no", "ciphercost sent nothing unencrypted to the server")


def command(asked: str, engine: str, port: int) -> list[str]:
    place = f"{engine}://me@127.0.0.1:{port}/d"
    pair = [f"http://localhost:{port}/", f"https://localhost:{port}/"] if engine == "url" else [place]
    if asked == "prove":
        return ["prove", pair[-1]]
    named = [word for url in pair for word in ("--url", url)]
    return ["run", TARGETS[engine], *named, "--quick", "--time", "4s", "--no-progress"]


@pytest.mark.parametrize("what", DRIPS)
@pytest.mark.parametrize("asked", ["prove", "run"])
def test_the_command_ends_if_the_server_drips(tmp_path: Path, asked: str, what: str) -> None:
    engine, talk = DRIPS[what]
    passwords = {"PGPASSWORD": "p", "MYSQL_PWD": "p", "ISC_PASSWORD": "p"}
    with RogueServer(talk) as server:
        began = time.monotonic()
        done = warm.run(
            command(asked, engine, server.port),
            cwd=tmp_path,
            env={**os.environ, **passwords, deadlines.VARIABLE: "1"},
            timeout=240,
        )
        took = time.monotonic() - began
    output = " ".join((done.stdout + done.stderr).split())
    print(f"{took:.1f} s, status {done.returncode}: {output}")
    assert done.returncode == 1, output
    assert "Traceback" not in output
    assert any(word in output for word in WORDS), output
    assert took < 2 * BOUND, output


def test_a_server_that_blocks_one_witness_gets_no_further_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise `prove` would take a deadline for each witness of each arm."""
    for seconds in (SHORT, "10"):
        monkeypatch.setenv(deadlines.VARIABLE, seconds)
        with RogueServer(DRIPS["postgresql, a witness"][1]) as server, Agent() as agent:
            pair = ServerPair({"plain": connection("postgres", server.port)}, [], "canary", by_arm={"plain": None})  # type: ignore[dict-item]
            proofs, _ = witnesses.prove(engines.get("postgresql"), mechanisms.get("tls"), pair, agent, 1)
        if proofs[0].passed:  # on a busy machine the login may take longer than the short deadline
            break
    assert [proof.passed for proof in proofs] == [True, False], proofs
    assert proofs[-1].code == "timeout"
