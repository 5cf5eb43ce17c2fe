"""launch: a server's command line -> a process that answers on a free port of loopback, or its own last words."""

from __future__ import annotations

import secrets
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from ciphercost.errors import RunError
from ciphercost.guard import Guard, Process, cgroup_for, server_user
from ciphercost.listening import free_port

START_SECONDS = 60.0
ATTEMPTS = 5
"""Somebody may take the port before the server does."""
LAST_LINES = 12
VARIABLE = "env:"
"""How a setting's name begins that is a variable of the environment."""


class Launch(msgspec.Struct):
    """A server that answers."""

    process: Process
    port: int
    cgroups: tuple[Path, ...]


def apart(settings: Mapping[str, str] | None) -> tuple[dict[str, str], dict[str, str]]:
    """(the server's own settings, variables of its environment) of what an engine's `start` is given. Pure."""
    given, environment = dict(settings or {}), {}
    for name in [each for each in given if each.startswith(VARIABLE)]:
        environment[name.removeprefix(VARIABLE)] = given.pop(name)
    return given, environment


def launch(
    guard: Guard,
    title: str,
    command: Callable[[int], list[str | Path]],
    answers: Callable[[int], bool],
    *,
    directory: Path,
    logs: Path | None,
    env: Mapping[str, str],
    cpus: Iterable[int] | None,
    stop_signal: int = signal.SIGTERM,
) -> Launch:
    """Start `command(port)` in `directory` and wait until `answers(port)`. Raises RunError with the end of the server's log.

    `title`: name and version for people. `answers` raises RunError where the server refuses us for good.
    """
    name = title.split()[0].lower()
    log = (logs or directory.parent) / f"{name}-{directory.name}.log"
    cgroups = cgroup_for(guard.run_id, f"{name}-{secrets.token_hex(4)}")
    said = ""
    for _ in range(ATTEMPTS):
        port = free_port()
        begin = log.stat().st_size if log.exists() else 0
        process = guard.spawn(
            command(port),
            env=env,
            cwd=directory,
            user=server_user(),
            cpus=sorted(cpus) if cpus is not None else None,
            cgroups=cgroups,
            log=log,
            stop_signal=stop_signal,
        )
        try:
            if _wait(process, port, title, answers):
                return Launch(process, port, cgroups)
        except BaseException:
            process.stop(5.0)
            raise
        said = log.read_bytes()[begin:].decode(errors="replace")
        if "address already in use" not in said.lower():
            break
    lines = "\n".join(said.strip().splitlines()[-LAST_LINES:])
    raise RunError(f"{title} did not start (log: {log}):\n{lines}")


def _wait(process: Process, port: int, title: str, answers: Callable[[int], bool]) -> bool:
    """True when the server answers, False when it has ended."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None:
        if answers(port):
            return process.poll() is None
        if time.monotonic() >= deadline:
            raise RunError(f"{title} did not answer on port {port} within {START_SECONDS:g} seconds")
        time.sleep(0.01)
    process.stop()
    return False
