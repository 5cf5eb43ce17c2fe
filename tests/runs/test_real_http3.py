"""A whole run by HTTP/3, beside HTTP/2: proven, measured, and with a word on what its plain arm is."""

from __future__ import annotations

from pathlib import Path

from ciphercost.host import link
from conftest import RequirePossible, RequireServer
from test_real import measured, result_of


def test_http3_is_measured_beside_http2(require_server: RequireServer, tmp_path: Path) -> None:
    require_server("nginx", "1.26")
    run = ["run", "nginx@1.26:tls", "--matrix", "http=2,3", "--set", "size=10KB", "--workload", "file"]
    options = ["--quick", "--time", "4s", "--no-progress", "-o", "run", "--json", "out.json"]
    done = measured(*run, *options, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    by_version = {cell["factors"]["http"]: cell for cell in result_of(tmp_path)["cells"]}
    by_tcp, by_quic = by_version["2"], by_version["3"]
    assert {cell["status"] for cell in by_version.values()} == {"ok"}
    assert (by_quic["encryption"]["http"], "http" in by_tcp["encryption"]) == ("HTTP/3", False)
    assert "http: not set | 3" in by_quic["config_diff"]
    wire = next(proof for proof in by_quic["proofs"] if (proof["arm"], proof["witness"]) == ("encrypted", "wire"))
    assert "QUIC version 1 by UDP" in wire["detail"]
    assert "http3" in {warning["code"] for warning in by_quic["warnings"]}
    # A response of 10 KB takes several datagrams, none of which has more than 1472 bytes.
    encrypted = by_quic["arms"]["encrypted"]
    assert encrypted["segments_per_op"] >= encrypted["wire_bytes_per_op"] / 1472


def test_what_a_link_loses_is_sent_again(
    require_server: RequireServer, require_possible: RequirePossible, tmp_path: Path
) -> None:
    """Of QUIC, by the agent's own timers: a request that was lost would otherwise never be answered."""
    require_server("nginx", "1.26")
    require_possible(link.check_rights)
    run = [
        "run",
        "nginx@1.26:tls",
        "--set",
        "http=3",
        "--set",
        "size=10KB",
        "--workload",
        "file",
        "--loss",
        "5%",
        "--delay",
        "2ms",
    ]
    done = measured(*run, "--quick", "--time", "4s", "--no-progress", "-o", "run", "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    assert cell["link"]["lost"] > 0
    assert {arm: facts["errors"] for arm, facts in cell["arms"].items()} == {"plain": 0, "encrypted": 0}
