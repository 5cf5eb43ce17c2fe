"""`predict --url` on servers like a user's own: a whole answer, and one clear line for each server that can't be read."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner, Result

import counted_servers
import odd_sites
import records
from ciphercost import commands
from ciphercost.engines._mysql import greeting
from ciphercost.measure import server_load
from ciphercost.model.errors import UsageError
from conftest import RequireServer
from counted_servers import Counted
from listening import Listener
from odd_sites import OddSite


class Silent(Listener):
    """Accepts connections and never says a word."""

    def serve(self, connection: socket.socket) -> None:
        while connection.recv(4096):
            pass


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(records.unpacked("postgresql-tls", tmp_path_factory.mktemp("record")))


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory, require_server: RequireServer) -> Iterator[Counted]:
    """Without pg_stat_statements in its database at first."""
    require_server("postgresql")
    with counted_servers.postgresql(tmp_path_factory.mktemp("server")) as server, pytest.MonkeyPatch.context() as patch:
        for variable, value in server.environment.items():
            patch.setenv(variable, value)
        yield server


@pytest.fixture
def under_load(counted: Counted) -> Iterator[None]:
    """Operations one after the other, until the test ends."""
    ends = threading.Event()

    def work() -> None:
        while not ends.is_set():
            counted.load(300)

    worker = threading.Thread(target=work)
    worker.start()
    yield
    ends.set()
    worker.join()


def predict(*argv: str) -> Result:
    return CliRunner().invoke(commands.cli, ("predict", *argv))


def refusal(*argv: str) -> str:
    """The one line of a refusal."""
    done = predict(*argv)
    assert isinstance(done.exception, UsageError), done.output or done.exception
    (line,) = str(done.exception).splitlines()
    return line


def unreadable(url: str) -> str:
    """The one line for a server that can't be read, whatever a run has measured."""
    with pytest.raises(UsageError) as error:
        server_load.read(url, 1.0, needs_cpu=False)
    (line,) = str(error.value).splitlines()
    return line


@pytest.mark.usefixtures("under_load")
def test_it_reads_the_load_and_says_what_it_took_from_where(record: str, counted: Counted) -> None:
    done = predict(record, "--url", counted.url, "--for", "1s", "--format", "json")
    assert done.exit_code == 0, done.output
    assert done.stderr == f"reading the counters of PostgreSQL at localhost:{counted.fields.port} twice, 1 s apart\n"
    (prediction,) = json.loads(done.stdout)
    assert prediction["operation"] == "statement"
    sources = {source["figure"]: source for source in prediction["sources"]}
    assert {name: source["value"] for name, source in sources.items() if name != "seconds"} == {
        name: value
        for name, value in prediction["load"].items()
        if value is not None and name not in ("round_trips", "units")
    }
    assert sources["seconds"]["value"] >= 0.9
    assert "pg_stat_statements" in sources["rate"]["source"]
    assert sources["cpu_us"]["source"].startswith(f"/proc: process {counted.pid} ")
    assert 0 < prediction["utilisation"] < prediction["utilisation_encrypted"]["high"]


@pytest.mark.usefixtures("under_load")
def test_what_is_given_overrides_it_and_the_text_says_so(record: str, counted: Counted) -> None:
    done = predict(record, "--url", counted.url, "--for", "1s", "--cpu", "2ms", "--cores", "64")
    assert done.exit_code == 0, done.output
    assert "an operation is a statement:\n" in done.stdout
    assert re.search(r"- 2,000 µs .*: --cpu$", done.stdout, re.MULTILINE)
    assert "- 64 cores: --cores\n" in done.stdout
    assert "operations/s: statements: calls in pg_stat_statements" in done.stdout


@pytest.mark.usefixtures("under_load")
@pytest.mark.parametrize(
    ("change", "back", "why"),
    [
        (
            "REVOKE EXECUTE ON FUNCTION pg_stat_statements FROM PUBLIC",
            "GRANT EXECUTE ON FUNCTION pg_stat_statements TO PUBLIC",
            "pg_stat_statements can't be read \\(permission denied for function pg_stat_statements",
        ),
        (
            "ALTER SYSTEM SET pg_stat_statements.track = 'none'; SELECT pg_reload_conf()",
            "ALTER SYSTEM RESET pg_stat_statements.track; SELECT pg_reload_conf()",
            "pg_stat_statements.track is none",
        ),
    ],
)
def test_statements_that_can_not_be_read_are_replaced_by_transactions_and_that_is_said(
    record: str, counted: Counted, change: str, back: str, why: str
) -> None:
    counted.administrate(*change.split("; "))
    try:
        done = predict(record, "--url", counted.url, "--for", "1s")
    finally:
        counted.administrate(*back.split("; "))
    assert done.exit_code == 0, done.output
    text = " ".join(done.stdout.split())
    assert "an operation is a transaction:" in text
    assert "xact_commit + xact_rollback in pg_stat_database" in text
    assert re.search(f"! {why}.*, so an operation is a transaction", text), text


def test_statistics_that_are_off_are_one_clear_line(record: str, counted: Counted) -> None:
    counted.administrate(
        "ALTER SYSTEM SET track_counts = off", "DROP EXTENSION pg_stat_statements", "SELECT pg_reload_conf()"
    )
    try:
        line = refusal(record, "--url", counted.url, "--for", "1s")
    finally:
        counted.administrate(
            "ALTER SYSTEM RESET track_counts", "CREATE EXTENSION pg_stat_statements", "SELECT pg_reload_conf()"
        )
    for fact in ("track_counts is off", "pg_stat_statements is not installed", "--rate, --cpu", "without --url"):
        assert fact in line


def test_a_wrong_password_is_one_clear_line(record: str, counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "another")
    line = refusal(record, "--url", counted.url)
    assert "can't log in to PostgreSQL at localhost:" in line
    assert "password authentication failed" in line
    assert "does PGPASSWORD " in line
    assert "another" not in line


def test_encryption_that_the_url_asks_for_is_not_dropped(record: str, counted: Counted) -> None:
    line = refusal(record, "--url", f"{counted.url}?sslmode=require")
    assert "The server does not offer TLS here" in line


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me@localhost:{}/shop?sslmode=disable",
        "postgresql://me@localhost:{}/shop",
        "mysql://me@localhost:{}/",
        "valkey://localhost:{}",
        "http://localhost:{}/nginx_status",
    ],
)
def test_a_server_that_never_answers_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("CIPHERCOST_TIMEOUT", "0.3")
    monkeypatch.setattr(greeting, "SECONDS", 0.3)
    with Silent() as server:
        line = unreadable(url.format(server.port))
    assert line.startswith("--url: "), line
    assert re.search(r"within 0\.[36] s", line) or "timed out" in line or "no answer from" in line


@pytest.mark.parametrize(
    "url", ["postgresql://me@localhost:1/shop", "http://localhost:1/nginx_status", "redis://localhost:1"]
)
def test_no_server_is_one_clear_line(url: str) -> None:
    line = unreadable(url)
    assert line.startswith("--url: ")
    assert "localhost:1" in line or "127.0.0.1:1" in line
    assert "refused" in line


PAGES: dict[str, tuple[Callable[[odd_sites.Asked], bytes], str]] = {
    "another page": (
        odd_sites.steady,
        r"the page \(text/html, [\d,]+ bytes\) is not nginx's stub_status; write the address",
    ),
    "a redirection": (odd_sites.login, r"the server answers 302 \(to /accounts/login"),
    "nothing": (odd_sites.nothing, r"the page \(no type, 0 bytes\) is not nginx's stub_status"),
}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_without_counters_is_one_clear_line(page: str) -> None:
    served, words = PAGES[page]
    with OddSite(served) as site:
        line = unreadable(f"http://localhost:{site.port}/")
    with pytest.raises(UsageError, match=words):
        raise UsageError(line)
