"""Whole runs on a real H2, in transit and at rest, both arms proven."""

from __future__ import annotations

from pathlib import Path

import pytest

from ciphercost import mechanisms
from conftest import RequireServer
from test_real import SHORT, measured, result_of


@pytest.mark.parametrize(
    ("mechanism", "extra"),
    [
        ("tls", ()),
        ("tls", ("--workload", "connect", "--set", "version=1.2")),
        ("tls", ("--workload", "bulk-read", "--set", "size=64KB")),
        ("tls", ("--workload", "mixed-crud", "--per-request")),
        ("tls", ("--workload", "tpcb")),
        ("h2-aes", ("--workload", "scan", "--rows", "20000", "--cache", "small", "--time", "8s")),
        ("h2-aes", ("--workload", "insert", "--time", "8s")),
        ("h2-aes", ("--workload", "bulk-load", "--time", "8s")),
        ("h2-aes", ("--workload", "checkpoint", "--time", "8s")),
        ("gocryptfs", ("--workload", "insert", "--time", "8s")),
    ],
    ids=lambda value: value if isinstance(value, str) else (value[1] if value else "point-select"),
)
def test_a_cell_is_proven_and_measured(
    tmp_path: Path, require_server: RequireServer, require_java: None, mechanism: str, extra: tuple[str, ...]
) -> None:
    del require_java
    require_server("h2")
    done = measured("run", f"h2:{mechanism}", *SHORT, *extra, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    assert (cell["status"], cell["client"]) == ("ok", "H2 JDBC Driver 2.5.252")
    heard = {(proof["arm"], proof["witness"]) for proof in cell["proofs"] if proof["passed"]}
    assert heard == {
        (arm, witness) for arm in ("plain", "encrypted") for witness in mechanisms.get(mechanism).witnesses
    }
    assert cell["overhead"]["server_cpu_per_op"]["ratio"] > 0
    assert not cell["arms"]["plain"].get("errors")
    directory = next((tmp_path / "runs").iterdir())
    assert all("password" not in path.read_text() for path in directory.glob("*.json*"))
