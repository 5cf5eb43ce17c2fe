"""A root whose umask keeps others out, as hardened systems set it: servers run as nobody, and get what a run makes for them."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from functools import partial
from pathlib import Path

import pytest

import steady
from conftest import Require, RequireServer
from test_real import CLI, SHORT

PRIVATE = 0o077


@pytest.mark.parametrize("target", ["postgresql:tls", "mariadb:tls", "nginx:tls --workload page", "valkey:tls"])
def test_a_run_is_proven(tmp_path: Path, target: str, require: Require, require_server: RequireServer) -> None:
    require(os.geteuid() == 0, "needs root: another user's servers run as that user")
    require_server(target.partition(":")[0])
    argv = [CLI, "run", *target.split(), *SHORT, "-o", "run", "--json", "out.json"]
    run = partial(subprocess.run, argv, cwd=tmp_path, capture_output=True, text=True, check=False, umask=PRIVATE)
    done = steady.command(run, tmp_path, tmp_path / "run")
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = json.loads((tmp_path / "out.json").read_text())["cells"]
    assert cell["status"] == "ok"
    assert all(proof["passed"] for proof in cell["proofs"])
    # What the user keeps is as private as the umask says.
    assert stat.S_IMODE((tmp_path / "out.json").stat().st_mode) & PRIVATE == 0
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) & PRIVATE == 0
