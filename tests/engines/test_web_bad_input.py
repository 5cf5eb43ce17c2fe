"""Web servers that misbehave: each failure is refused with a clear message or counted by kind, and never averaged
in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bad_servers import BODY, GOOD, Answer, BadServer, mostly, response, says
from ciphercost import commands, engines
from ciphercost.engines.url import Url, pair
from ciphercost.host import pki
from ciphercost.load.agent import Agent
from ciphercost.model import errors
from ciphercost.model.connection import Changes, Connection
from ciphercost.model.errors import UsageError
from conftest import RequireServer
from test_real import ciphercost, measured, result_of
from web_servers import program, site

LOAD = ("--quick", "--time", "3s", "--no-latency", "--no-progress", "--clients", "2")
EARLY = says(response(length=len(BODY) + 4100), close=True)
SHORT = says(response(length=100))
LOOP = says(response("302 Found", "Location: /", body=b""))
TO_HTTPS = says(response("301 Moved Permanently", "Location: https://localhost/", body=b""))
GARBAGE = says(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", close=True)

NOT_FOUND = says(response("404 Not Found"))
BUSY = mostly(10, response("503 Busy"))


Certificates = tuple[tuple[Path, Path], str]
"""Certificate, key, and the authority that signed it."""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    issued = pki.Pki(tmp_path_factory.mktemp("certificates"), "ecdsa-p256", owner=(os.geteuid(), os.getegid()))
    return (issued.certificate, issued.key), str(issued.ca)


def words_of(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join((done.stdout + done.stderr).split())


def run(plain: BadServer, encrypted: BadServer, ca: str, cwd: Path, *more: str) -> subprocess.CompletedProcess[str]:
    urls = ("--url", f"http://localhost:{plain.port}/", "--url", f"https://localhost:{encrypted.port}/")
    return measured("run", "url:tls", *urls, *(("--ca", ca) if ca else ()), *LOAD, *more, cwd=cwd)


# ── behind a pair of URLs ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_correct_pair_is_measured(tmp_path: Path, certificates: Certificates) -> None:
    """The control for all tests below."""
    certificate, ca = certificates
    with BadServer(GOOD) as plain, BadServer(GOOD, certificate) as encrypted:
        done = run(plain, encrypted, ca, tmp_path, "--json", "out.json")
    assert done.returncode == 0, done.stdout + done.stderr
    cell = result_of(tmp_path)["cells"][0]
    assert cell["status"] == "ok"
    assert {arm: counts["errors"] for arm, counts in cell["arms"].items()} == {"plain": 0, "encrypted": 0}
    assert {(proof["arm"], proof["witness"]) for proof in cell["proofs"]} == {
        (arm, witness) for arm in ("plain", "encrypted") for witness in ("client", "wire")
    }
    assert "schema" not in done.stderr


REFUSED: dict[str, tuple[Answer, Answer, bool, str]] = {
    # plain arm, encrypted arm, whether --ca names the authority, words
    "closes early": (EARLY, EARLY, True, "ended 4100 bytes before the body does"),
    "closes early, encrypted": (GOOD, EARLY, True, "encrypted arm: GET /: the connection ended 4100 bytes"),
    "no answer": (GOOD, says(b"", close=True), True, "the connection ended before any response"),
    "length too short": (SHORT, SHORT, True, "unexpected bytes after the response"),
    "length too short, encrypted": (GOOD, SHORT, True, "encrypted arm: GET /: unexpected bytes after"),
    "404": (NOT_FOUND, NOT_FOUND, True, "the server answers 404"),
    "500, plain": (says(response("500 Oh")), GOOD, True, "plain arm: GET: the server answers 500"),
    "redirect loop": (LOOP, LOOP, True, "answers 302 (to /;"),
    "http to https": (TO_HTTPS, GOOD, True, "plain arm: GET: the server answers 301 (to https://localhost/;"),
    "garbage": (GARBAGE, GARBAGE, True, "not an HTTP response"),
    "self-signed": (GOOD, GOOD, False, "signed by an unknown authority"),
    "different pages": (GOOD, says(response(body=BODY + b"!")), True, "do not return the same rows"),
    "one in ten fails": (
        BUSY,
        BUSY,
        True,
        "failed before any load; the first error: status-503",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_errors_from_the_start_are_refused_with_a_clear_message(
    tmp_path: Path, certificates: Certificates, what: str
) -> None:
    plain_answer, encrypted_answer, names_ca, words = REFUSED[what]
    certificate, ca = certificates
    with BadServer(plain_answer) as plain, BadServer(encrypted_answer, certificate) as encrypted:
        done = run(plain, encrypted, ca if names_ca else "", tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert words in words_of(done)
    assert "FAILED" in done.stdout or "UNPROVEN" in done.stdout
    assert "95 % CI" not in done.stdout
    assert "user and database" not in words_of(done)


def test_swapped_ports_are_refused(tmp_path: Path, require_server: RequireServer) -> None:
    with (
        site(require_server("nginx"), tmp_path, {"/index.html": 500}) as home,
        home.started({"certificate": "ecdsa-p256"}) as server,
    ):
        ports = server.connection().port, server.other_ports["tls"]["port"]
        argv = ("--ca", str(home.secrets / "tls-ecdsa-p256" / "ca.pem"), *LOAD)
        for (clear, tls), words in (
            ((ports[0], ports[0]), "does not speak TLS on this port"),
            ((ports[1], ports[1]), "takes TLS, so it is no http address"),
            ((ports[1], ports[0]), "encrypted arm: the server does not speak TLS"),
        ):
            urls = ("--url", f"http://localhost:{clear}/", "--url", f"https://localhost:{tls}/")
            done = ciphercost("run", "url:tls", *urls, *argv, cwd=tmp_path)
            assert done.returncode == 1
            assert words in words_of(done)
            assert "95 % CI" not in done.stdout


# ── under load ────────────────────────────────────────────────────────────────────────────────────────────────────────

WARMED = 150
"""Requests after which a server begins to fail: more than the proofs and the comparison of both arms need."""


@pytest.mark.parametrize(
    ("words", "close", "kind"),
    [
        (response("503 Service Unavailable"), False, "status-503"),
        (response(length=len(BODY) + 10), True, "closed-early"),
    ],
)
def test_failures_under_load_are_counted_and_reported(
    tmp_path: Path, certificates: Certificates, words: bytes, close: bool, kind: str
) -> None:
    certificate, ca = certificates
    failing = mostly(10, words, close=close, after=WARMED)
    with BadServer(failing) as plain, BadServer(failing, certificate) as encrypted:
        done = run(plain, encrypted, ca, tmp_path, "--max-errors", "50%", "--json", "out.json")
    assert done.returncode == 0, done.stdout + done.stderr
    cell = result_of(tmp_path)["cells"][0]
    for arm in cell["arms"].values():
        # One in ten, once a server has had as many requests as that; a slow machine's slices are of few.
        asked = arm["errors"] + arm["operations"]
        assert 0.05 * (asked - WARMED) < arm["errors"] < 0.15 * asked + 20
        assert set(arm["error_kinds"]) == {kind}
    warning = next(entry["text"] for entry in cell["warnings"] if entry["code"] == "errors")
    assert "operations failed and are not counted" in warning
    assert errors.kind(kind) in warning


def test_a_server_that_dies_costs_its_cell_and_no_other(tmp_path: Path, certificates: Certificates) -> None:
    certificate, ca = certificates
    died = threading.Event()

    def dying(connection: object, number: int) -> bool:
        if number == 3 * WARMED:
            died.set()
        return GOOD(connection, number)  # type: ignore[arg-type]

    with BadServer(GOOD) as plain, BadServer(dying, certificate) as mortal, BadServer(GOOD, certificate) as other:

        def kill() -> None:
            died.wait(60)
            mortal.stop()

        killer = threading.Thread(target=kill)
        killer.start()
        lines = ['mode = "quick"', "sessions = 1", "time = 2.0", "slice_seconds = 0.05", "latency = false"]
        for server in (mortal, other):
            urls = f"http://localhost:{plain.port}/ https://localhost:{server.port}/"
            lines += [
                "[[cells]]",
                'engine = "url"',
                'mechanism = "tls"',
                'workload = "page"',
                f'url = "{urls}"',
                f'ca = "{ca}"',
            ]
        (tmp_path / "two.toml").write_text("\n".join(lines))
        done = ciphercost("run", "two.toml", "--no-progress", "--json", "out.json", cwd=tmp_path)
        killer.join()
    assert died.is_set()
    assert done.returncode == 1, done.stdout + done.stderr
    first, second = result_of(tmp_path)["cells"]
    # This test is not about how quiet the machine is.
    assert (first["status"], second["status"]) in (("failed", "ok"), ("failed", "no-steady-state"))
    assert "refused" in first["reason"] or "connect" in first["reason"]
    assert not first.get("overhead")


# ── behind the agent alone ────────────────────────────────────────────────────────────────────────────────────────────

KINDS: dict[str, tuple[Answer, str, str]] = {
    "closes early": (EARLY, "closed-early", "ended 4100 bytes before the body does"),
    "says nothing": (says(b"", close=True), "closed-early", "before any response"),
    "length too short": (SHORT, "malformed", "unexpected bytes after the response"),
    "404": (says(response("404 Not Found")), "status-404", "GET /: 404 Not Found"),
    "500": (says(response("500 Oh Dear")), "status-500", "500 Oh Dear"),
    "redirect loop": (LOOP, "status-302", "to / (redirects are not followed)"),
    "http to https": (TO_HTTPS, "status-301", "to https://localhost/ (redirects are not followed)"),
    "garbage": (GARBAGE, "malformed", "not an HTTP"),
    "two lengths": (says(response("200 OK", "Content-Length: 7")), "malformed", ""),
    "endless head": (says(b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 20_000, close=True), "malformed", ""),
}


@pytest.mark.parametrize("secure", [False, True], ids=["clear", "tls"])
@pytest.mark.parametrize("what", KINDS)
def test_every_failure_has_its_kind(certificates: Certificates, what: str, secure: bool) -> None:
    answer, kind, words = KINDS[what]
    certificate, ca = certificates
    fields: Changes = {"tls": "verify-full", "tls_ca": ca} if secure else {"tls": "off"}
    with BadServer(answer, certificate if secure else None) as server, Agent() as agent:
        program(agent, "GET /")
        for connections, threads in ((1, 1), (4, 1)):
            at = Connection(driver="http", host="127.0.0.1", port=server.port, tls_server_name="localhost")
            agent.connect("x", at | fields | {"connections": connections, "threads": threads})
            done = agent.slice("x", 60, discard=0, operations=20)
            assert (done.operations, done.rows, done.errors) == (0, 0, 20)
            assert done.error_kinds == f"{kind}=20"
            assert words in done.first_error


def test_failed_requests_are_not_measured(certificates: Certificates) -> None:
    with BadServer(mostly(10, response("503 Busy"))) as server, Agent() as agent:
        program(agent, "GET /")
        agent.connect("x", Connection(driver="http", host="127.0.0.1", port=server.port, tls="off"))
        done = agent.slice("x", 60, discard=0, operations=500)
        assert (done.operations, done.rows, done.errors, done.error_kinds) == (450, 450, 50, "status-503=50")


def test_a_server_that_closes_after_each_answer_gets_a_new_connection() -> None:
    for words in (response(), response("200 OK", "Connection: close")):
        with BadServer(says(words, close=True)) as server, Agent() as agent:
            program(agent, "GET /")
            agent.connect("x", Connection(driver="http", host="127.0.0.1", port=server.port, tls="off"))
            done = agent.slice("x", 60, discard=0, operations=100)
            assert (done.operations, done.errors) == (100, 0)
            assert done.connects >= 99


# ── usage ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

PAIR = ("--url", "http://localhost:1/", "--url", "https://localhost:1/")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("url:tls",), "give --url http://… --url https://…"),
        (("url:tls", *PAIR[:2]), "--url https://… is missing"),
        (("url:tls", *PAIR[2:]), "--url http://… is missing"),
        (
            ("url:tls", "--url", "ftp://localhost/", *PAIR[2:]),
            "--url ftp://localhost/: not a web address",
        ),
        (("url:tls", *PAIR[:2], *PAIR[:2]), "--url: two URLs with http://"),
        (("url:tls", *PAIR, *PAIR[:2]), "--url is given 3 times"),
        (("url:tls", "--url", "http://u:secret@localhost/", *PAIR[2:]), "put 'Authorization: Basic …' into a file"),
        (("url:tls", "--url", "http://localhost:0/", *PAIR[2:]), "write http://HOST/…"),
        (("url:tls", "--url", "http://localhost:99999/", *PAIR[2:]), "with a port up to 65535"),
        (("url:tls", "--url", "http:///", *PAIR[2:]), "write http://HOST/…"),
        (("url:tls", "--url", "http://localhost/#top", *PAIR[2:]), "no client sends #top to a server"),
        (("url:tls", *PAIR, "--rows", "5"), "remove --rows"),
        (("url:tls", *PAIR, "--set", "resumption=tickets"), "resumption=tickets: url has no such option"),
        (("url:tls", *PAIR, "--set", "certificate=rsa4096"), "your server presents its own certificate"),
        (("url@2:tls", *PAIR), "leave version and --bindir out"),
        (("nginx:tls", "--rows", "10"), "remove --rows"),
        (("nginx:tls", "--csv", "own.csv"), "nginx has no tables"),
        (("nginx:tls", "--workload", "point-select"), "workload point-select does not run on nginx"),
        (("postgresql:tls", "--workload", "file"), "workload file does not run on postgresql"),
        (("nginx:tls", "--set", "http=4"), "write --set http=1"),
        (("nginx@1.22:tls", "--set", "http=2"), "can't speak unencrypted HTTP/2"),
        (("nginx:tls", "--set", "resumption=on"), "resumption=on: nginx has no such option"),
        (("mysql:tls", "--set", "resumption=tickets"), "resumption=tickets: mysql has no such option"),
        (("nginx:tls", *PAIR[:2]), "write url:tls instead of nginx:tls"),
        (("apache:tls", *PAIR), "run url:tls --url http://localhost:1/ --url https://localhost:1/"),
        (("url:tls", "--url", "http://localhost:1/#/cart", *PAIR[2:]), "no client sends #/cart to a server"),
        (("url:tls", *PAIR, "--header", "Host: secret"), "header Host can't be set"),
        (("url:tls", *PAIR, "--header", "@none"), "--header @none: can't read it"),
        (("url:tls", *PAIR, "--header", "A: secret", "--print-spec"), "a spec holds no header's value"),
        (("postgresql:tls", "--header", "A: secret"), "only web servers take headers"),
        (("nginx:tls", "--set", "size=0"), "size must be at least 1"),
        (("nginx:tls", "--set", "version=1.2", "--set", "group=x25519mlkem768"), "no post-quantum groups"),
        (
            ("apache:tls", "--set", "version=1.2", "--set", "group=p384", "--set", "certificate=ecdsa"),
            "the curve of an ECDSA certificate",
        ),
        (("nginx:fscrypt",), "nginx has no mechanism 'fscrypt'"),
        (("nginx:tls", "--cache", "cold"), "nginx stores no data"),
    ],
    ids=lambda value: "-".join(value).replace("/", "_").replace("--", "") if isinstance(value, tuple) else "",
)
def test_bad_usage_is_one_clear_message(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    argv: tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.csv").write_text("a,b\n1,2\n")
    monkeypatch.setattr(sys, "argv", ["ciphercost", "run", *argv, *LOAD[:-2]])
    with pytest.raises(SystemExit) as status:
        commands.main()
    printed = capsys.readouterr().err
    assert words in printed
    assert status.value.code == 2
    assert len(printed.strip().splitlines()) == 1
    assert not (tmp_path / "runs").exists()
    assert not re.search("secret(?!-insert|-read)", printed), "two workloads have that word in their names"


def test_an_unavailable_server_gives_one_reason_and_no_table(tmp_path: Path) -> None:
    done = ciphercost("run", "nginx@0.9:tls", *LOAD, cwd=tmp_path)
    assert done.returncode == 1
    # In the answer at the top, and nowhere else.
    assert words_of(done).count("no nginx 0.9 was found") == 1
    assert "this cell has no number" in done.stdout
    assert "one experiment" not in done.stdout


def test_an_unknown_host_is_bad_usage(tmp_path: Path) -> None:
    done = ciphercost("run", "url:tls", "--url", "http://nobody.invalid/", *PAIR[2:], *LOAD, cwd=tmp_path)
    assert done.returncode == 2
    assert "--url: can't find the host 'nobody.invalid'" in done.stderr


@pytest.mark.parametrize(
    ("url", "plain", "encrypted"),
    [
        ("https://Shop.example/a%20b?c=d", "http://shop.example:80/a%20b?c=d", "https://shop.example:443/a%20b?c=d"),
        ("https://shop.example:8443", "http://shop.example:8443/", "https://shop.example:8443/"),
        ("http://shop.example", "http://shop.example:80/", "https://shop.example:80/"),
        ("http://[::1]:81/ https://[::1]/x", "http://::1:81/", "https://::1:443/x"),
        (
            "http://münchen.example/ü",
            "http://xn--mnchen-3ya.example:80/%C3%BC",
            "https://xn--mnchen-3ya.example:80/%C3%BC",
        ),
    ],
)
def test_one_address_implies_the_other(url: str, plain: str, encrypted: str) -> None:
    assert tuple(f"{address.scheme}://{address.host}:{address.port}{address.path}" for address in pair(url)) == (
        plain,
        encrypted,
    )


def test_the_host_keeps_the_name_in_the_url() -> None:
    assert [address.authority for address in pair("http://[::1]:81/ https://[::1]/x")] == ["[::1]:81", "[::1]"]
    with pytest.raises(UsageError, match="give --url http"):
        pair("")
    engine = engines.get("url")
    assert isinstance(engine, Url)
    assert "such page" in engine.hint("status-404")


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = {thread for thread in threading.enumerate() if thread.is_alive()}
    yield
    assert not [thread for thread in threading.enumerate() if thread not in before and not thread.daemon]
