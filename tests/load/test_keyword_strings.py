"""libpq's keyword strings mean what they mean to psql, which is asked."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import warm
from ciphercost.load.connection_string import libpq
from ciphercost.load.connection_string.keywords import as_url
from ciphercost.model.errors import UsageError

ONLY_HERE = {name: value for name, value in os.environ.items() if not name.startswith("PG")}


def of_psql(text: str) -> str:
    """What psql says of a host that nobody has: it names the host and the port that it read, or what it could not read."""
    done = subprocess.run(["psql", text], env=ONLY_HERE, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done
    return done.stderr


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("hostaddr=127.0.0.1 port=1", "127.0.0.1:1"),
        (" hostaddr = 127.0.0.1  port = '1' ", "127.0.0.1:1"),
        ("port=2 hostaddr='127.0.0.2' dbname='a b\\'c'", "127.0.0.2:2"),
        (r"hostaddr=127.0.\0.1 port=3 user=a\ b", "127.0.0.1:3"),
        ("port=1 hostaddr=127.0.0.1 port=4", "127.0.0.1:4"),
    ],
)
def test_it_is_read_as_psql_reads_it(text: str, place: str) -> None:
    (parsed,) = libpq.read(as_url(text)).places
    assert f"{parsed.host}:{parsed.port}" == place
    host, _, port = place.partition(":")
    printed = of_psql(text)
    assert f'"{host}"' in printed
    assert f"port {port}" in printed


@pytest.mark.parametrize("text", ["host=h junk", "host=h dbname='open", "=h", "host=h 'x'=1"])
def test_what_psql_can_not_read_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"NAME=VALUE|unknown parameter|scheme"):
        libpq.read(as_url(text))


@given(some.dictionaries(some.sampled_from(("dbname", "user", "application_name")), some.text(min_size=1), min_size=1))
@settings(deadline=None)
def test_any_value_in_quotes_arrives(values: dict[str, str]) -> None:
    quoted = {name: value.replace("\\", "\\\\").replace("'", "\\'") for name, value in values.items()}
    url = as_url(" ".join(f"{name}='{value}'" for name, value in quoted.items()))
    assert {name: value.text for name, value in libpq._of_url(url).items()} == values


@pytest.mark.parametrize(
    "text", ["postgresql:tls", "postgresql://h/d?sslmode=require", "https://h/?a=b", "jdbc:postgresql://h/?a=b"]
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert as_url(text) == text


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (("prove", "host=h password=geheim"), "set PGPASSWORD"),
        (("prove", "hostaddr=127.0.0.1 port=1 sslmode=verify-ful"), "did you mean 'verify-full'"),
        (("prove", "hostaddr=127.0.0.1 port=1 sslcert=x"), "sslcert x: no such file"),
        (("clean", "--url", "hostaddr=127.0.0.1 port=1 nonsense=1"), "nonsense"),
        (("run", "postgresql:tls", "--url", "host=h sslkey=x"), "sslkey=x: a key without its certificate"),
        (("run", "mysql:tls", "--url", "host=h"), "must begin with mysql://"),
        (("prove", "localhost:5432"), "write e.g. postgresql://localhost:5432"),
        (("clean", "--url", "localhost:5432"), "such as postgresql://HOST:PORT"),
        (("run", "postgresql:tls", "--url", "localhost:5432"), "write postgresql://USER@HOST:PORT/"),
    ],
)
def test_every_command_that_takes_an_address_reads_or_refuses_it(
    tmp_path: Path, argv: tuple[str, ...], expected: str
) -> None:
    done = warm.run(argv, cwd=tmp_path)
    assert (done.returncode, expected in done.stderr) == (2, True), done.stderr
    assert "geheim" not in done.stdout + done.stderr
