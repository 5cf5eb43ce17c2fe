"""Runs of `ciphercost run postgresql:tls --cluster …` that go on while a test does something to the cluster."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import result_schema
from processes import wait_for

CLI = Path(sys.executable).parent / "ciphercost"
FAST = {"CIPHERCOST_TIMEOUT": "9"}
"""A member that does not answer is lost after 3 s."""
PATIENCE = 400.0
"""Seconds in which a run must make load, also on a busy machine."""


class RayCluster(Protocol):
    """A running Ray cluster."""

    @property
    def address(self) -> str:
        """HOST:PORT of its head."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables of whoever uses it."""


@contextlib.contextmanager
def started(cluster: RayCluster, directory: Path, *argv: str) -> Iterator[subprocess.Popen[str]]:
    """A running `ciphercost run postgresql:tls --cluster … -o run --json out.json`."""
    words = ["run", "postgresql:tls", "--quick", *argv, "--cluster", cluster.address, "--no-progress"]
    with subprocess.Popen(
        [CLI, *words, "-o", "run", "--json", "out.json"],
        cwd=directory,
        env={**cluster.environment, **FAST},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for_load(directory: Path, process: subprocess.Popen[str], size: float = 30_000) -> None:
    """Wait until so many bytes of slices are recorded, or the run has ended."""
    slices = directory / "run" / "slices.jsonl"
    wait_for(
        "load", lambda: process.poll() is not None or (slices.exists() and slices.stat().st_size >= size), PATIENCE
    )


def cell_of(directory: Path) -> dict[str, Any]:
    """The only cell of the result in out.json."""
    found: dict[str, Any] = json.loads((directory / "out.json").read_text())
    result_schema.validate(found)
    cell: dict[str, Any] = found["cells"][0]
    return cell
