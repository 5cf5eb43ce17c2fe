"""nginx, Apache, Caddy and HAProxy: starting them, their TLS as requested and logged, and the same bytes on every port."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from types import SimpleNamespace

import pytest

from ciphercost.engines import Server
from ciphercost.engines._web import family, log
from ciphercost.engines._web.family import OURS, WebServer
from ciphercost.host import run_ownership
from ciphercost.host.pki import CERTIFICATES
from ciphercost.host.ports import free_port
from ciphercost.host.tls_names import GROUPS, POST_QUANTUM_KEYS, SUITES_13, suite
from ciphercost.host.tls_names import POST_QUANTUM as POST_QUANTUM_GROUPS
from ciphercost.host.versions import version_key
from ciphercost.load.agent import Agent
from ciphercost.model.errors import AgentError, MissingServer, RefusedSetting, RunError, UsageError
from conftest import RequireServer
from processes import marked, opened, wait_for
from web_servers import CANARY, SERVERS, TLS, Site, program, site

EC = "ecdsa-p256"
WITH_TLS = {"certificate": EC}
POST_QUANTUM = (3, 5)
"""First OpenSSL with X25519MLKEM768."""
SEVERAL = ("nginx", "apache")
"""They start several processes."""
BOTH = {0, 1} & os.sched_getaffinity(0) or None


@pytest.fixture(scope="module", params=SERVERS)
def home(
    request: pytest.FixtureRequest, require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    name, _, version = request.param.partition("@")
    with site(require_server(name, version), tmp_path_factory.mktemp("logs")) as home:
        yield home


@pytest.fixture(scope="module")
def server(home: Site) -> Iterator[Server]:
    """With TLS, resumption off."""
    with home.started(WITH_TLS) as started:
        yield started


def ports(of: Server) -> dict[str, int]:
    assert isinstance(of, WebServer)
    return {"plain": of.port} | {name: fields["port"] for name, fields in of.other_ports.items()}


def arms(of: Server) -> list[str]:
    """The ports by name, with `encrypted` for that of TLS."""
    return ["encrypted" if name == "tls" else name for name in ports(of)]


def largest(home: Site) -> str:
    """A document of several TLS records, or the largest one that the server can send."""
    return "/deep/er/page.html" if home.engine.largest_document else "/100KB"


def tree(pid: int) -> list[int]:
    """Return a process and its descendants."""
    children: list[str] = []
    with contextlib.suppress(OSError):  # it has ended
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(descendant for child in children for descendant in tree(int(child)))]


# ── starting ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_runs_unprivileged_on_loopback_only(home: Site, server: Server) -> None:
    uid = (run_ownership.server_user() or (os.geteuid(), 0))[0]
    processes = tree(server.pid)
    uids = set()
    for pid in processes:
        with contextlib.suppress(FileNotFoundError):  # a worker that has ended
            uids.add(Path(f"/proc/{pid}").stat().st_uid)
    assert uids == {uid}
    held = {name for pid in processes for name in opened(pid)}
    tables = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    listening = {
        line.split()[1]
        for table in tables
        for line in table
        if line.split()[3] == "0A" and f"socket:[{line.split()[9]}]" in held
    }
    assert listening == {f"0100007F:{port:04X}" for port in ports(server).values()}
    assert server.library.startswith("crypto/tls of Go 1." if home.engine.name == "caddy" else "OpenSSL 3.")
    assert all(str(server.pid) in (path / "cgroup.procs").read_text().split() for path in server.cgroups)
    assert home.installation.version.startswith(("1.", "2.", "3."))


def test_it_is_gone_after_stop(home: Site) -> None:
    with home.started(WITH_TLS, cpus=BOTH) as started:
        if home.engine.name in SEVERAL:
            wait_for("two workers", lambda: len(tree(started.pid)) > 2)
        processes = tree(started.pid)
    wait_for("their end", lambda: not any(run_ownership.start_time(pid) for pid in processes))


def test_it_is_gone_when_the_run_is_killed_by_force(home: Site, tmp_path: Path) -> None:
    words = "\n".join(
        (
            "import signal, sys; from pathlib import Path",
            "from ciphercost.engines import Installation",
            "from web_servers import site",
            f"with site(Installation(*{tuple(getattr(home.installation, name) for name in home.installation.__struct_fields__)!r}),",
            f"          Path({str(tmp_path)!r}), {{'/1KB': 1000}}) as home, home.started(dict(certificate='rsa2048')) as server:",
            "    print(home.supervisor.run_id, server.pid, home.directory.parent, flush=True); signal.pause()",
        )
    )
    path = os.pathsep.join(sys.path)
    with subprocess.Popen(
        [sys.executable, "-c", words], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    ) as victim:
        assert victim.stdout is not None
        run_id, pid, scratch = victim.stdout.readline().split()
        assert run_ownership.start_time(int(pid))
        victim.kill()
    wait_for("no process of the run", lambda: not marked(run_id))
    wait_for("none of its files", lambda: not Path(scratch).exists())


def test_a_server_that_does_not_start_reports_the_reason(home: Site) -> None:
    key = dict.fromkeys(("group", "security_level", "client_ca"), "") | {"resumption": "off"}
    key |= {"certificate": "/nonexistent/server.pem", "key": "/nonexistent/server.key"}
    if home.engine.name == "haproxy":
        pytest.skip("ciphercost reads these files itself; test_haproxy has another reason")
    with (
        pytest.raises(RunError, match=r"(?s)did not start \(log: .*/nonexistent/server"),
        home.started(settings={f"{OURS}{name}": value for name, value in key.items()}),
    ):
        pass


def test_another_process_on_the_port_leads_to_another_attempt(home: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        offered = iter((port, port))  # the same port twice is not accepted
        monkeypatch.setattr(family, "free_port", lambda _: next(offered, None) or free_port())
        with home.started(WITH_TLS) as started:
            given = set(ports(started).values())
            assert len(given) == (3 if home.engine.sendfile else 2)
            assert port not in given


def test_an_unknown_version_is_an_error(home: Site) -> None:
    with pytest.raises(MissingServer, match="no such version"):
        home.engine.find("0.9")
    with pytest.raises(MissingServer, match="no '"):
        home.engine.find(bindir="/usr/share")
    with pytest.raises(UsageError, match="already run use url:tls"):
        home.engine.find(url="https://localhost/")


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_port_answers_with_the_same_bytes(home: Site, server: Server) -> None:
    large = largest(home)
    asked = (
        "GET /1KB",
        f"GET {large}",
        "GET /empty",
        f"HEAD {large}",
        "GET /deep/er/page.html?x=1",
        "POST /1KB a=1&b=2",
    )
    seen = {}
    with Agent() as agent:
        program(agent, *asked, f'POST {large} {{"a": 1}}')
        for arm in arms(server):
            answer = agent.connect(arm, home.fields(server, arm, WITH_TLS))
            assert answer.encrypted == (arm == "encrypted")
            done = agent.slice(arm, 60, discard=0, operations=3)
            assert (done.errors, done.first_error, done.rows) == (0, "", 3 * 7)
            seen[arm] = done.checksum
    assert len(set(seen.values())) == 1


def test_both_versions_of_http_answer_the_same_on_every_port(home: Site, server: Server) -> None:
    if home.installation.version.startswith("1.22"):
        with pytest.raises(UsageError, match="can't speak unencrypted HTTP/2"):
            home.engine.workload_fields(home.installation.version, {"http": 2}, encrypted=True)
        return
    seen = set()
    for version, arm in itertools.product((1, 2), arms(server)):
        with Agent() as agent:
            large = largest(home)
            program(agent, "GET /1KB", f"GET {large}", "GET /empty", f"HEAD {large}", "POST /1KB a=1&b=2")
            fields = home.fields(server, arm, WITH_TLS) | home.engine.workload_fields(
                home.installation.version, {"http": version}, encrypted=arm == "encrypted"
            )
            answer = agent.connect("x", fields)
            assert answer.application == ("h2" if version == 2 else "http/1.1")
            assert home.engine.sessions(server, agent, "x") == [
                ["t", answer.protocol, answer.cipher] if arm == "encrypted" else ["f", "", ""]
            ]
            done = agent.slice("x", 60, discard=0, operations=20)
            assert (done.rows, done.errors, done.first_error) == (20 * 5, 0, "")
            seen.add(done.checksum)
    assert len(seen) == 1


def test_a_missing_document_fails_with_its_status(home: Site, server: Server) -> None:
    with Agent() as agent:
        program(agent, "GET /nowhere")
        agent.connect("x", home.fields(server, "plain"))
        assert agent.query("x", "GET /nowhere")[0][0] == "404"
        done = agent.slice("x", 60, discard=0, operations=5)
        assert (done.operations, done.errors, done.error_kinds) == (0, 5, "status-404=5")
        assert "GET /nowhere: 404 Not Found" in done.first_error
        assert agent.query("x", "GET /ciphercost.txt")[0][3] == CANARY


def test_bodies_of_250_mb_stream(home: Site, server: Server) -> None:
    if home.engine.largest_document:
        return
    with Agent() as agent:
        program(agent, "GET /250MB")
        for arm in ("plain", "encrypted"):
            agent.connect(arm, home.fields(server, arm, WITH_TLS))
            done = agent.slice(arm, 120, discard=0, operations=2)
            assert (done.operations, done.errors) == (2, 0)
            assert done.bytes_received > 500_000_000
        status = Path(f"/proc/{agent.pid}/status").read_text()
        peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
        assert peak <= 64 * 1024


@pytest.mark.parametrize("arm", ["plain", "encrypted"])
def test_a_thousand_connections_lose_nothing(home: Site, arm: str) -> None:
    with (
        home.started(WITH_TLS, settings=home.engine.settings_for(1000), cpus=BOTH) as started,
        Agent(cpus=BOTH) as agent,
    ):
        program(agent, "GET /1KB")
        fields = home.fields(started, arm, WITH_TLS)
        agent.connect("many", fields | {"connections": 1000, "threads": 2})
        rows = home.engine.sessions(started, agent, "many", everywhere=True)
        assert len(rows) == 1000
        assert {row[0] for row in rows} == {"t" if arm == "encrypted" else "f"}
        done = agent.slice("many", 120, discard=0, operations=20_000)
        assert (done.operations, done.rows, done.errors, done.first_error) == (20_000, 20_000, 0, "")
        # The server closed no connection early; in TLS each would cost another handshake.
        assert done.connects == 0


# ── settings of the user's ────────────────────────────────────────────────────────────────────────────────────────────

GIVEN = {
    "nginx": (
        {"add_header": "X-Given yes", "ssl_buffer_size": "4k", "keepalive_requests": "77", "worker_processes": "1"},
        "yes",
    ),
    "apache": ({"Header": "set X-Given yes", "MaxKeepAliveRequests": "77", "SSLSessionCache": "none"}, "yes"),
    "haproxy": ({"tune.ssl.maxrecord": "1400", "option": "splice-auto"}, ""),
    "caddy": ({"read_timeout": "77s", "max_header_bytes": "7777"}, ""),
}
"""By server: settings of every place in its configuration, and a header that shows that they are in force."""


def test_a_users_settings_are_in_force_on_every_port(home: Site) -> None:
    settings, header = GIVEN[home.engine.name]
    with home.started(WITH_TLS, settings=settings) as started:
        assert started.directory is not None
        written = "\n".join(
            path.read_text() for path in started.directory.glob("*.*") if path.suffix in (".conf", ".cfg", ".json")
        )
        for name in settings:
            assert len(re.findall(rf'(?m)^\s*"?{re.escape(name)}\b', written)) == (
                2 if home.engine.name == "caddy" else 1
            )
        for name, port in ports(started).items():
            unverified = ssl._create_unverified_context()
            connection = (
                HTTPSConnection("127.0.0.1", port, context=unverified)
                if name == "tls"
                else HTTPConnection("127.0.0.1", port)
            )
            connection.request("GET", "/1KB")
            answer = connection.getresponse()
            assert (answer.status, len(answer.read())) == (200, 1000)
            assert answer.getheader("X-Given", "") == header
            connection.close()


WRONG = {
    "nginx": [({"ssl_buffer_size": "lots"}, "invalid value"), ({"ssl_bufer_size": "4k"}, "unknown directive")],
    "apache": [({"EnableMMAP": "maybe"}, "must be 'on' or 'off'"), ({"KeepAliveTimout": "4"}, "Invalid command")],
    "haproxy": [({"tune.foo": "1"}, "unknown keyword 'tune.foo'")],
    "caddy": [({"read_timeout": "soon"}, "invalid duration"), ({"nope": "1"}, "unknown field")],
}


def test_a_setting_that_the_server_refuses_is_named_in_its_own_words(home: Site) -> None:
    for settings, words in WRONG[home.engine.name]:
        with pytest.raises(RefusedSetting) as raised, home.started(WITH_TLS, settings=settings):
            pass
        (name,) = settings
        assert str(raised.value).startswith(f"--setting {name}={settings[name]}: ")
        assert words in str(raised.value)
        assert "\n" not in str(raised.value)
        assert str(home.directory.parent) not in str(raised.value)


# ── TLS ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def fits(version: str, certificate: str, group: str) -> bool:
    """Whether TLS allows it: before 1.3 the curve of a certificate must be among the client's groups, and none is
    post-quantum."""
    new = group in POST_QUANTUM_GROUPS or certificate in POST_QUANTUM_KEYS
    return version == "1.3" or not (new or (certificate == EC and group not in ("", "p256")))


def refused(home: Site, factors: dict[str, str]) -> bool:
    """Whether the engine refuses these factors, before it starts."""
    try:
        TLS.fits(home.engine, TLS.check(factors))
        home.engine.check_factors("tls", factors, "")
    except UsageError:
        return True
    return False


@pytest.mark.parametrize("certificate", CERTIFICATES)
def test_the_log_states_what_the_client_negotiated(home: Site, server: Server, certificate: str) -> None:
    old = server.library.startswith("OpenSSL") and version_key(server.library.split()[1])[:2] < POST_QUANTUM
    for group in ("", *GROUPS):
        if refused(home, {"certificate": certificate, "group": group}):
            continue
        if old and (group in POST_QUANTUM_GROUPS or certificate in POST_QUANTUM_KEYS):
            with (
                pytest.raises(RunError, match="did not start" if certificate in POST_QUANTUM_KEYS else GROUPS[group]),
                home.started({"certificate": certificate, "group": group}),
            ):
                pass
            continue
        # 0-RTT needs HTTP/3, which test_early_data has.
        resumptions = [choice for choice in home.engine.tls_resumption if choice != "0-rtt"] if group == "p256" else []
        for resumption in ("off", *resumptions):
            given = {"certificate": certificate, "group": group, "resumption": resumption}
            with home.started(given) as started, Agent() as agent:
                for version in ("1.2", "1.3"):
                    for cipher in SUITES_13:
                        factors = {**given, "version": version, "cipher": cipher}
                        if not fits(version, certificate, group):
                            with pytest.raises(UsageError, match=r"version=1\.2"):
                                TLS.fits(home.engine, TLS.check(factors))
                            continue
                        TLS.fits(home.engine, TLS.check(factors))
                        answer = agent.connect("x", home.fields(started, "encrypted", factors))
                        wanted = (f"TLSv{version}", suite(TLS.check(factors)))
                        assert (answer.protocol, answer.cipher) == wanted
                        assert answer.verified
                        assert answer.group == GROUPS.get(group, answer.group)
                        assert home.engine.sessions(started, agent, "x") == [["t", *wanted]]
                agent.connect("x", home.fields(started, "plain"))
                assert home.engine.sessions(started, agent, "x") == [["f", "", ""]]


CONNECTIONS, FEW = 400, 60


@pytest.mark.parametrize(("version", "http"), [("1.2", 1), ("1.3", 1), ("1.3", 2)])
@pytest.mark.parametrize("resumption", ["off", "tickets", "cache"])
def test_the_log_has_the_share_of_sessions_that_were_resumed(
    home: Site, resumption: str, version: str, http: int
) -> None:
    given = {"certificate": EC, "resumption": resumption}
    if http == 2 and home.engine.name in ("nginx", "caddy"):
        return  # nginx logs a connection's first request, whatever the version, and Caddy only HTTP/1.1's last
    if resumption not in ("off", *home.engine.tls_resumption):
        return
    count = FEW if resumption == "off" else CONNECTIONS
    with home.started(given) as started, Agent() as agent:
        program(agent, "GET /1KB")
        fields = home.fields(started, "encrypted", {"version": version, **given})
        fields |= {"http": "2"} if http == 2 else {}
        agent.connect("x", fields | {"connections": 2, "threads": 1, "per_request": True})
        done = agent.slice("x", 60, discard=0, operations=count)
        assert (done.operations, done.connects, done.errors) == (count, count, 0)
        total = [0, 0]

        def heard() -> bool:
            for number, more in enumerate(started.handshakes()):
                total[number] += more
            return sum(total) >= count

        wait_for("the log of every handshake", heard)
        # `connect` opens one connection as a trial and sends no request. HAProxy's counters have it, a log has not.
        full, resumed = total
        assert full + resumed == count + (home.engine.name == "haproxy")
        assert resumed == done.resumed
        assert resumed == 0 if resumption == "off" else resumed >= 0.99 * count


def test_a_client_that_may_resume_finds_nothing_to_resume_where_it_is_off(home: Site, server: Server) -> None:
    with Agent() as agent:
        program(agent, "GET /1KB")
        fields = home.fields(server, "encrypted", WITH_TLS) | {"resumption": True, "per_request": True}
        agent.connect("x", fields)
        assert agent.slice("x", 60, discard=0, operations=50).resumed == 0


def test_a_suite_that_the_certificate_can_not_serve_is_refused(home: Site, server: Server) -> None:
    with Agent() as agent, pytest.raises(AgentError, match="handshake"):
        agent.connect(
            "x",
            home.fields(server, "encrypted", {"version": "1.2", **WITH_TLS})
            | {"tls_ciphers": "ECDHE-RSA-AES256-GCM-SHA384"},
        )


def test_a_note_that_was_not_sent_is_not_found(home: Site, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(server, WebServer)
    monkeypatch.setenv("CIPHERCOST_TIMEOUT", "0.1")
    assert server.log.noted("0123456789abcdef", 1) == []


def test_a_line_of_the_log_may_come_as_late_as_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, now = tmp_path / "access.log", [0.0]
    path.write_text("ab\tTLSv1.3\tX\t.\t-\t-\n")

    def sleep(_: float) -> None:
        now[0] += 1.0
        if now[0] == 50.0:
            with path.open("a") as file:
                file.write("ab\tTLSv1.3\tX\t.\t-\t-\n")

    monkeypatch.setenv("CIPHERCOST_TIMEOUT", "30")
    monkeypatch.setattr(log, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    assert len(log.Log(path).noted("ab", 2)) == 2
    assert now[0] == 50.0
    assert log.Log(path).noted("cd", 1) == []
    assert now[0] == pytest.approx(50.0 + 2 * 30.0, abs=1.5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "-\tTLSv1.3\tTLS_AES_128_GCM_SHA256\tr\tNONE\tHTTP/3.0",
            log.Line("", "TLSv1.3", "TLS_AES_128_GCM_SHA256", resumed=True, http="HTTP/3.0"),
        ),
        ("ab\t-\t-\t-\t-\t-", log.Line("ab", "", "", resumed=False)),
        ("ab\t\t\t.\t\t", log.Line("ab", "", "", resumed=False)),
        ("-\tTLSv1.2\tX\tResumed\tNONE\t", log.Line("", "TLSv1.2", "X", resumed=True)),
        ("-\tTLSv1.2\tX\tInitial\tSUCCESS\t", log.Line("", "TLSv1.2", "X", resumed=False, client=True)),
        ("-\tTLSv1.2\tX\tInitial\tFAILED:expired\t", log.Line("", "TLSv1.2", "X", resumed=False)),
        ("half a li", None),
        ("", None),
    ],
)
def test_a_line_of_the_log(text: str, expected: log.Line | None) -> None:
    assert log.line(text) == expected


def test_a_log_is_read_once_line_by_line_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    read = log.Log(path)
    assert read.read() == []
    path.write_text("-\tTLSv1.3\tX\t.\t-\t-\n-\tTLSv1.3\tX")
    assert len(read.read()) == 1
    with path.open("a") as file:
        file.write("\tr\t-\t-\n\xff\n")
    assert [line.resumed for line in read.read()] == [True]
    assert (read.full, read.resumed) == (1, 1)
