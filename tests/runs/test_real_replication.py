"""Replication by whole runs: every figure with its proof; a link that is not encrypted has no number; a dead replica is one line."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

import ciphercost
import processes
import short
import steady
import test_resume
from ciphercost.engines._postgresql_replication import PostgresqlReplication
from ciphercost.engines.capabilities.replication import Ask, ReplicationLink
from ciphercost.estimate import results
from ciphercost.host.procfs import tree
from ciphercost.model import run_directory
from ciphercost.model.replication import KINDS, ReplicationEvent
from ciphercost.model.result import Result
from ciphercost.model.spec import ARMS, CellSpec, Spec
from ciphercost.runs import anonymize, resume
from conftest import RequireServer
from test_real import result_of

CLI = Path(sys.executable).parent / "ciphercost"
RUN = ("--workload", "replication", "--rows", "300", "--set", "changes=100", "--quick", "--no-progress")
FIGURES = {"lag", "catch_up", "copy"}
STORES = ("valkey", "redis")


def measured(place: Path, engine: str) -> dict[str, Any]:
    """The cell of a short run."""
    done = short.run(
        ["run", f"{engine}:tls", *RUN, "--time", "3s", "--no-latency", "-o", "run", "--json", "out.json"], cwd=place
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "With tls on the link: lag of the replica" in " ".join(done.stdout.split())
    (cell,) = result_of(place)["cells"]
    return dict(cell)


def proofs(cell: dict[str, Any]) -> dict[tuple[str, str], str]:
    assert all(proof["passed"] for proof in cell["proofs"])
    return {(proof["arm"], proof["witness"]): proof["detail"] for proof in cell["proofs"]}


@pytest.mark.parametrize(
    ("engine", "plain", "encrypted", "copied_by"),
    [
        (
            "postgresql",
            "pg_stat_ssl of the sender: no encryption",
            "pg_stat_ssl of the sender: TLSv1.3",
            "pg_basebackup",
        ),
        ("mariadb", "rose by 0", "rose by 1", "mariadb-dump"),
        ("mysql", "dump thread: TCP/IP", "dump thread: SSL/TLS TLSv1.3", "the clone plugin"),
        ("valkey", "", "", "a full synchronisation"),
        ("redis", "", "", "a full synchronisation"),
    ],
    ids=["postgresql", "mariadb", "mysql", "valkey", "redis"],
)
def test_every_figure_is_there_and_both_links_are_proven(
    tmp_path: Path, require_server: RequireServer, engine: str, plain: str, encrypted: str, copied_by: str
) -> None:
    require_server(engine)
    cell = measured(tmp_path, engine)
    seen = proofs(cell)
    assert "the canary is visible in" in seen["plain", "wire"]
    assert "of TLSv1.3 TLS_AES" in seen["encrypted", "wire"]
    assert {("plain", "client"), ("encrypted", "client")} <= seen.keys()
    if plain:
        assert plain in seen["plain", "server"]
        assert encrypted in seen["encrypted", "server"]
    found = cell["replication"]
    assert set(found["ratios"]) == FIGURES
    assert all(found["arms"][arm][name] > 0 for arm in ARMS for name in FIGURES)
    assert (found["copied_by"], found["rows"], found["blocks"]) == (copied_by, 2000 if engine in STORES else 100, 3)
    assert {"throughput", "server_cpu_per_op"} <= cell["overhead"].keys()
    assert cell["protects"].endswith("between primary and replica")
    events = list(run_directory.read_beside(tmp_path / "run", ReplicationEvent))
    assert {(one.kind, one.position) for one in events} == {(kind, place) for kind in KINDS for place in range(1, 5)}
    again = results.conclude(tmp_path / "run")
    recorded = json.loads((tmp_path / "run" / "result.json").read_text())["cells"][0]
    assert msgspec.to_builtins(again.cells[0].replication)["ratios"] == recorded["replication"]["ratios"]
    assert "replication.jsonl" in anonymize.shareable(tmp_path / "run")


def test_a_killed_run_keeps_the_events_of_its_whole_sessions(tmp_path: Path, require_server: RequireServer) -> None:
    require_server("valkey")
    cells = [CellSpec("valkey", "tls", workload="replication", rows=300, factors={"changes": "100"})]
    spec = Spec(cells=cells, seed=3, sessions=2, time=1.0, latency=False, slice_seconds=0.05)
    had: list[ReplicationEvent] = []

    def killed_and_resumed(place: Path) -> Result:
        if test_resume.ended(spec, place, 5, "lag, backlog, full copy").returncode != -signal.SIGKILL:
            return results.conclude(place)
        had[:] = run_directory.read_beside(place, ReplicationEvent)
        return resume.run_in(place)[0]

    result, place = steady.measured(killed_and_resumed, tmp_path)
    assert result.cells[0].replication is not None, result.cells[0].reason
    whole = [event for event in had if event.session == 1]
    assert len(had) - len(whole) == 5
    events = list(run_directory.read_beside(place, ReplicationEvent))
    assert [event for event in events if event.session == 1] == whole
    assert Counter(event.session for event in events) == {1: len(whole), 2: len(whole)}


def test_a_link_that_is_not_encrypted_by_mistake_has_no_number(
    tmp_path: Path, require_server: RequireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_server("postgresql")
    real = PostgresqlReplication.join

    def join(self: PostgresqlReplication, primary: Ask, replica: Ask, link: ReplicationLink) -> None:
        real(self, primary, replica, msgspec.structs.replace(link, ca=""))

    monkeypatch.setattr(PostgresqlReplication, "join", join)
    spec = Spec(
        cells=[CellSpec("postgresql", "tls", workload="replication", rows=300, factors={"changes": "100"})],
        mode="quick",
        sessions=1,
        time=1.0,
        latency=False,
        slice_seconds=0.05,
    )
    result = ciphercost.run(spec, tmp_path / "run")
    (cell,) = result.cells
    assert cell.status == "unproven"
    assert not cell.overhead
    assert cell.replication is None
    failed = {proof.witness for proof in cell.proofs if not proof.passed}
    assert failed == {"client", "server", "wire"}
    assert "the canary is visible unencrypted" in cell.reason
    assert list(run_directory.read_slices(tmp_path / "run")) == []


def replica_of(run: subprocess.Popen[str]) -> int:
    """The process of a run that is a replica."""
    pids: list[int] = []

    def found() -> bool:
        for each in tree(run.pid):
            with contextlib.suppress(OSError):  # it has just ended
                if b"/replica-" in Path(f"/proc/{each}/cmdline").read_bytes():
                    pids.append(each)
        return bool(pids)

    processes.wait_for("the replica", found)
    return pids[0]


def test_a_killed_replica_is_one_line_and_nothing_is_left(
    tmp_path: Path, own_scratch: Path, require_server: RequireServer
) -> None:
    require_server("postgresql")
    directory = tmp_path / "run"
    argv: list[str | Path] = [CLI, "run", "postgresql:tls", *RUN, "--time", "30s", "-o", directory]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        slices = directory / "slices.jsonl"
        processes.wait_for("slices", lambda: slices.exists() and slices.stat().st_size > 5000, patience=300)
        os.kill(replica_of(process), signal.SIGKILL)
        printed, _ = process.communicate(timeout=600)
    words = " ".join(printed.split())
    assert process.returncode == 1, printed
    assert "the replica of the " in words
    assert "died during the measurement" in words
    assert "Traceback" not in printed
    (cell,) = json.loads((directory / "result.json").read_text())["cells"]
    assert cell["status"] == "failed"
    assert "\n" not in cell["reason"]
    assert list(own_scratch.iterdir()) == []
