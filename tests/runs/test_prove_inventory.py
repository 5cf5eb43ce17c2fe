"""`ciphercost prove -f`: targets of many kinds at once, and each row is right."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

import odd_sites
import warm
from conftest import RequireServer
from middle.chains import Chains
from stores import PASSWORD, store
from userservers import user_server

BODY = "<html>a page that is long enough to be recognised on the wire</html>"


class Line(NamedTuple):
    """A target, and what its row must say."""

    text: str
    verdict: str
    ok: bool
    reason: str = ""
    not_enforced: str = ""
    enforced: str = "unknown"


@pytest.fixture(scope="module")
def inventory(
    tmp_path_factory: pytest.TempPathFactory, require_server: RequireServer
) -> Iterator[tuple[Path, list[Line]]]:
    require_server("postgresql")
    require_server("valkey")
    place = tmp_path_factory.mktemp("inventory")
    chains = Chains(place / "chains")
    expired = chains.present("expired")
    (place / "pg").mkdir()
    (place / "kv").mkdir()
    with (
        user_server("postgresql", place / "pg") as sql,
        store("valkey", place / "kv") as kv,
        odd_sites.pair(lambda _: odd_sites.html(BODY), (expired.chain, expired.key)) as site,
    ):
        port = sql.fields.port
        ca = f"--ca {sql.ca}"
        full = f"{sql.url}?sslmode=verify-full&sslrootcert={sql.ca}"
        clear = "the server also accepts unencrypted connections"
        lines = [
            Line(full, "proven", True, "", clear, "no"),
            Line(f"{sql.url} {ca}", "proven", True, "", clear, "no"),
            Line(
                f"host=localhost port={port} user=ciphercost dbname=postgres sslmode=require",
                "not verified",
                True,
                "not verified",
                "man in the middle",
                "no",
            ),
            Line(
                f"{sql.url}?sslmode=verify-ca&sslrootcert={sql.ca}",
                "not verified",
                True,
                "name was not verified",
                "only its authority",
                "no",
            ),
            Line(
                f"{sql.url}?sslmode=prefer",
                "not enforced",
                False,
                "whoever is in the path",
                "sslmode=prefer of the string",
                "no",
            ),
            Line(f"{sql.url}?sslmode=disable", "not encrypted", False, "asks for no encryption"),
            Line(f"{sql.url} {ca} --server-name other.example", "not proven", False, "name mismatch"),
            Line(
                f"{sql.url}  # of an authority that this system does not know", "not proven", False, "unknown authority"
            ),
            Line(f"{site.encrypted_url} --ca {expired.ca}", "not proven", False, "has expired"),
            Line("postgresql://me@localhost:1/shop", "unreachable", False, "Connection refused"),
            Line(
                f"postgresql://ciphercost@localhost:{port},localhost:1/postgres?sslmode=require",
                "unreachable",
                False,
                "localhost:1, 2 servers in all: ",
            ),
            Line(f"{kv.encrypted} --ca {kv.ca}", "proven", True, "", "", "unknown"),
            Line(f"{sql.url}?sslmod=require", "refused", False, "did you mean 'sslmode'"),
        ]
        file = place / "targets.txt"
        file.write_text("# the servers of the shop\n\n" + "\n".join(line.text for line in lines) + "\n")
        os.environ.update(sql.environment | {"REDISCLI_AUTH": PASSWORD})
        try:
            yield file, lines
        finally:
            for name in (*sql.environment, "REDISCLI_AUTH"):
                del os.environ[name]


def test_each_row_is_right(inventory: tuple[Path, list[Line]], tmp_path: Path) -> None:
    file, lines = inventory
    environment = {**os.environ, "CIPHERCOST_TIMEOUT": "30", "HOME": str(tmp_path)}
    done = warm.run(["prove", "-f", file, "--format", "json"], cwd=tmp_path, env=environment)
    assert done.returncode == 1, done.stderr
    table = json.loads(done.stdout)
    assert (table["targets"], table["failed"]) == (len(lines), sum(not line.ok for line in lines))
    wrong = []
    for line, row in zip(lines, table["rows"], strict=True):
        seen = (row["verdict"], row["ok"], row["enforced"])
        fits = line.reason in row["reason"] and bool(line.reason) == bool(row["reason"])
        fits &= line.not_enforced in "; ".join(row["not_enforced"])
        if seen != (line.verdict, line.ok, line.enforced) or not fits:
            wrong.append((line, row))
    assert wrong == []
    first = table["rows"][0]
    assert (first["by"], first["verified"], first["protocol"]) == (
        ["client", "server", "wire"],
        "authority and name",
        "TLSv1.3",
    )
    assert all("@" not in row["target"] for row in table["rows"])


def test_every_format_has_every_row(tmp_path: Path) -> None:
    file = tmp_path / "targets"
    file.write_text("postgresql://me@localhost:1/shop\nmysql://localhost:1/?ssl-mode=x\n")
    shown = {}
    for name in ("terminal", "json", "csv", "junit", "md"):
        done = warm.run(["prove", "-f", file, "--format", name], cwd=tmp_path)
        assert (done.returncode, done.stderr) == (1, ""), done.stderr
        shown[name] = done.stdout
    assert [row["verdict"] for row in csv.DictReader(shown["csv"].splitlines())] == ["unreachable", "refused"]
    suite = ElementTree.fromstring(shown["junit"])
    assert [suite.get(name) for name in ("tests", "errors", "failures")] == ["2", "2", "0"]
    assert shown["md"].count("❌") == 2
    assert "2 fail (1 unreachable, 1 refused)" in shown["terminal"]


@pytest.mark.parametrize(
    ("text", "argv", "why"),
    [
        ("", ("-f", "targets"), "names no target"),
        ("x", ("-f", "none"), "can't be read"),
        ("x", ("-f", "targets", "postgresql:tls"), "names the targets; remove postgresql:tls"),
        ("x", ("-f", "targets", "--format", "xml"), "not a format of prove"),
        ("x", ("postgresql:tls", "--format", "md"), "--format md is for the table of -f FILE"),
        ("x", (), "name a target"),
    ],
)
def test_what_can_not_be_is_refused(text: str, argv: tuple[str, ...], why: str, tmp_path: Path) -> None:
    (tmp_path / "targets").write_text(text)
    done = warm.run(["prove", *argv], cwd=tmp_path)
    assert (done.returncode, why in done.stderr) == (2, True), done.stderr
    assert len(done.stderr.splitlines()) == 1
