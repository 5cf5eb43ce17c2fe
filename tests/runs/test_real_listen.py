"""`run --listen`: whole runs whose server listens on another address, in this machine's loopback and on a network."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import steady
import warm
from ciphercost.host import link
from ciphercost.host.namespaces import NAMESPACES
from conftest import RequirePossible, RequireServer
from network_namespaces import namespace
from test_real import CLI, SHORT, measured, result_of

ADDRESS = "10.77.0.1"
"""Of a network namespace that the test makes."""
TARGETS = [
    "postgresql:tls",
    "postgresql:pgcrypto-cbc-256 --workload search",
    "mysql:innodb-tde",
    "mysql:tls",
    "mariadb:tls",
    "firebird:wire-crypt",
    "nginx:tls",
    "apache:tls",
    "valkey:tls",
    "memcached:tls",
]


@pytest.mark.usefixtures("require_postgresql")
def test_a_run_on_another_address_of_loopback_is_proven(tmp_path: Path) -> None:
    argv = ("run", "postgresql:tls", "--quick", "--time", "5s", "--listen", "127.0.0.2", "--json", "out.json")
    done = measured(*argv, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    assert cell["status"] == "ok"
    assert all(proof["passed"] for proof in cell["proofs"])
    assert {(proof["arm"], proof["witness"]) for proof in cell["proofs"]} == {
        (arm, witness) for arm in ("plain", "encrypted") for witness in ("server", "wire", "client")
    }
    assert cell["encryption"]["verified"] == "yes"
    assert cell["conditions"]["listen"] == "127.0.0.2"
    assert "server on 127.0.0.2" in " ".join(done.stdout.split())
    assert "listens" not in [warning["code"] for warning in cell["warnings"]]  # nobody else reaches it there


@pytest.mark.usefixtures("require_postgresql")
def test_it_can_be_delayed_too(tmp_path: Path) -> None:
    argv = ("run", "postgresql:tls", "--listen", "127.0.0.2", "--delay", "1ms", *SHORT, "--json", "out.json")
    done = measured(*argv, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    assert cell["conditions"] | {"idle": ""} == {"delay": "1ms", "listen": "127.0.0.2", "idle": ""}
    assert cell["encryption"]["verified"] == "yes"  # by the server's own address, although the relay is on 127.0.0.1


def run_there(target: str, *more: str, cwd: Path) -> tuple[dict[str, Any], str, str]:
    """(cell, output, errors) of a run within a network namespace that has ADDRESS."""
    with namespace(ADDRESS) as name:
        argv: list[str | Path] = [
            "nsenter",
            f"--net={NAMESPACES / name}",
            CLI,
            "run",
            target,
            "--listen",
            ADDRESS,
            *more,
            *SHORT,
        ]
        run = partial(
            subprocess.run, [*argv, "--json", "out.json"], cwd=cwd, capture_output=True, text=True, check=False
        )
        done = steady.command(run, cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell, *_) = json.loads((cwd / "out.json").read_text())["cells"]
    return cell, done.stdout, done.stderr


@pytest.mark.parametrize("target", TARGETS)
def test_a_run_on_an_address_of_a_network_is_proven_and_warns(
    tmp_path: Path, target: str, require_server: RequireServer, require_possible: RequirePossible
) -> None:
    require_server(target.partition(":")[0])
    require_possible(link.check_rights)
    cell, output, errors = run_there(*target.split(), cwd=tmp_path)
    assert cell["status"] == "ok"
    assert cell["conditions"]["listen"] == ADDRESS
    assert all(proof["passed"] for proof in cell["proofs"])
    expected = f"server of this run can be reached from the network of {ADDRESS}"
    (warned,) = [warning["text"] for warning in cell["warnings"] if warning["code"] == "listens"]
    assert expected in warned
    assert expected in " ".join(output.split())
    assert expected in " ".join(errors.replace("===", "").split())  # before anything starts, too


@pytest.mark.parametrize("target", ["mysql:tls", "mariadb:tls", "postgresql:tls", "firebird:wire-crypt"])
def test_a_jdbc_driver_reaches_it_on_a_network(
    tmp_path: Path, target: str, require_server: RequireServer, require_possible: RequirePossible
) -> None:
    require_server(target.partition(":")[0])
    require_possible(link.check_rights)
    cell, *_ = run_there(target, "--client", "jdbc", "--time", "8s", cwd=tmp_path)
    assert cell["status"] == "ok"
    assert all(proof["passed"] for proof in cell["proofs"])


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (
            "203.0.113.9",
            "--listen 203.0.113.9: this machine has no interface",
        ),
        (
            "0.0.0.0",
            "--listen 0.0.0.0: would open the server",
        ),
        ("eth0", "--listen eth0: not an IP address"),
    ],
)
def test_a_wrong_address_is_refused_before_anything_starts(tmp_path: Path, address: str, words: str) -> None:
    done = warm.run(("run", "postgresql:tls", "--listen", address), cwd=tmp_path)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.split())
    assert not list(tmp_path.iterdir())
