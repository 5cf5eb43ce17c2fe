"""A user's own server that waits: the report says so first, and computes nothing from the difference."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import waiting_servers
from ciphercost.host import pki
from test_real import ciphercost, result_of

QUICK = ("--quick", "--time", "3s", "--no-latency", "--no-progress", "--json", "out.json")


@contextmanager
def server(directory: Path, arms: str, pause: float = 0.0) -> Iterator[list[str]]:
    """The arguments that name the server's two ports."""
    server_pki = pki.Pki(directory / "secrets", certificate="ecdsa-p256")
    argv = [
        sys.executable,
        waiting_servers.__file__,
        str(server_pki.certificate),
        str(server_pki.key),
        arms,
        str(pause),
    ]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            plain, encrypted = process.stdout.readline().split()
            yield ["--url", plain, "--url", encrypted, "--ca", str(server_pki.ca)]
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("arms", "pause", "code", "first"),
    [
        ("plain", 0, "fixed-wait", "NOT THE COST OF ENCRYPTION: the plain arm waits for about 4"),
        ("encrypted", 0, "fixed-wait", "NOT THE COST OF ENCRYPTION: the encrypted arm waits for about 4"),
        ("", 0.06, "fixed-wait-in-both-arms", "HIDDEN COST: both arms wait for about 6"),
    ],
)
def test_a_server_that_waits_is_found_out(tmp_path: Path, arms: str, pause: float, code: str, first: str) -> None:
    with server(tmp_path, arms, pause) as urls:
        done = ciphercost("run", "url:tls", *urls, *QUICK, "--price", "$0.04/vcpu-hour", cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    words = " ".join(done.stdout.split())
    assert first in words
    (cell,) = result_of(tmp_path)["cells"]
    assert code in {warning["code"] for warning in cell["warnings"]}
    if arms:
        assert "as with a delayed acknowledgement of TCP" in words
        assert "TCP_NODELAY" in words
        assert "servers become" not in words
        assert "is not what encryption costs" in words
        gate = ciphercost(
            "compare", str(next((tmp_path / "runs").iterdir())), "--fail-over", "5%", "--strict", cwd=tmp_path
        )
        assert gate.returncode == 4, gate.stdout + gate.stderr
        assert "waits for about" in " ".join(gate.stdout.split())
