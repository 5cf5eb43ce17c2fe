"""What a connection string asks of encryption becomes a factor of the cell, and a run explains the rest of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ciphercost import engines
from ciphercost.load.connection_string import libpq, option_files
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec
from ciphercost.plan import connection_strings
from ciphercost.plan.resolve import resolve


@pytest.fixture(autouse=True)
def nothing_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MYSQL_HOME", raising=False)
    monkeypatch.setattr(option_files, "SYSTEM_FILES", ())
    for name in (*libpq.ENVIRONMENT, "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)


def cell(query: str, engine: str = "postgresql", **more: object) -> CellSpec:
    url = f"{engine}://me@127.0.0.1/shop?{query}"
    return CellSpec(engine, str(more.pop("mechanism", "tls")), url=url, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("engine", "query", "verify"),
    [
        ("postgresql", "", "full"),
        ("postgresql", "sslmode=disable", "full"),
        ("postgresql", "sslmode=require", "require"),
        ("postgresql", "sslmode=verify-ca", "ca"),
        ("postgresql", "sslmode=verify-full", "full"),
        ("mysql", "ssl-mode=REQUIRED", "require"),
        ("mysql", "ssl-mode=VERIFY_CA", "ca"),
        ("mariadb", "ssl-verify-server-cert=1", "full"),
    ],
)
def test_a_run_verifies_what_the_string_verifies(engine: str, query: str, verify: str) -> None:
    assert resolve(cell(query, engine)).factors["verify"] == verify


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (cell("sslmode=require", factors={"verify": "full"}), "--set verify=full contradicts sslmode=require"),
        (cell("ssl_min_protocol_version=TLSv1.3", factors={"version": "1.3"}), "both limit the TLS version"),
        (cell("ssl_min_protocol_version=TLSv1.3", client="jdbc"), "only the Rust agent does"),
        (cell("sslmode=verify-full", mechanism="none"), "is measured over unencrypted connections"),
        (cell("sslrootcert=none.pem"), "none.pem: no such file"),
        (cell("sslcrl=list.pem&sslmode=verify-full"), "name the authority's certificate too"),
        (cell("host=a,b"), "names 2 servers"),
        (
            cell("host=/run/postgresql"),
            "name a host: postgresql://",
        ),
        (cell("socket=/run/s", "mysql", client="jdbc"), "remove socket, or --client jdbc"),
        (cell("socket=/run/s", "mysql", delay="10ms"), "--delay 10ms changes a network"),
        (cell("socket=/run/s", "mariadb", mtu=1500), "--mtu 1500 changes a network"),
        (cell("socket=s", "mariadb"), "the whole path of"),
        (cell("sslcert=a.pem"), "sslcert a.pem: no such file"),
        (cell("wire_crypt=Maybe", "firebird", mechanism="wire-crypt"), "known: Disabled, Enabled, Required"),
    ],
)
def test_a_string_that_a_run_can_not_honour_is_refused(spec: CellSpec, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(spec)
    assert words in str(caught.value)


def test_a_run_says_what_it_makes_of_the_rest() -> None:
    spec = cell("sslmode=prefer&application_name=shop&connect_timeout=3")
    lines = connection_strings.remarks(spec, engines.get("postgresql"))
    assert [line.partition(":")[0] for line in lines] == [
        "application_name=shop",
        "connect_timeout=3",
        "sslmode=prefer",
    ]
    assert "no effect on a run" in lines[-1]
    assert connection_strings.remarks(cell(""), engines.get("postgresql")) == []


def test_a_run_says_what_goes_by_a_unix_socket() -> None:
    mysql = engines.get("mysql")
    (_, line) = connection_strings.remarks(cell("socket=/run/s", "mysql"), mysql)
    assert re.match(r"the plain arm .*Unix socket, the encrypted arm by TCP", line)
    (_, line) = connection_strings.remarks(cell("socket=/run/s", "mysql", mechanism="none"), mysql)
    assert line.startswith("both arms ")
    assert line.endswith(" Unix socket")


def test_two_authorities_are_one_too_many(tmp_path: Path) -> None:
    for name in ("a.pem", "b.pem"):
        (tmp_path / name).touch()
    with pytest.raises(UsageError, match="names another authority"):
        resolve(cell(f"sslrootcert={tmp_path}/a.pem", ca=str(tmp_path / "b.pem")))
