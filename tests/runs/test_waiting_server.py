"""A user's own server that waits: the report says so first, and computes nothing from the difference."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import steady
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


def codes(cell: dict[str, Any]) -> set[str]:
    return {warning["code"] for warning in cell["warnings"]}


@pytest.mark.parametrize(
    ("arms", "pause", "code", "first", "least"),
    [
        ("plain", 0, "fixed-wait", "NOT THE COST OF ENCRYPTION: the plain arm waits for about", 38),
        ("encrypted", 0, "fixed-wait", "NOT THE COST OF ENCRYPTION: the encrypted arm waits for about", 38),
        ("", 0.06, "fixed-wait-in-both-arms", "HIDDEN COST: both arms wait for about", 58),
    ],
)
def test_a_server_that_waits_is_found_out(
    tmp_path: Path, arms: str, pause: float, code: str, first: str, least: int
) -> None:
    def waited(place: Path) -> tuple[str, dict[str, Any]]:
        place.mkdir()
        with server(place, arms, pause) as urls:
            done = ciphercost("run", "url:tls", *urls, *QUICK, "--price", "$0.04/vcpu-hour", cwd=place)
            assert done.returncode == 0, done.stdout + done.stderr
        (cell,) = result_of(place)["cells"]
        return " ".join(done.stdout.split()), cell

    # On a busy machine each operation waits for a core too, and for a different time.
    (words, cell), place = steady.tried(waited, tmp_path, lambda outcome: code in codes(outcome[1]))
    assert code in codes(cell)
    found = re.search(rf"{first} (\d+) ms", words)
    assert found, words
    milliseconds = int(found[1])
    assert least <= milliseconds < 3 * least
    if arms:
        if milliseconds < 48:
            assert "as with a delayed acknowledgement of TCP" in words
            assert "TCP_NODELAY" in words
        assert "servers become" not in words
        assert "is not what encryption costs" in words
        gate = ciphercost("compare", str(next((place / "runs").iterdir())), "--fail-over", "5%", "--strict", cwd=place)
        assert gate.returncode == 4, gate.stdout + gate.stderr
        assert "waits for about" in " ".join(gate.stdout.split())
