"""Valkey and Redis at rest: their append-only file on an encrypted file system, and witnesses with and without it."""

from __future__ import annotations

from pathlib import Path

import pytest

import warm
from ciphercost import engines, mechanisms
from ciphercost.engines import StartRequest
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.engines.valkey import Valkey
from ciphercost.model.errors import RunError, UsageError
from ciphercost.model.spec import CellSpec
from ciphercost.plan import resolve
from ciphercost.runs import prove
from conftest import RequirePossible, RequireServer
from resting import mountable
from test_real import measured, result_of

QUICK = ("--quick", "--time", "3s", "--no-latency", "--no-progress", "--json", "out.json")
DISK = {(arm, witness) for arm in ("plain", "encrypted") for witness in ("disk", "server")}


@pytest.mark.parametrize(
    ("target", "workload"),
    [
        ("valkey:fscrypt", "set"),
        ("valkey:gocryptfs", "get"),
        ("redis:fscrypt", "get"),
        ("redis:gocryptfs", "set"),
    ],
)
def test_a_cell_is_proven_by_its_files_and_measured(
    target: str, workload: str, tmp_path: Path, require_server: RequireServer, require_possible: RequirePossible
) -> None:
    engine, _, mechanism = target.partition(":")
    require_server(engine)
    require_possible(lambda: mountable(mechanism))
    done = measured("run", target, "--workload", workload, *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    assert (cell["status"], cell["workload"]) == ("ok", f"kv-{workload}")
    assert {arm: counts["errors"] for arm, counts in cell["arms"].items()} == {"plain": 0, "encrypted": 0}
    assert {arm: counts["rows_per_op"] for arm, counts in cell["arms"].items()} == {"plain": 1, "encrypted": 1}
    assert {(proof["arm"], proof["witness"]) for proof in cell["proofs"] if proof["passed"]} == DISK
    assert all(proof["passed"] for proof in cell["proofs"])
    details = {
        arm: " ".join(proof["detail"] for proof in cell["proofs"] if proof["arm"] == arm) for arm in cell["arms"]
    }
    assert all("appendonly yes, appendfsync everysec" in detail for detail in details.values())
    assert "the canary is in none of" in details["encrypted"]
    assert "the canary is in none of" not in details["plain"]
    assert not [difference for difference in cell["config_diff"] if "append" in difference or "save" in difference]
    known = [warning["code"] for warning in cell["warnings"]]
    assert ("reads-from-memory" in known) == (workload == "get")


def test_prove_tells_how_both_arms_keep_their_data(
    tmp_path: Path, require_server: RequireServer, require_possible: RequirePossible
) -> None:
    require_server("valkey")
    require_possible(lambda: mountable("gocryptfs"))
    done = warm.run(("prove", "valkey:gocryptfs"), cwd=tmp_path)
    words = " ".join(done.stdout.split())
    assert done.returncode == 0, words + done.stderr
    assert "ENCRYPTED, proven by every witness" in words
    assert "witness)" not in words, "its server witness is for its files, and is not missing"
    assert "without its key it does not start" in words
    assert "Valkey was not started" in words


def test_a_server_that_keeps_nothing_on_disk_fails_the_server_witness(
    require_server: RequireServer, require_possible: RequirePossible, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_server("valkey")
    require_possible(lambda: mountable("gocryptfs"))
    monkeypatch.setattr(Valkey, "on_disk", {"appendonly": "no"})
    passed, text = prove.examine(CellSpec("valkey", "gocryptfs", workload="kv-get"))
    words = " ".join(text.split())
    assert not passed, words
    assert "FAILED server: " in words
    assert "appendonly no, appendfsync everysec" in words
    assert "NOT PROVEN" in words


@pytest.mark.parametrize(
    ("rows", "passed"),
    [
        ([["appendfsync"], ["always"], ["appendonly"], ["yes"]], True),
        ([["appendfsync"], ["always"], ["appendonly"], ["no"]], False),
        ([], False),
    ],
)
def test_what_the_server_says_of_its_append_only_file(rows: list[list[str | None]], passed: bool) -> None:
    kept, words = StoresData.of(engines.get("redis")).persists(rows)
    assert kept == passed
    assert words.startswith("appendonly ")


def test_a_directory_that_can_not_be_read_is_an_error(require_server: RequireServer, tmp_path: Path) -> None:
    from ciphercost.host import supervisor
    from ciphercost.model import run_directory

    with (
        supervisor.Supervisor(run_directory.new_id()) as run_supervisor,
        pytest.raises(RunError, match=r"Redis was not started.*: No such file"),
    ):
        engines.get("redis").start(StartRequest(require_server("redis"), tmp_path / "nothing", run_supervisor))


@pytest.mark.parametrize("name", ["valkey", "redis"])
def test_which_mechanisms_it_has(name: str) -> None:
    engine = engines.get(name)
    assert mechanisms.of(engine, "rest") == ("cryfs", "fscrypt", "gocryptfs", "path")
    assert mechanisms.of(engine, "transit") == ("tls",)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cache": "cold"}, "--cache cold: valkey .*in memory"),
        ({"settings": {"appendonly": "no"}}, "--setting appendonly: ciphercost decides"),
        ({"settings": {"dir": "/"}}, "--setting dir: ciphercost decides"),
        ({"settings": {"tls-port": "1"}}, "--setting tls-port: ciphercost decides"),
        ({"settings": {"requirepass": "x"}}, "--setting requirepass: ciphercost decides"),
        ({"factors": {"mode": "rot13"}}, "fscrypt has no mode 'rot13'"),
    ],
)
def test_what_can_not_be_is_refused_before_anything_starts(given: dict[str, object], message: str) -> None:
    cell = CellSpec("valkey", "fscrypt", workload="kv-set", **given)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=message):
        resolve.resolve(cell)


def test_a_setting_reaches_both_arms(
    tmp_path: Path, require_server: RequireServer, require_possible: RequirePossible
) -> None:
    require_server("valkey")
    require_possible(lambda: mountable("gocryptfs"))
    setting = ("--setting", "appendfsync=always", "--workload", "set")
    done = measured("run", "valkey:gocryptfs", *setting, *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    arms = {proof["arm"] for proof in cell["proofs"] if "appendfsync always" in proof["detail"]}
    assert arms == {"plain", "encrypted"}
