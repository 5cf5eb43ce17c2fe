"""Whole runs on MySQL and MariaDB, both arms proven; and a user's servers, which stay unchanged."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ciphercost import mechanisms
from ciphercost.engines import Server
from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.host import pki
from ciphercost.load.agent import Agent
from ciphercost.model.secret import reveal
from conftest import RequireServer
from mysql_servers import OFF, ServerCopies, server_copies
from test_real import SHORT, ciphercost, measured, result_of

TARGETS = ("mysql@9.7", "mariadb@11.8")
Start = Callable[..., tuple[Server, str]]


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest, require_server: RequireServer) -> str:
    require_server(*request.param.split("@"))
    return str(request.param)


@pytest.mark.parametrize(
    "extra",
    [
        ("--set", "version=1.2", "--set", "certificate=ecdsa", "--set", "cipher=chacha20", "--set", "group=p256"),
        ("--workload", "connect", "--set", "resumption=on"),
        ("--workload", "tpcb", "--regime", "capacity"),
    ],
    ids=["point-select", "connect", "tpcb"],
)
def test_a_cell_is_proven_and_measured(tmp_path: Path, target: str, extra: tuple[str, ...]) -> None:
    done = measured("run", f"{target}:tls", *SHORT, *extra, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    cell = result_of(tmp_path)["cells"][0]
    assert cell["status"] == "ok"
    heard = {(proof["arm"], proof["witness"]) for proof in cell["proofs"] if proof["passed"]}
    assert heard == {(arm, witness) for arm in ("plain", "encrypted") for witness in mechanisms.get("tls").witnesses}
    assert 0 < cell["overhead"]["client_cpu_per_op"]["high"] < math.inf
    assert cell["overhead"]["server_cpu_per_op"]["ratio"] > 0
    assert cell["version"].startswith(target.partition("@")[2])
    assert {arm: facts["errors"] for arm, facts in cell["arms"].items()} == {"plain": 0, "encrypted": 0}
    if "version=1.2" in extra:
        assert cell["encryption"]["cipher"] == "ECDHE-ECDSA-CHACHA20-POLY1305"
        assert cell["encryption"]["group"] == "P-256"
    directory = max((tmp_path / "runs").iterdir())
    assert all("password" not in path.read_text() for path in directory.glob("*.json*"))


def test_a_group_that_mysql_can_not_agree_on_is_bad_usage(tmp_path: Path) -> None:
    done = ciphercost("run", "mysql:tls", "--set", "group=x25519", *SHORT, cwd=tmp_path)
    assert done.returncode == 2
    assert "mysql can't use the group x25519" in done.stderr
    assert not (tmp_path / "runs").exists()


# ── a server of the user's ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def own_server(tmp_path: Path, target: str, require_server: RequireServer) -> Iterator[Start]:
    """Start a server like a user's own and return its URL: own_server(tls=False, settings)."""
    name, _, version = target.partition("@")
    with ExitStack() as stack:
        home: ServerCopies = stack.enter_context(server_copies(require_server(name, version), tmp_path))

        def start(settings: dict[str, str] | None = None, *, tls: bool = True) -> tuple[Server, str]:
            wanted = dict(settings or {})
            if tls:
                server_pki = pki.Pki(home.secrets / "own", "ecdsa-p256")
                (tmp_path / "ca.pem").write_bytes(server_pki.ca.read_bytes())
                wanted |= HasTls.of(home.engine).tls_settings(server_pki, mechanisms.get("tls").check({}))
            else:
                wanted |= OFF[name]
            server = stack.enter_context(home.started(wanted))
            fields = server.connection()
            return server, f"{name}://{fields.user}@localhost:{fields.port}/"

        yield start


def test_a_running_server_is_measured_and_left_as_it_was(tmp_path: Path, own_server: Start) -> None:
    server, url = own_server()
    fields = server.connection()
    argv = ("run", f"{url.partition(':')[0]}:tls", "--url", url, "--ca", "ca.pem", *SHORT, "--json", "out.json")
    with Agent() as agent:
        agent.connect("look", fields)
        before = agent.query("look", "SHOW DATABASES")
        done = measured(*argv, cwd=tmp_path, MYSQL_PWD=reveal(fields.password))
        assert done.returncode == 0, done.stdout + done.stderr
        assert agent.query("look", "SHOW DATABASES") == before
    cell = result_of(tmp_path)["cells"][0]
    assert "not-controlled" in {warning["code"] for warning in cell["warnings"]}


def test_prove_says_yes_where_tls_is_and_no_where_it_is_off(tmp_path: Path, own_server: Start) -> None:
    (with_tls, yes_url), (without, no_url) = own_server(), own_server(tls=False)
    yes = ciphercost("prove", yes_url, "--ca", "ca.pem", cwd=tmp_path, MYSQL_PWD=reveal(with_tls.connection().password))
    assert yes.returncode == 0, yes.stdout + yes.stderr
    assert "ENCRYPTED, proven by every witness" in yes.stdout
    assert "The server accepted an unencrypted one too" in " ".join(yes.stdout.split())
    no = ciphercost("prove", no_url, cwd=tmp_path, MYSQL_PWD=reveal(without.connection().password))
    assert no.returncode == 1
    assert "NOT PROVEN" in no.stdout
    assert "the server does not offer TLS" in no.stdout


def test_prove_says_that_a_server_enforces_encryption(tmp_path: Path, own_server: Start) -> None:
    server, url = own_server({"require-secure-transport": "ON"})
    done = ciphercost("prove", url, "--ca", "ca.pem", cwd=tmp_path, MYSQL_PWD=reveal(server.connection().password))
    assert done.returncode == 0, done.stdout + done.stderr
    words = " ".join(done.stdout.split())
    assert "refuses unencrypted connections: it enforces encryption" in words
    assert "ENCRYPTED, proven by server and client" in words
    assert "accepted an unencrypted one too" not in words


def test_a_wrong_password_is_no_proof_of_anything(tmp_path: Path, own_server: Start) -> None:
    _, url = own_server()
    done = ciphercost("prove", url, "--ca", "ca.pem", cwd=tmp_path, MYSQL_PWD="wrong")
    assert done.returncode == 1
    assert "Access denied" in done.stdout + done.stderr
    assert "enforced" not in done.stdout


def test_a_url_of_the_other_kind_is_bad_usage(tmp_path: Path, own_server: Start) -> None:
    _, url = own_server()
    name = url.partition(":")[0]
    other = "mariadb" if name == "mysql" else "mysql"
    done = ciphercost("prove", url.replace(name, other, 1), cwd=tmp_path)
    assert done.returncode == 2
    assert f"name the engine {name}" in done.stderr
