"""Whole runs whose load Go's drivers make: proven by all witnesses, also with a client certificate, and where the driver chooses the cipher."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

import short
from ciphercost.load.drivers import go, named
from ciphercost.model.errors import CiphercostError
from conftest import Require, RequireServer

SHORT = ("--quick", "--time", "4s", "--no-latency", "--no-progress", "--regime", "one-core")
CELLS = {
    "pgx": ("postgresql", ["--set", "client-cert=on"], "peer verified"),
    "lib-pq": ("postgresql", ["--set", "verify=ca"], "peer verified"),
    "go-mysql": ("mariadb", [], "TLS_AES_128_GCM_SHA256"),
}
"""Engine, options, and words of the proof."""


@pytest.mark.parametrize("name", CELLS)
def test_a_run_is_proven(name: str, tmp_path: Path, require_server: RequireServer, require: Require) -> None:
    engine, options, words = CELLS[name]
    require_server(engine)
    try:
        go.program()
    except CiphercostError as error:
        require(None, str(error))
    command = ["run", f"{engine}:tls", "--client", name, *options, *SHORT, "-o", "out"]
    done = short.run(command, cwd=tmp_path, env=dict(os.environ))
    assert done.returncode == 0, done.stdout + done.stderr
    text = " ".join(done.stdout.split())
    assert f"{name} {named(name)[-1].version}" in text
    assert words in text
    assert "witnesses: client, server, wire" in text
    [cell] = msgspec.json.decode((tmp_path / "out" / "result.json").read_bytes())["cells"]
    assert cell["encryption"]["driver"].endswith(named(name)[-1].version)
