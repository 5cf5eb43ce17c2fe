"""The counters of servers like a user's own, under a load of known size: what is read is right, and reading changes nothing."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

import counted_servers
from ciphercost.estimate import server_load as estimate
from ciphercost.estimate.server_load import Derived
from ciphercost.host.procfs import Sampler
from ciphercost.host.relay import Relay
from ciphercost.measure import server_load
from ciphercost.model.errors import UsageError
from ciphercost.model.own_tls import OwnTls
from ciphercost.model.server_counters import GivenLoad
from ciphercost.model.slices import AgentSlice
from conftest import RequireServer
from counted_servers import READS, Counted
from processes import wait_for

OPERATIONS = 3000
SERVERS: dict[str, Callable[[Path], AbstractContextManager[Counted]]] = {
    "postgresql": counted_servers.postgresql,
    "postgresql without pg_stat_statements": partial(counted_servers.postgresql, statements=False),
    "mysql": counted_servers.mysql,
    "mariadb": partial(counted_servers.mysql, name="mariadb"),
    "valkey": counted_servers.valkey,
    "redis": partial(counted_servers.valkey, name="redis"),
    "nginx": counted_servers.nginx,
}


STORES = ("valkey", "redis")
"""Servers that count their CPU time themselves."""
RESTARTED = ("nginx",)
"""Only a restart resets their counters."""
PAGED = ("mysql", "mariadb")
"""Servers that count the pages of their files."""


def only(*names: str) -> pytest.MarkDecorator:
    """Run the test with these servers alone."""
    return pytest.mark.parametrize("name", names, indirect=True, scope="module")


def all_but(*names: str) -> pytest.MarkDecorator:
    return only(*(server for server in SERVERS if server not in names))


@pytest.fixture(scope="module", params=SERVERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def counted(name: str, tmp_path_factory: pytest.TempPathFactory, require_server: RequireServer) -> Iterator[Counted]:
    require_server(name.partition(" ")[0])
    with SERVERS[name](tmp_path_factory.mktemp("server")) as server, pytest.MonkeyPatch.context() as patch:
        for variable, value in server.environment.items():
            patch.setenv(variable, value)
        yield server


def derived(
    counted: Counted, wait: Callable[[], object] = lambda: None, given: GivenLoad | None = None, url: str = ""
) -> Derived:
    """What is read if this happens between the two reads."""
    reading = server_load.read(
        url or counted.url, 60, own_tls=OwnTls(counted.ca if not url else ""), wait=lambda _: wait()
    )
    return estimate.derive(reading, given or GivenLoad())


def between(result: Derived) -> float:
    """Seconds between the reads."""
    (seconds,) = (source.value for source in result.sources if source.figure == "seconds")
    return seconds


def test_what_is_read_is_what_was_done(counted: Counted, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[AgentSlice] = []
    moments: list[tuple[float, float]] = []

    def note() -> None:
        moments.append((counted.cpu(), time.monotonic()))

    class Noted(Sampler):
        """Its counted part is longer than the load: on a busy machine it takes a while to look for the server's new processes."""

        def begin(self) -> None:
            assert not done
            super().begin()
            note()

        def stop(self) -> None:
            assert done
            super().stop()
            note()

    monkeypatch.setattr(server_load, "Sampler", Noted)
    result = derived(counted, lambda: done.append(counted.load(OPERATIONS, settled=True)))
    load, seconds = result.load, between(result)
    (spent, began), (in_all, ended) = moments
    busy = (in_all - spent) / (seconds if name in STORES else ended - began)
    assert load.rate == pytest.approx(OPERATIONS / seconds, rel=0.02)
    assert result.operation == {
        "postgresql": "statement",
        "mysql": "statement",
        "mariadb": "statement",
        "nginx": "request",
    }.get(name, "transaction" if "without" in name else "command")
    assert load.connections * seconds == pytest.approx(2, abs=0.01), "those of the load, none of ours"
    assert load.cpu_us * load.rate / 1e6 == pytest.approx(busy, rel=0.3, abs=0.1)
    assert load.cpu_us > 1
    if load.bytes_per_operation is not None:
        crossed = (done[0].bytes_sent + done[0].bytes_received) / OPERATIONS
        assert load.bytes_per_operation == pytest.approx(crossed, rel=0.02)
    assert (load.bytes_per_operation is None) == (name.startswith(("postgresql", "nginx")))
    assert {source.figure for source in result.sources} >= {"rate", "cpu_us", "connections", "seconds", "cores"}
    assert any("is a transaction" in note for note in result.notes) == ("without" in name)


def test_nothing_but_reading_was_asked(counted: Counted, name: str) -> None:
    given = GivenLoad(rate=1.0, cpu_us=1.0)
    with counted.log() as sent_by_then:
        derived(counted, given=given)
    sent = sent_by_then()
    assert len(sent) >= 2
    if name in STORES:
        assert {command.lower() for command in sent} <= {"hello", "info", "quit", "echo"}, sent  # `echo` ends the log
    elif name == "nginx":
        assert all(request.startswith("GET /nginx_status ") for request in sent), sent
    else:
        assert all(statement.startswith(READS) for statement in sent), sent
        assert any("READ ONLY" in statement for statement in sent)


def test_a_server_without_load_is_one_clear_line(counted: Counted) -> None:
    refusals: list[str] = []

    def refused() -> bool:
        for given in (GivenLoad(cpu_us=9.0), GivenLoad()):
            try:
                derived(counted, given=given)
            except UsageError as error:
                refusals.append(str(error))
            else:
                return False  # a session of an earlier test has only now reported what it did
        return True

    wait_for("a moment without load", refused)
    assert re.search(r"rate 0/s.*--for 60s.*--rate and --cpu$", refusals[-1])


@all_but(*RESTARTED)
def test_counters_that_were_reset_are_one_clear_line(counted: Counted) -> None:
    counted.load(100)

    def reset() -> None:
        counted.administrate(counted.reset)

    with pytest.raises(UsageError, match=r"were reset .*server was started again"):
        derived(counted, reset)


@only(*PAGED)
def test_pages_and_log_that_the_server_writes_are_read(counted: Counted) -> None:
    """FOR EXPORT writes the pages that the changes made dirty."""
    changes = ["UPDATE mine.precious SET word = CONCAT('w', RAND()) WHERE id = 1"] * 200
    statements = (*changes, "FLUSH TABLES mine.precious FOR EXPORT", "UNLOCK TABLES")
    result = derived(counted, lambda: counted.administrate(*statements), GivenLoad(cpu_us=9.0))
    units = result.load.units
    assert (
        round(units["page written"] * between(result), 6) >= 1
    )  # a whole number, which floats miss by their last digit
    assert units["kilobyte of log"] * between(result) > len(changes) / 10, "each change is more than 100 bytes of log"
    assert units["page read"] >= 0
    assert units.keys() <= result.read
    assert "Innodb_pages_written in SHOW GLOBAL STATUS" in {source.source for source in result.sources}


def test_what_the_user_gives_counts(counted: Counted) -> None:
    given = GivenLoad(rate=7.0, cpu_us=9.0, bytes_per_operation=5.0, connections=3.0, cores=2.0)
    result = derived(counted, lambda: counted.load(10), given)
    assert (result.load.rate, result.load.cpu_us, result.load.bytes_per_operation) == (7, 9, 5)
    assert [source.source for source in result.sources[:5]] == [
        "--rate",
        "--cpu",
        "--response",
        "--connections",
        "--cores",
    ]
    assert result.read == result.load.units.keys()
    assert (result.operation, result.notes) == ("", []), "the user says what an operation is"


@all_but(*STORES)
def test_a_server_whose_processes_are_not_seen_needs_cpu(counted: Counted) -> None:
    """A relay listens, as that of a container does."""
    _, _, rest = counted.url.partition("localhost:")
    with Relay(*counted.fields.address) as relay:
        url = counted.url.replace(f"localhost:{rest.partition('/')[0]}", f"localhost:{relay.port}")
        with pytest.raises(UsageError, match=rf"--cpu is needed: no process .* port {relay.port}\b"):
            derived(counted, url=url)


def test_statements_that_the_server_forgot_are_not_taken_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require_server: RequireServer
) -> None:
    """pg_stat_statements keeps some hundred; each of these is another one."""
    require_server("postgresql")
    with counted_servers.postgresql(tmp_path, settings={"pg_stat_statements.max": "100"}) as counted:
        monkeypatch.setenv("PGPASSWORD", "sparse")
        columns = [f"{n} AS n{n}" for n in range(20)]
        different = [
            f"SELECT {', '.join(columns[: 1 + n // 20])} FROM mine.precious WHERE {' OR '.join(['id = 1'] * (1 + n % 20))}"
            for n in range(400)
        ]
        result = derived(counted, lambda: counted.administrate(*different, settled=True))
    assert result.operation == "transaction"
    assert result.load.rate * between(result) == pytest.approx(400, rel=0.02)
    assert any("was full and forgot statements" in note for note in result.notes)
