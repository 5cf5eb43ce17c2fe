"""Whole runs on Valkey and memcached: proven and measured, with TLS resumption."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import RequireServer
from test_real import measured, result_of

QUICK = ("--quick", "--time", "3s", "--no-latency", "--no-progress")
PROVEN = {(arm, witness) for arm in ("plain", "encrypted") for witness in ("client", "wire")}


@pytest.mark.parametrize("engine", ["valkey", "redis", "memcached"])
@pytest.mark.parametrize(
    "extra",
    [
        ("--workload", "kv-get"),
        ("--workload", "kv-set", "--set", "size=10KB"),
        ("--workload", "connect"),
        ("--workload", "connect", "--set", "resumption=on"),
    ],
    ids=lambda extra: "-".join(extra[1:]).replace("---set", ""),
)
def test_a_cell_is_proven_and_measured(
    tmp_path: Path, require_server: RequireServer, extra: tuple[str, ...], engine: str
) -> None:
    require_server(engine)
    done = measured("run", f"{engine}:tls", *extra, *QUICK, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    assert cell["status"] == "ok"
    assert {arm: facts["errors"] for arm, facts in cell["arms"].items()} == {"plain": 0, "encrypted": 0}
    rows = {arm: facts["rows_per_op"] for arm, facts in cell["arms"].items()}
    assert rows == {"plain": 1, "encrypted": 1}, "every session loads its server anew"
    assert 0 < cell["overhead"]["throughput"]["low"] <= cell["overhead"]["throughput"]["high"]
    assert {(proof["arm"], proof["witness"]) for proof in cell["proofs"] if proof["passed"]} == PROVEN
    assert cell["encryption"]["protocol"] == "TLSv1.3"
    assert cell["encryption"]["verified"] == "yes"
