"""A user with exactly the documented rights can prove and run; with one right fewer, the error names that right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ciphercost import engines
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.model import grants
from ciphercost.report import inventory
from test_real import ciphercost, measured
from test_user_server import server, target
from userservers import ENGINES, UserServer

__all__ = ["server"]
ROOT = Path(__file__).parents[2]
LOAD = ("--quick", "--time", "4s", "--no-latency", "--no-progress", "--rows", "500")
MISSING = {
    "postgresql": [("CREATE", "GRANT CREATE ON DATABASE")],
    "mysql": [(right, right) for right in ("SELECT", "INSERT", "UPDATE", "CREATE")],
    "mariadb": [(right, right) for right in ("SELECT", "INSERT", "UPDATE", "CREATE")],
}
"""For each engine: (right to revoke, what the error must name). tpcb neither deletes nor creates an index."""


@pytest.fixture
def role(server: UserServer) -> Iterator[str]:
    """A user who may only log in."""
    name = server.engine.name
    if name == "firebird":
        # Only the server's own tools create its users; the usual user of the tests has just GRANT CREATE DATABASE.
        yield str(server.fields.user)
        return
    server.ask(
        "CREATE ROLE sparse LOGIN PASSWORD 'sparse'"
        if name == "postgresql"
        else "CREATE USER sparse IDENTIFIED BY 'sparse'"
    )
    yield "sparse"
    if name == "postgresql":
        server.ask("DROP OWNED BY sparse", "DROP ROLE sparse")
    else:
        server.ask("DROP USER sparse")


def asked(server: UserServer, role: str, cwd: Path, *argv: str, verified: bool = True) -> tuple[int, str]:
    secret = {} if role != "sparse" else {TakesUrl.of(server.engine).password_from: "sparse"}
    command = measured if argv[0] == "run" else ciphercost
    done = command(*argv, *(server.by_ca if verified else ()), cwd=cwd, **{**server.environment, **secret})
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def url_for(server: UserServer, role: str) -> str:
    """MySQL refuses a login to a database in which the user has no right, so the URL names no database."""
    url = server.url_for(role)
    return url.rpartition("/")[0] + "/" if server.engine.name in ("mysql", "mariadb") else url


def grant(server: UserServer, role: str, without: str = "") -> None:
    """Run the documented statement, optionally without one right."""
    if server.engine.name == "firebird":
        return
    statement = grants.statement(server.engine.name, role, server.fields.database)
    if without and server.engine.name == "postgresql":
        return  # it is a single right
    if without:
        others = ", ".join(right for right in grants.MYSQL_RIGHTS if right != without)
        statement = statement.replace(", ".join(grants.MYSQL_RIGHTS), others)
    server.ask(statement)


def test_the_login_alone_is_enough_to_prove(tmp_path: Path, server: UserServer, role: str) -> None:
    status, printed = asked(server, role, tmp_path, "prove", url_for(server, role))
    assert status == 0, printed
    assert "ENCRYPTED, proven by every witness" in printed


@pytest.mark.parametrize("workload", ["tpcb", "mixed-crud"])
def test_exactly_what_is_documented_is_enough_to_run(
    tmp_path: Path, server: UserServer, role: str, workload: str
) -> None:
    grant(server, role)
    argv: tuple[str, ...] = ("run", target(server), "--url", url_for(server, role), *LOAD)
    if workload == "mixed-crud":
        (tmp_path / "mine.csv").write_text("id,word\n" + "".join(f"{n},w{n}\n" for n in range(500)))
        argv = (*argv[:-2], "--csv", "mine.csv")
    else:
        argv = (*argv, "--workload", workload)
    before = server.schemas()
    status, printed = asked(server, role, tmp_path, *argv)
    assert status == 0, printed
    assert server.schemas() == before, "everything is dropped again"


def test_in_columns_the_same_rights_are_enough(tmp_path: Path, server: UserServer, role: str) -> None:
    grant(server, role)
    cell = f"{server.engine.name}:client-aes-gcm-256"
    argv = ("run", cell, "--url", url_for(server, role), *LOAD, "--workload", "hospital-client")
    status, printed = asked(server, role, tmp_path, *argv, verified=False)
    assert status == 0, printed


def test_with_one_right_fewer_the_error_names_it(tmp_path: Path, server: UserServer, role: str) -> None:
    if server.engine.name not in MISSING:
        pytest.skip("its one right is taken from nobody by SQL of an ordinary user")
    for right, named in MISSING[server.engine.name]:
        grant(server, role, without=right)
        argv = (
            "run",
            target(server),
            "--url",
            url_for(server, role),
            *LOAD,
            "--workload",
            "tpcb",
            "-o",
            f"run-{right}",
        )
        status, printed = asked(server, role, tmp_path, *argv)
        assert status == 1, printed
        assert named in printed
        if server.engine.name != "postgresql":
            for left in [name for name in server.schemas() if name.startswith("ciphercost_2")]:
                server.drop(left)  # a user who may not read the mark drops nothing
            server.ask(f"REVOKE ALL PRIVILEGES ON `ciphercost\\_%`.* FROM '{role}'@'%'")


def test_page_list_and_errors_have_the_same_statements() -> None:
    page, shown = (ROOT / "docs" / "grants.md").read_text(), " ".join(inventory.show("grants").split())
    assert page == grants.markdown()
    for engine in ENGINES:
        statement = grants.statement(engine, "USER", "DATABASE")
        assert statement in page
        assert statement in shown
    assert "docs/grants.md" in (ROOT / "README.md").read_text()


def test_names_are_quoted() -> None:
    assert grants.statement("postgresql", 'a"b', 'c"d') == 'GRANT CREATE ON DATABASE "c""d" TO "a""b"'
    assert "TO 'a''b'@'%'" in grants.statement("mysql", "a'b")


def test_every_engine_that_takes_a_url_has_its_grants() -> None:
    every = map(engines.get, engines.names())
    taking = {engine.name for engine in every if isinstance(engine, TakesUrl) and not engine.foreign}
    differ = sorted(set(grants.GRANTS) ^ taking)
    assert not differ, f"{differ}: GRANTS in model/grants.py needs one entry per engine that takes --url"
    assert set(ENGINES) < set(grants.GRANTS)


def test_mechanisms_at_rest_take_no_url(tmp_path: Path) -> None:
    for cell in ("mysql:innodb-tde", "postgresql:fscrypt", "mariadb:mariadb-tde"):
        url = f"{cell.partition(':')[0]}://somebody@127.0.0.1:1/db"
        done = ciphercost("run", cell, "--url", url, cwd=tmp_path)
        assert done.returncode == 2, done.stdout
        assert "remove --url" in done.stderr
