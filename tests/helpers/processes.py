"""Wait for an event, and find the processes and open files of a run."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from ciphercost.host import ports, run_ownership

PATIENCE = 120.0
"""Longest wait for an event, seconds; no test asserts how fast it comes."""


def wait_for(what: str, condition: Callable[[], bool], patience: float = PATIENCE) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"waited {patience:g} s for: {what}"
        time.sleep(0.02)


def listens(process: subprocess.Popen[bytes], port: int) -> bool:
    """Wait until it listens on this port. False: it has ended, perhaps because another process took the port before it."""
    wait_for(
        "a server to listen",
        lambda: process.poll() is not None or ports.port_owner(port, process.pid, os.geteuid()).ours,
    )
    return process.poll() is None


def marked(run_id: str) -> list[int]:
    """Processes with this run's mark."""
    mark = f"{run_ownership.RUN_MARK}={run_id}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def opened(pid: int) -> dict[str, int]:
    """Flags of a process's open files, such as `O_DIRECT`, by target. Omits files that are closed meanwhile; none if it has ended."""
    found: dict[str, int] = {}
    try:
        paths = list(Path(f"/proc/{pid}/fd").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        paths = []  # a background process of the server's that has ended
    for path in paths:
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{pid}/fdinfo/{path.name}").read_text()
            found[str(path.readlink())] = int(text.split("flags:")[1].split()[0], 8)
    return found
