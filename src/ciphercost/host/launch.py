"""launch: starts a server on a free port of one address and waits until it answers, or raises an error with the end of
its log.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import msgspec

from ciphercost.host import tls_library
from ciphercost.host.ports import LOOPBACK, free_port, port_owner
from ciphercost.host.run_ownership import cgroup_for, server_user
from ciphercost.host.supervisor import Process, Supervisor
from ciphercost.model.errors import RunError

START_SECONDS = 60.0
LOOK_SECONDS = 0.2
"""Seconds between two reads of a server's log while it starts."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.01, 0.05
"""Seconds between two looks at its port."""
MOST_READ = 10_000_000
"""Maximum bytes read of a log: a server without its key may repeat a message forever."""
ATTEMPTS = 5
"""Number of attempts: another program may take the port before the server does."""
LAST_LINES = 12
VARIABLE = "env:"
"""Prefix of a setting that is an environment variable."""
LISTEN = "listen:address"
"""Setting that is the address on which the server listens. No user can give it: no name of a setting has a colon."""


class PortTaken(RunError):
    """Another program listens on the port chosen for a server."""


class Launch(msgspec.Struct):
    """A server that answers."""

    process: Process
    port: int
    cgroups: tuple[Path, ...]
    address: str = LOOPBACK
    log: Path = Path()
    """What it prints."""


def apart(settings: Mapping[str, str] | None) -> tuple[dict[str, str], dict[str, str], str]:
    """Split the settings given to an engine into (server settings, environment variables, address to listen on). Pure."""
    given, environment = dict(settings or {}), {}
    address = given.pop(LISTEN, LOOPBACK)
    for name in [setting for setting in given if setting.startswith(VARIABLE)]:
        environment[name.removeprefix(VARIABLE)] = given.pop(name)
    return given, environment, address


def launch(
    supervisor: Supervisor,
    title: str,
    command: Callable[[int], list[str | Path]],
    answers: Callable[[str, int], bool],
    *,
    directory: Path,
    logs: Path | None,
    env: Mapping[str, str],
    cpus: Iterable[int] | None,
    stop_signal: int = signal.SIGTERM,
    hopeless: str = "",
    also: Callable[[], Iterable[int]] = tuple,
    writable: Iterable[Path] | None = None,
    address: str = LOOPBACK,
    connects: bool = False,
) -> Launch:
    """Start `command(port)` in `directory` and wait until `answers(address, port)`. Raises RunError with the end of the
    server's log.

    `title`: name and version for messages. `answers` raises RunError if the server refuses for good. `hopeless`: if
    this text appears in the log, the server will never answer and might never end, so it is stopped. `also`: other
    ports that the command was given. `writable`: what the server may change, with everything below it, besides the run's
    scratch. [default: its directory and its logs] `address`: where the command listens. `connects`: it may
    also open TCP connections.

    Another program may take the port between its choice and the server's start. So we check that the server itself
    holds the port before we send anything; otherwise we try another port.

    With `tls_library.VARIABLE` in `env`, the program is started with the OpenSSL libraries in that directory.
    """
    name = title.split()[0].lower()
    log = (logs or directory.parent) / f"{name}-{directory.name}.log"
    cgroups = cgroup_for(supervisor.run_id, f"{name}-{secrets.token_hex(4)}")
    output = ""
    for _ in range(ATTEMPTS):
        port = free_port(address)
        begin = log.stat().st_size if log.exists() else 0
        words = command(port)
        if library := env.get(tls_library.VARIABLE):
            words = [*tls_library.command(library, Path(words[0])), *words]
        process = supervisor.spawn(
            words,
            env=env,
            cwd=directory,
            user=server_user(),
            cpus=sorted(cpus) if cpus is not None else None,
            cgroups=cgroups,
            log=log,
            stop_signal=stop_signal,
            writable=[directory, *([logs] if logs else [])] if writable is None else writable,
            connects=connects,
        )
        try:
            ports = [port, *also()]
            if _wait(process, address, ports, title, answers, partial(_after, log, begin, hopeless)):
                return Launch(process, port, cgroups, address, log)
        except PortTaken as error:
            process.stop(5.0)
            output = str(error)
            continue
        except BaseException:
            process.stop(5.0)
            raise
        output = _after(log, begin, hopeless) or log.read_bytes()[begin:].decode(errors="replace")
        if "address already in use" not in output.lower():
            break
    lines = "\n".join(output.strip().splitlines()[-LAST_LINES:])
    raise RunError(f"{title} did not start (log: {log}):\n{lines}")


def _after(log: Path, begin: int, words: str) -> str:
    """The log from offset `begin` to the line that contains `words`. Empty if `words` is empty or missing."""
    if not words or not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(begin)
        output, matched, rest = file.read(MOST_READ).decode(errors="replace").partition(words)
    return output + matched + rest.partition("\n")[0] if matched else ""


def _wait(
    process: Process,
    address: str,
    ports: list[int],
    title: str,
    answers: Callable[[str, int], bool],
    hopeless: Callable[[], object],
) -> bool:
    """True when the server answers on the first of its ports; False when it has ended, or was hopeless and was stopped.

    Raises PortTaken if another program listens on one of them.
    """
    port = ports[0]
    deadline = time.monotonic() + START_SECONDS
    look, pause = time.monotonic() + LOOK_SECONDS, SHORTEST_PAUSE
    while process.poll() is None:
        if _listens(process, address, port) and answers(address, port):
            for port_number in ports:
                # This also covers the first port, which may have been taken meanwhile.
                _listens(process, address, port_number)
            return process.poll() is None
        if time.monotonic() >= deadline:
            raise RunError(f"{title} did not answer on {address}, port {port}, within {START_SECONDS:g} seconds")
        if time.monotonic() >= look:
            if hopeless():
                break
            look = time.monotonic() + LOOK_SECONDS
        time.sleep(pause)
        pause = min(1.2 * pause, LONGEST_PAUSE)
    process.stop(0.1)
    return False


def _listens(process: Process, address: str, port: int) -> bool:
    """Whether the server listens on this port. Raises PortTaken if another program does."""
    user = server_user()
    owner = port_owner(port, process.pid, user[0] if user else os.geteuid(), address)
    if owner.others:
        raise PortTaken(f"port {port} was taken meanwhile by {owner.others}")
    return owner.ours
