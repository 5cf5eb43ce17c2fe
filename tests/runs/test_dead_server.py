"""A server, or one of its processes, that is killed under load: the run ends with an error that names it, never with a number."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import processes
from ciphercost.host.procfs import tree
from conftest import RequireServer

CLI = Path(sys.executable).parent / "ciphercost"
SLICES = 20_000
"""Bytes of slices.jsonl that show that the load goes on."""
SMALL = "--workload", "small-api"


def name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


@pytest.mark.parametrize(
    ("target", "program", "which", "more"),
    [
        ("nginx:tls", "nginx", 0, SMALL),
        ("nginx:tls", "nginx", -1, SMALL),
        ("apache:tls", "apache2", 0, SMALL),
        ("apache:tls", "apache2", -1, SMALL),
        ("caddy:tls", "caddy", 0, SMALL),
        ("postgresql:tls", "postgres", 0, ()),
        ("postgresql:tls", "postgres", -1, ()),
        ("mariadb:tls", "mariadbd", 0, ()),
        ("valkey:tls", "valkey-server", 0, ()),
    ],
)
def test_a_killed_server_is_named(
    tmp_path: Path, require_server: RequireServer, target: str, program: str, which: int, more: tuple[str, ...]
) -> None:
    require_server(target.partition(":")[0])
    directory = tmp_path / "run"
    argv: list[str | Path] = [
        CLI,
        "run",
        target,
        "--quick",
        "--time",
        "30s",
        "--no-latency",
        "--no-progress",
        "-o",
        directory,
        *more,
    ]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        slices = directory / "slices.jsonl"
        processes.wait_for("slices", lambda: slices.exists() and slices.stat().st_size > SLICES, patience=300)
        pids = [pid for pid in tree(process.pid) if name(pid) == program]
        os.kill(pids[which], signal.SIGKILL)
        printed, _ = process.communicate(timeout=600)
    words = " ".join(printed.split())
    assert process.returncode == 1, printed
    assert f"server {program} (process {pids[0]}) died during the measurement" in words
    assert "this cell has no number" in words
    assert "Traceback" not in printed
