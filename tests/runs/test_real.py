"""Whole runs on real servers with real TLS and real files, both arms proven; and every case that must be refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import result_schema
import short
import warm
from ciphercost import engines, mechanisms
from ciphercost.engines import Server, StartRequest
from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.host import pki, supervisor
from ciphercost.model import run_directory
from ciphercost.model.connection import Connection
from ciphercost.model.secret import reveal
from conftest import RequireServer

CLI = Path(sys.executable).parent / "ciphercost"
SHORT = ("--quick", "--time", "4s", "--no-latency", "--no-progress", "--regime", "one-core")


def ciphercost(*argv: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does. It must never print a traceback."""
    done = warm.run(argv, cwd=cwd, env={**os.environ, **environment}, timeout=600)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def measured(*argv: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The same for `run`, with a second of load, whatever --time says."""
    done = short.run(argv, cwd=cwd, env={**os.environ, **environment})
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture(scope="module")
def postgresql(require_postgresql: object) -> None:
    """A PostgreSQL from any source."""


def result_of(tmp_path: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((tmp_path / "out.json").read_text())
    result_schema.validate(result)
    return result


@pytest.mark.parametrize(
    ("target", "extra"),
    [
        ("postgresql:tls", ()),
        ("postgresql:tls", ("--set", "version=1.2", "--set", "certificate=ecdsa-p256", "--set", "cipher=chacha20")),
        ("postgresql:tls", ("--set", "cipher=aes128-gcm", "--regime", "capacity")),
        ("postgresql:tls", ("--workload", "connect")),
        ("postgresql:tls", ("--workload", "bulk-read", "--set", "size=64KB")),
        ("postgresql:tls", ("--workload", "tpcb")),
        ("postgresql:tls", ("--workload", "insert")),
        ("postgresql:tls", ("--workload", "mixed-crud", "--per-request")),
        ("postgresql:none", ()),
        ("sqlite:sqlcipher", ()),
        ("sqlite:sqlcipher", ("--workload", "insert")),
        ("sqlite:sqlcipher", ("--workload", "tpcb")),
        ("sqlite:sqlcipher", ("--workload", "bulk-read")),
        ("sqlite:sqlcipher", ("--workload", "mixed-crud")),
        ("duckdb:encrypted", ("--workload", "summarize", "--set", "cipher=ctr", "--cache", "small")),
        ("duckdb:encrypted", ("--workload", "scan")),
        ("duckdb:encrypted", ("--workload", "insert")),
        ("duckdb:encrypted", ("--workload", "bulk-load")),
        ("turso:turso-encryption", ("--workload", "insert", "--rows", "2000")),
        ("null:busy", ()),
    ],
    ids=lambda value: (
        value if isinstance(value, str) else "-".join(value).replace("--set-", "").replace("--", "") or "default"
    ),
)
@pytest.mark.usefixtures("postgresql")
def test_a_cell_is_proven_and_measured(
    tmp_path: Path, require_server: RequireServer, target: str, extra: tuple[str, ...]
) -> None:
    if (server := target.partition(":")[0]) in ("duckdb", "turso"):
        require_server(server)
    # Inserting the usual number of rows into SQLite is most of a short run's work.
    few = ("--rows", "2000") if target.startswith("sqlite") and not extra else ()
    done = measured("run", target, *SHORT, *extra, *few, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    cell = result_of(tmp_path)["cells"][0]
    assert cell["status"] == "ok"
    assert 0 < cell["overhead"]["throughput"]["low"] <= cell["overhead"]["throughput"]["high"]
    if cell["layer"] != "control":
        heard = {(proof["arm"], proof["witness"]) for proof in cell["proofs"] if proof["passed"]}
        wanted = mechanisms.get(cell["mechanism"]).witnesses
        assert heard == {(arm, witness) for arm in ("plain", "encrypted") for witness in wanted}
    if cell["layer"] == "transit":
        factors = dict(factor.split("=") for flag, factor in pairwise(extra) if flag == "--set")
        assert cell["encryption"]["protocol"] == f"TLSv{factors.get('version', '1.3')}"
        names = {"chacha20": "CHACHA20", "aes128-gcm": "AES"}
        assert names.get(factors.get("cipher", ""), "256") in cell["encryption"]["cipher"]
        assert cell["overhead"]["server_cpu_per_op"]["ratio"] > 0
    directory = next((tmp_path / "runs").iterdir())
    assert {path.name for path in directory.iterdir()} >= {
        "plan.json",
        "slices.jsonl",
        "proofs.json",
        "result.json",
        "logs",
    }
    assert all("password" not in path.read_text() for path in directory.glob("*.json*"))


@pytest.mark.usefixtures("postgresql")
def test_full_mode_takes_sessions_and_measures_latency(tmp_path: Path) -> None:
    argv = ("run", "postgresql:tls", "--sessions", "2", "--time", "10s", "--no-progress", "--regime", "one-core")
    done = measured(*argv, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    cell = result_of(tmp_path)["cells"][0]
    assert cell["sessions"] == 2
    assert "latency_p50" in cell["overhead"]


@pytest.mark.usefixtures("postgresql")
def test_the_users_own_statements_are_measured(tmp_path: Path) -> None:
    (tmp_path / "mine.sql").write_text("\\set n random(1, 100)\nSELECT :n + 1, 'a;b';\nSELECT generate_series(1, 3);\n")
    done = measured("run", "postgresql:tls", *SHORT, "--sql", "mine.sql", "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert result_of(tmp_path)["cells"][0]["workload"] == "mine.sql"


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Own:
    """A PostgreSQL server like a user's own, reached by --url."""

    def __init__(self, server: Server, fields: Connection) -> None:
        self.server = server
        self.password = reveal(fields.password)
        self.url = f"postgresql://{fields.user}@localhost:{fields.port}/{fields.database}"


Start = Callable[..., Own]


@pytest.fixture
def own_server(tmp_path: Path, require_postgresql: object) -> Iterator[Start]:
    """Start a server with these settings: own_server(pki=…) with TLS, own_server() without."""
    engine = engines.get("postgresql")
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        servers: list[Server] = []

        def start(**certificate: object) -> Own:
            settings = {}
            if certificate:
                server_pki = pki.Pki(scratch / "secrets", **certificate)  # type: ignore[arg-type]
                (tmp_path / "ca.pem").write_bytes(server_pki.ca.read_bytes())
                settings = HasTls.of(engine).tls_settings(server_pki, mechanisms.get("tls").check({}))
            installation = engine.find()
            directory = scratch / f"server-{len(servers)}"
            engine.initialise(installation, directory, run_supervisor)
            servers.append(
                engine.start(StartRequest(installation, directory, run_supervisor, settings=settings, logs=tmp_path))
            )
            return Own(servers[-1], servers[-1].connection())

        yield start
        for server in servers:
            server.stop()


def test_with_tls_off_at_the_server_there_is_no_number_and_the_witness_is_named(
    tmp_path: Path, own_server: Start
) -> None:
    user_server = own_server()
    done = ciphercost(
        "run", "postgresql:tls", "--url", user_server.url, *SHORT, cwd=tmp_path, PGPASSWORD=user_server.password
    )
    assert done.returncode == 1
    assert "UNPROVEN" in done.stdout
    assert "client witness, encrypted arm" in done.stdout
    assert "%" not in done.stdout.replace("95 %", "")


def test_a_running_server_is_measured_and_left_as_it_was(tmp_path: Path, own_server: Start) -> None:
    user_server = own_server(certificate="ecdsa-p256")
    argv = ("run", "postgresql:tls", "--url", user_server.url, "--ca", "ca.pem", *SHORT, "--json", "out.json")
    done = measured(*argv, cwd=tmp_path, PGPASSWORD=user_server.password)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "does not control it" in done.stderr
    cell = result_of(tmp_path)["cells"][0]
    assert "not-controlled" in {warning["code"] for warning in cell["warnings"]}
    from ciphercost.load.agent import Agent

    with Agent() as agent:
        agent.connect("look", user_server.server.connection())
        assert agent.query("look", "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'ciphercost%'") == []


def test_prove_says_yes_for_an_encrypted_server_and_no_for_one_that_is_not(tmp_path: Path, own_server: Start) -> None:
    with_tls, without = own_server(certificate="rsa2048"), own_server()
    yes = ciphercost("prove", with_tls.url, "--ca", "ca.pem", cwd=tmp_path, PGPASSWORD=with_tls.password)
    assert yes.returncode == 0, yes.stdout + yes.stderr
    assert "ENCRYPTED, proven by every witness" in yes.stdout
    no = ciphercost("prove", without.url, cwd=tmp_path, PGPASSWORD=without.password)
    assert no.returncode == 1
    assert "NOT PROVEN" in no.stdout


@pytest.mark.usefixtures("postgresql")
@pytest.mark.parametrize("target", ["postgresql:tls", "sqlite:sqlcipher"])
def test_prove_needs_no_server_of_the_users(tmp_path: Path, target: str) -> None:
    done = ciphercost("prove", target, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("argv", "words", "status"),
    [
        (("run", "postgres:tls"), "did you mean 'postgresql'", 2),
        (("run", "postgresql:tsl"), "did you mean 'tls'", 2),
        (("run", "postgresql:tls", "--clients", "0"), "--clients 0", 2),
        (("run", "postgresql:tls", "--workload", "tpc-b"), "did you mean 'tpcb'", 2),
        (("run", "postgresql:tls", "--sql", "missing.sql"), "missing.sql", 2),
        (("run", "postgresql:tls", "--time", "soon"), "is not a duration", 2),
        (("run", "typo.toml"), "unknown key 'engin': did you mean 'engine'", 2),
        (("run", "postgresql:tls", "--bindir", "/nowhere"), "/nowhere", 2),
        (("run", "postgresql:tls", "--url", "postgresql://u:secret@localhost/db"), "password", 2),
        (("run", "sqlite:sqlcipher", "--sql", "bad.sql", *SHORT), "no such table: nobody", 1),
        (("run", "good.toml", "--seed", "5"), "--seed has no effect with a spec file", 2),
        (("run", "negative.toml"), "`int` >= 0 in `seed`", 2),
        (("run", "number.toml"), "cells must be a list", 2),
        (("run", "postgresql:tls", "--set", "resumption=on"), "never resumes", 2),
        (
            ("run", "postgresql:tls", "--sql", "bad.sql", "--workload", "tpcb"),
            "both define the operation",
            2,
        ),
        (("calibrate", "postgresql:tls"), "give the engine without a mechanism", 2),
        (("rnu",), "did you mean 'run'", 2),
        (("report", "nothing"), "no run 'nothing'", 2),
        (("list", "engine"), "did you mean 'engines'", 2),
        (("install", "oracle"), "unknown engine 'oracle'", 2),
        (("run", "sqlite:sqlcipher", "-o", "full"), "is not an empty directory", 2),
        (("run",), "Missing argument", 2),
        (("quick", "--tiem", "5s"), "--time", 2),
    ],
    ids=lambda value: "-".join(value[:3]).replace("/", "_") if isinstance(value, tuple) else "",
)
def test_bad_options_give_one_clear_message_and_a_status(
    tmp_path: Path, argv: tuple[str, ...], words: str, status: int
) -> None:
    (tmp_path / "typo.toml").write_text('[[cells]]\nengin = "postgresql"\nmechanism = "tls"\n')
    good = '[[cells]]\nengine = "null"\nmechanism = "busy"\n'
    (tmp_path / "good.toml").write_text(good)
    (tmp_path / "negative.toml").write_text("seed = -1\n" + good)
    (tmp_path / "number.toml").write_text("cells = 3\n")
    (tmp_path / "bad.sql").write_text("SELECT * FROM nobody;")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").write_text("keep")
    done = ciphercost(*argv, cwd=tmp_path)
    assert words in done.stdout + done.stderr
    assert done.returncode == status
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"secret@" in path.read_bytes()]
    assert (tmp_path / "full" / "precious").read_text() == "keep"


@pytest.mark.usefixtures("postgresql")
def test_sql_that_fails_on_the_server_gives_the_servers_own_words(tmp_path: Path) -> None:
    (tmp_path / "bad.sql").write_text("SELECT * FROM nobody;")
    done = ciphercost("run", "postgresql:tls", *SHORT, "--sql", "bad.sql", cwd=tmp_path)
    assert done.returncode == 1
    assert 'relation "nobody" does not exist' in done.stdout


def test_a_printed_spec_is_a_file_that_can_be_run(tmp_path: Path) -> None:
    printed = ciphercost("run", "null:busy", *SHORT, "--print-spec", cwd=tmp_path)
    assert tomllib.loads(printed.stdout)["cells"][0]["engine"] == "null"
    (tmp_path / "grid.toml").write_text(printed.stdout)
    done = ciphercost("run", "grid.toml", "--no-progress", "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert result_of(tmp_path)["cells"][0]["mechanism"] == "busy"
    to_stdout = ciphercost("run", "grid.toml", "--no-progress", "--json", "-", cwd=tmp_path)
    assert json.loads(to_stdout.stdout)["cells"][0]["mechanism"] == "busy"


@pytest.mark.usefixtures("alone")
def test_every_screen_can_be_had_without_a_run(tmp_path: Path) -> None:
    for argv in (("list",), ("list", "runs"), ("doctor",), ("clean",), ("--version",)):
        # What tests beside this one leave for a moment is none of its business.
        environment = {"CIPHERCOST_SCRATCH": str(tmp_path / "scratch")} if argv == ("clean",) else {}
        done = ciphercost(*argv, cwd=tmp_path, **environment)
        assert done.returncode == 0, (argv, done.stdout, done.stderr)
        assert done.stdout.strip()


def test_a_run_can_be_reported_again(tmp_path: Path) -> None:
    first = measured("run", "null:busy", *SHORT, "-o", "here", "--json", "out.json", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    again = ciphercost("report", "here", "--format", "json", cwd=tmp_path)
    assert again.stdout == (tmp_path / "out.json").read_text()
    assert first.stdout.startswith(ciphercost("report", "here", cwd=tmp_path).stdout)
