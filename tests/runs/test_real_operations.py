"""An operator's task as the load, by whole runs: its figures, its proofs, and what is left when the disk is full."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import threading
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import steady
import warm
from conftest import Require, RequirePossible, RequireServer
from resting import mountable

SHORT = 'mode = "quick"\nsessions = 1\nslice_seconds = 0.1'
ROWS = 2000


def run(
    directory: Path,
    engine: str,
    mechanism: str,
    workload: str,
    *,
    seconds: float = 1.0,
    scratch: str = "",
    **factors: Any,
) -> CompletedProcess[str]:
    cell = {"engine": engine, "mechanism": mechanism, "workload": workload, "rows": ROWS}
    lines = [
        SHORT,
        f"time = {seconds}",
        "[[cells]]",
        *(f"{name} = {json.dumps(value)}" for name, value in cell.items()),
    ]
    lines += ["[cells.factors]", *(f"{name} = {json.dumps(value)}" for name, value in factors.items())]
    spec = directory / "spec.toml"
    spec.write_text("\n".join(lines) + "\n")
    env = {"CIPHERCOST_SCRATCH": scratch} if scratch else {}
    return warm.run(
        ["run", str(spec), "-o", str(directory / "run"), "--no-progress"], cwd=directory, env=env, timeout=900
    )


def cell_of(directory: Path, done: CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stdout + done.stderr
    cell: dict[str, Any] = json.loads((directory / "run" / "result.json").read_text())["cells"][0]
    assert cell["status"] == "ok"
    assert {"duration", "throughput"} <= cell["overhead"].keys()
    assert all(proof["passed"] for proof in cell["proofs"])
    return cell


def codes(cell: dict[str, Any]) -> set[str]:
    return {finding["code"] for finding in cell["findings"]}


def test_a_backup_by_the_servers_tool_of_an_encrypted_table_is_not_encrypted(
    tmp_path: Path, require_server: RequireServer
) -> None:
    require_server("mysql")
    cell = cell_of(tmp_path, done := run(tmp_path, "mysql", "innodb-tde", "backup"))
    plain, encrypted = cell["arms"]["plain"], cell["arms"]["encrypted"]
    assert plain["tool"] == encrypted["tool"] == "mysqldump"
    # A row has 960 letters.
    assert min(plain["output_bytes"], encrypted["output_bytes"]) > 900 * ROWS
    assert plain["client_cpu_us_per_op"] > 0 < plain["server_cpu_us_per_op"]
    assert "backup-in-clear" in codes(cell)
    assert "backup by mysqldump: one took" in " ".join(done.stdout.split())


def test_an_export_of_an_encrypted_database_is_encrypted(tmp_path: Path) -> None:
    cell = cell_of(tmp_path, run(tmp_path, "sqlite", "sqlcipher", "backup"))
    assert cell["arms"]["encrypted"]["tool"] == "sqlcipher_export"
    assert cell["arms"]["encrypted"]["output_bytes"] > 900 * ROWS
    assert "backup-in-clear" not in codes(cell)


def test_a_killed_server_recovers_in_both_arms(
    tmp_path: Path, require_server: RequireServer, require_possible: RequirePossible
) -> None:
    require_server("postgresql")
    require_possible(partial(mountable, "gocryptfs"))
    cell = cell_of(tmp_path, run(tmp_path, "postgresql", "gocryptfs", "restart", changes="2"))
    assert cell["arms"]["plain"]["server_cpu_us_per_op"] > 0
    logs = "".join(path.read_text() for path in (tmp_path / "run" / "logs").glob("postgresql-*.log"))
    assert "automatic recovery in progress" in logs
    assert "redo done at" in logs


def test_an_existing_table_is_encrypted_while_traffic_goes_on(tmp_path: Path, require_server: RequireServer) -> None:
    require_server("mariadb")

    def encrypted(place: Path) -> CompletedProcess[str]:
        place.mkdir()
        return run(place, "mariadb", "mariadb-tde", "encrypt-existing", traffic="on")

    # So few rows may be encrypted before a busy machine lets the controller begin the traffic.
    done, place = steady.tried(
        encrypted, tmp_path, lambda done: "ended before any traffic" not in " ".join(done.stdout.split())
    )
    cell = cell_of(place, done)
    for arm in ("plain", "encrypted"):
        traffic = cell["arms"][arm]["traffic"]
        assert 0 < traffic["low"] <= traffic["ratio"] <= traffic["high"]
        assert cell["arms"][arm]["output_bytes"] > 900 * ROWS


def test_an_existing_database_file_is_encrypted(tmp_path: Path) -> None:
    cell = cell_of(tmp_path, run(tmp_path, "sqlite", "sqlcipher", "encrypt-existing"))
    assert cell["arms"]["encrypted"]["output_bytes"] > 900 * ROWS


def fill(small: Path, left: int, ended: threading.Event) -> None:
    """From when a run is about to make its first backup, take all of its disk but `left` bytes, and what a backup gives back, too."""
    taken = 0
    while not ended.wait(0.002):
        if any((small / "scratch").glob("*/cell-0/operation")):
            more = os.statvfs(small).f_bavail * os.statvfs(small).f_frsize - left
            if more <= 0:
                continue
            # The run may write meanwhile.
            with contextlib.suppress(OSError), (small / "filler").open("ab") as file:
                os.posix_fallocate(file.fileno(), taken, more)
                taken = file.seek(0, os.SEEK_END)


def test_a_disk_that_is_full_is_one_line_and_nothing_is_left(tmp_path: Path, require: Require) -> None:
    require(os.geteuid() == 0, "only root can mount a small disk")
    small, ended = Path(tempfile.mkdtemp(dir="/var/tmp")), threading.Event()  # pytest's own are closed to 'nobody'
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100M,mode=711", "small", str(small)], check=True)
    filler = threading.Thread(target=fill, args=(small, 1 << 20, ended))
    filler.start()
    try:
        done = run(tmp_path, "sqlite", "sqlcipher", "backup", seconds=5.0, scratch=str(small / "scratch"))
        assert done.returncode == 1, done.stdout + done.stderr
        cell = json.loads((tmp_path / "run" / "result.json").read_text())["cells"][0]
        assert cell["status"] == "failed"
        assert "set CIPHERCOST_SCRATCH to a directory on a larger one" in cell["reason"]
        assert "\n" not in cell["reason"]
        assert "Traceback" not in done.stdout + done.stderr
        assert [path for path in (small / "scratch").rglob("*") if path.is_file()] == []
    finally:
        ended.set()
        filler.join()
        subprocess.run(["umount", "--lazy", str(small)], check=False)
        small.rmdir()
