"""`prove --client DRIVER URL`: what a driver really does with an application's string, on real servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

import steady
from ciphercost.load import drivers
from ciphercost.model.errors import CiphercostError, RunError, UsageError
from ciphercost.model.own_tls import NONE, OwnTls
from ciphercost.model.proof_row import ProofRow
from ciphercost.model.secret import reveal
from ciphercost.runs import prove_driver_url
from ciphercost.runs.prove_driver_url import examine
from conftest import Require, RequireServer
from test_drivers import Site, site

VERIFIED, NAMED = "and the server VERIFIED", "certificate authority and host name"
UNVERIFIED = "ENCRYPTED, NOT VERIFIED: anyone on the path can impersonate the server"
STRINGS = {
    "psycopg": [
        ("?sslmode=verify-full&sslrootcert={ca}", NAMED),
        ("?sslmode=verify-ca&sslrootcert={ca}", "certificate authority only"),
        ("?sslmode=require&channel_binding=require", "channel binding: the login succeeds only"),
        ("?sslmode=require", UNVERIFIED),
        ("", "it sends an impostor an unencrypted login"),
        ("?sslmode=disable", "UNENCRYPTED"),
    ],
    "asyncpg": [
        ("?sslmode=verify-full&sslrootcert={ca}", NAMED),
        ("?sslmode=verify-ca&sslrootcert={ca}", "certificate authority only"),
        ("?sslmode=require", UNVERIFIED),
        ("", UNVERIFIED),
        ("?sslmode=disable", "UNENCRYPTED"),
    ],
    "pymysql": [
        ("?ssl_ca={ca}&ssl_verify_identity=true", NAMED),
        ("?ssl_ca={ca}&ssl_verify_cert=true", "certificate authority only"),
        ("", UNVERIFIED),
        ("?ssl_disabled=true", "UNENCRYPTED"),
    ],
    "pgx": [
        ("?sslmode=verify-full&sslrootcert={ca}", NAMED),
        ("?sslmode=verify-ca&sslrootcert={ca}", "certificate authority only"),
        ("?sslmode=require&channel_binding=require", "channel binding: the login succeeds only"),
        ("?sslmode=require", UNVERIFIED),
        ("", "it sends an impostor an unencrypted login"),
        ("?sslmode=disable", "UNENCRYPTED"),
    ],
    "lib-pq": [
        ("?sslmode=verify-full&sslrootcert={ca}", NAMED),
        ("?sslmode=verify-ca&sslrootcert={ca}", "certificate authority only"),
        ("", UNVERIFIED),
        ("?sslmode=disable", "UNENCRYPTED"),
    ],
    "go-mysql": [
        ("?tls=skip-verify", UNVERIFIED),
        ("?tls=preferred", UNVERIFIED),
        ("", "UNENCRYPTED"),
    ],
    "mysql-connector": [
        ("?ssl_ca={ca}&ssl_verify_cert=true&ssl_verify_identity=true", NAMED),
        (
            "?ssl_ca={ca}&ssl_verify_cert=true&use_pure=true",
            "a certificate of any authority that the system trusts, for any name",
        ),
        ("", UNVERIFIED),
        ("?ssl_disabled=true", "UNENCRYPTED"),
    ],
    "node-postgres": [
        ("?sslmode=verify-full&sslrootcert={ca}", NAMED),
        ("?uselibpqcompat=true&sslmode=verify-ca&sslrootcert={ca}", "certificate authority only"),
        ("?sslmode=no-verify", UNVERIFIED),
        ("", "UNENCRYPTED"),
    ],
    "postgres.js": [
        ("?sslmode=require", UNVERIFIED),
        ("?sslmode=prefer", UNVERIFIED),
        ("", "UNENCRYPTED"),
    ],
    "mysql2": [
        ('?ssl={{"ca":"{pem}","verifyIdentity":true}}', NAMED),
        ('?ssl={{"ca":"{pem}"}}', "certificate authority only"),
        ('?ssl={{"rejectUnauthorized":false}}', UNVERIFIED),
        ("", "UNENCRYPTED"),
    ],
}
"""By driver: the end of a string, and words of the verdict."""


@pytest.fixture(scope="module")
def postgresql(require_server: RequireServer) -> Iterator[Site]:
    yield from site("postgresql", require_server)


@pytest.fixture(scope="module")
def mariadb(require_server: RequireServer) -> Iterator[Site]:
    yield from site("mariadb", require_server)


@pytest.fixture
def home(name: str, request: pytest.FixtureRequest, require: Require, monkeypatch: pytest.MonkeyPatch) -> Site:
    driver = drivers.named(name)[-1]
    try:
        drivers.language(driver.language).fetch(driver)
    except CiphercostError as error:
        require(None, str(error))
    found: Site = request.getfixturevalue("postgresql" if "postgresql" in driver.engines else "mariadb")
    for variable in ("PGPASSWORD", "MYSQL_PWD"):
        monkeypatch.setenv(variable, reveal(found.fields.password))
    return found


def url_of(home: Site, end: str) -> str:
    fields = home.fields
    pem = quote(json.dumps(Path(home.ca).read_text())[1:-1])
    scheme = "postgresql" if home.name == "postgresql" else "mysql"
    return f"{scheme}://{fields.user}@localhost:{fields.port}/{fields.database}{end.format(ca=home.ca, pem=pem)}"


@pytest.mark.parametrize(
    ("name", "end", "words"), [(name, end, words) for name, cases in STRINGS.items() for end, words in cases]
)
def test_a_string_means_what_its_driver_does_with_it(name: str, end: str, words: str, home: Site) -> None:
    for _ in range(steady.TRIES):
        row = ProofRow(target=url_of(home, end))
        proven, text = examine(url_of(home, end), name, NONE, row)
        flat = " ".join(text.split())
        if "could not determine" not in flat:  # because the driver was slow
            break
    assert words in flat
    assert proven is (VERIFIED in flat)
    assert proven is (row.verdict == "proven")
    assert drivers.named(name)[-1].version in flat


@pytest.mark.parametrize("name", ["psycopg"])
def test_a_keyword_string_goes_to_the_driver_as_it_is(home: Site) -> None:
    fields = home.fields
    text = f"host=localhost port={fields.port} user={fields.user} dbname={fields.database} sslmode=require"
    assert UNVERIFIED in " ".join(examine(text, "psycopg", NONE)[1].split())


@pytest.mark.parametrize(
    ("name", "end", "words"),
    [
        ("psycopg", "?sslmod=require", 'invalid URI query parameter: "sslmod"'),
        ("asyncpg", "?sslmode=bogus", "`sslmode` parameter must be one of"),
        ("pymysql", "?ssl_caa=x", "unexpected keyword argument 'ssl_caa'"),
        ("pymysql", "?local_infile=1", "local_infile in a URL is not allowed"),
        ("mysql-connector", "?ssl_caa=x", "ssl_caa"),
        ("mysql2", "?ssl=bogus", "Unknown SSL profile 'bogus'"),
        ("postgres.js", "?target_session_attrs=bogus", "target_session_attrs bogus is not supported"),
    ],
)
def test_what_the_driver_does_not_know_is_its_own_error(name: str, end: str, words: str, home: Site) -> None:
    with pytest.raises(UsageError) as caught:
        examine(url_of(home, end), name, NONE)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["psycopg"])
def test_a_wrong_password_says_where_it_comes_from(home: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PGPASSWORD")
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    with pytest.raises(RunError, match="No password was given"):
        examine(url_of(home, "?sslmode=require"), "psycopg", NONE)


@pytest.mark.parametrize(
    ("text", "client", "own", "words"),
    [
        ("postgresql://me:secret@localhost/x", "psycopg", NONE, "set PGPASSWORD"),
        ("postgresql://me@localhost/x?password=secret", "psycopg", NONE, "set PGPASSWORD"),
        ("mysql://me@localhost/x?ssl_key_password=secret", "pymysql", NONE, "set MYSQL_PWD"),
        ("postgresql://a,b/x", "psycopg", NONE, "must name one host"),
        ("postgresql://a:b/x", "psycopg", NONE, "must name one host"),
        ("postgresql://a/x?hostaddr=127.0.0.1", "psycopg", NONE, "must name one host"),
        ("postgresql:///x?host=/run/postgresql", "psycopg", NONE, "must name one host"),
        ("postgresql://a/x", "pymysql", NONE, "pymysql speaks to mysql and mariadb, not to postgresql"),
        ("postgresql://a/x", "psycopg@1", NONE, "known: 3.2"),
        ("postgresql://a/x", "psycopg", OwnTls(cert="c.pem", key="k.pem"), "the string decides what psycopg does"),
    ],
)
def test_what_can_not_be_examined_is_refused_before_anything_starts(
    text: str, client: str, own: OwnTls, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prove_driver_url, "DriverProbe", None)
    with pytest.raises(UsageError) as caught:
        examine(text, client, own)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)
