"""A web site of the user's own, with what real sites have: tokens, logins, redirects, compression, and other manners."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import cases
import odd_sites
import warm
from ciphercost.host import pki
from odd_sites import Asked, Page, html, pair
from test_real import ciphercost, measured, result_of

QUICK = ("--quick", "--time", "3s", "--no-latency", "--no-progress", "--clients", "2")
SECRETS = ("s3cr3t-cookie", "s3cr3t-word")
HEADERS = "# of a test user\nCookie: session=s3cr3t-cookie\n"
BEARER = ("--header", "Authorization: Bearer s3cr3t-word")


@pytest.fixture(scope="module")
def site_pki(tmp_path_factory: pytest.TempPathFactory) -> pki.Pki:
    return pki.Pki(tmp_path_factory.mktemp("certificates"), "ecdsa-p256", owner=(os.geteuid(), os.getegid()))


def run(page: Page, site_pki: pki.Pki, cwd: Path, *more: str, close: bool = False) -> tuple[int, str, odd_sites.Pair]:
    """(exit status, what it printed, the site)."""
    with pair(page, (site_pki.certificate, site_pki.key), close=close) as site:
        plain, encrypted = site.urls
        argv = ("run", "url:tls", "--url", plain, "--url", encrypted, "--ca", str(site_pki.ca), *QUICK, *more)
        # No spec holds a header's value.
        done = (ciphercost if BEARER[0] in more and BEARER[1] in more else measured)(*argv, cwd=cwd)
    return done.returncode, " ".join((done.stderr + done.stdout).split()).replace("=== ", ""), site


def private_page(asked: Asked) -> bytes:
    """A page for those who are logged in, with a token in it."""
    return odd_sites.token(asked) if b"200 OK" in odd_sites.with_cookie(asked) else odd_sites.with_cookie(asked)


def test_a_page_with_a_token_and_a_login_is_measured_and_no_secret_is_kept(
    tmp_path: Path, site_pki: pki.Pki, record_property: cases.Record
) -> None:
    (tmp_path / "headers.txt").write_text(HEADERS)
    given = ("--header", "@headers.txt", *BEARER, "--json", "out.json")
    status, words, site = run(private_page, site_pki, tmp_path, *given)
    assert status == 0, words
    (cell,) = result_of(tmp_path)["cells"]
    assert (cell["engine"], cell["place"]) == ("url", "localhost")
    assert cell["conditions"]["headers"] == "Cookie, Authorization"
    assert "localhost with TLS" in words
    compared = "the page differs from one request to the next (a token, the time)"
    assert compared in words
    cases.record(record_property, "pages", "a token and a login", f"a cost; {compared} …")
    assert "Cookie, Authorization; in the plain arm anyone" in words
    for server in site:
        assert server.asked > 20
        assert all(request.headers["cookie"] == "session=s3cr3t-cookie" for request in server.seen)
    (directory,) = (tmp_path / "runs").iterdir()
    kept = b"".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())
    assert b"Authorization: \\u2026" in kept or "Authorization: …".encode() in kept
    assert b"headers.txt" in kept
    for secret in SECRETS:
        assert secret.encode() not in kept
        assert secret not in words
    assert "localhost with TLS" in ciphercost("report", str(directory), "--format", "md", cwd=tmp_path).stdout
    ciphercost("report", str(directory), "--format", "html", "-o", "page.html", cwd=tmp_path)
    assert "localhost with TLS" in " ".join((tmp_path / "page.html").read_text().split())


def test_a_site_that_closes_and_compresses_gets_a_line_for_each(
    tmp_path: Path, site_pki: pki.Pki, record_property: cases.Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    once, tries = warm._once, list[list[str]]()

    def counted(words: list[str], *where: Any) -> subprocess.CompletedProcess[str]:
        if "--print-spec" not in words:
            tries.append(words)
        return once(words, *where)

    monkeypatch.setattr(warm, "_once", counted)
    status, words, site = run(odd_sites.compressed, site_pki, tmp_path, close=True)
    assert status == 0, words
    closes, compressed = (
        "the server closes every connection after one request",
        "a browser gets this page compressed (gzip, ",
    )
    assert f"{closes} (in the plain and encrypted arms)" in words
    assert compressed in words
    cases.record(record_property, "pages", "closes each connection, gzip on", f"{closes} …; {compressed}…")
    assert "add --header 'Accept-Encoding: gzip'" in words
    assert sum("accept-encoding" in request.headers for server in site for request in server.seen) == len(tries)


def test_a_storm_on_a_site_counts_those_that_come_back(tmp_path: Path, site_pki: pki.Pki) -> None:
    given = ("--storm", "100", "--rate", "100", "--json", "out.json")
    status, words, _ = run(odd_sites.steady, site_pki, tmp_path, *given)
    assert status == 0, words
    storm = result_of(tmp_path)["cells"][0]["storm"]
    assert "back_last" in storm["ratios"]
    for arm in storm["arms"].values():
        assert arm["wanted"] > 0 == arm.get("refused", 0)


REFUSED: dict[str, tuple[Page, tuple[str, ...], tuple[str, ...]]] = {
    # page, options, words
    "http to https": (odd_sites.to_https, (), ("so it enforces encryption and has no plain arm", "measure a copy")),
    "another path": (
        odd_sites.to_en,
        (),
        ("Name the final address in both: --url http://localhost:", "/en/ --url https://"),
    ),
    "a login": (odd_sites.login, (), ("clients without a session to /accounts/login/?next=/", "--header @FILE")),
    "401": (odd_sites.with_cookie, (), ("the server answers 401. The page needs a login: give --header 'Cookie: …'",)),
    "sizes": (odd_sites.two_sizes, (), ("bytes in the plain arm and", "but within an arm its sizes differ by 0")),
    "types": (odd_sites.two_types, (), ("content type application/json in the plain arm, text/html",)),
    "HTTP/1.1 only": (odd_sites.steady, ("--set", "http=2"), ("not that version of HTTP: remove --set http=2",)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_site_that_can_t_be_measured_gets_what_to_do(
    tmp_path: Path, site_pki: pki.Pki, what: str, record_property: cases.Record
) -> None:
    page, options, wanted = REFUSED[what]
    status, words, _ = run(page, site_pki, tmp_path, *options)
    assert status == 1
    assert "this cell has no number" in words
    for text in wanted:
        assert text in words
    cases.record(record_property, "pages", what, " … ".join(wanted))


# ── prove ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_tls_port_is_no_control(tmp_path: Path, site_pki: pki.Pki, record_property: cases.Record) -> None:
    with pair(odd_sites.steady, (site_pki.certificate, site_pki.key)) as site:
        plain, encrypted = site.urls
        alone = ciphercost("prove", encrypted, "--ca", str(site_pki.ca), cwd=tmp_path)
        both = ciphercost("prove", encrypted, plain, "--ca", str(site_pki.ca), cwd=tmp_path)
    words = " ".join(alone.stdout.split())
    assert (alone.returncode, both.returncode) == (0, 0), alone.stdout + both.stdout
    assert "enforces" not in words
    control = f"Port {site.encrypted.port} takes TLS, so an unencrypted request to it is no control"
    assert control in words
    cases.record(
        record_property, "pages", "the TLS port, asked unencrypted", control.replace(f"{site.encrypted.port}", "8443")
    )
    assert f"ciphercost prove http://localhost:PORT/ https://localhost:{site.encrypted.port}/" in words
    assert "ENCRYPTED, proven by client;" in words
    assert "the wire witness had no control" in words
    assert "ENCRYPTED, proven by every witness" in " ".join(both.stdout.split())


@pytest.mark.parametrize(
    ("page", "options"),
    [
        (odd_sites.chunked, ()),
        (odd_sites.nothing, ()),
        (odd_sites.steady, ("--header", "User-Agent: Mozilla/5.0 (X11; Linux)")),
        (odd_sites.with_cookie, ("--header", "@headers.txt", *BEARER)),
    ],
    ids=["chunked", "204", "user-agent", "cookie"],
)
def test_a_witness_sees_any_page(tmp_path: Path, site_pki: pki.Pki, page: Page, options: tuple[str, ...]) -> None:
    (tmp_path / "headers.txt").write_text(HEADERS)
    with pair(page, (site_pki.certificate, site_pki.key)) as site:
        done = ciphercost("prove", *site.urls, "--ca", str(site_pki.ca), *options, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "proven by every witness" in " ".join(done.stdout.split())
    assert not any(secret in done.stdout + done.stderr for secret in SECRETS)


def test_only_a_site_has_two_addresses(tmp_path: Path) -> None:
    done = ciphercost("prove", "postgresql:tls", "nginx:tls", cwd=tmp_path)
    assert done.returncode == 2
    assert "prove checks one target" in done.stderr


# ── requests of one's own ─────────────────────────────────────────────────────────────────────────────────────────────


def by_language(asked: Asked) -> bytes:
    return html(f"{asked.headers.get('accept-language', 'none')} {os.urandom(8).hex()}" + odd_sites.WORDS)


def test_requests_with_headers_of_their_own(tmp_path: Path, site_pki: pki.Pki) -> None:
    (tmp_path / "requests.http").write_text(
        "\\set item random(1, 9)\nGET /item?of=:item\n    Accept-Language: de\n    X-Item: :item\nGET /\n"
    )
    status, words, site = run(by_language, site_pki, tmp_path, "--sql", "requests.http")
    assert status == 0, words
    items = [request for request in site.plain.seen if request.path.startswith("/item")]
    assert len(items) > 10
    assert all(item.headers["x-item"] == item.path[-1] and item.headers["accept-language"] == "de" for item in items)
    assert all("x-item" not in request.headers for request in site.plain.seen if request.path == "/")
