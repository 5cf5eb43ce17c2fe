"""Processes that are stopped (SIGSTOP) and stay so, and a link that is removed: the run ends in time and says what it was."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from functools import partial
from pathlib import Path

from faults.world import Fault, Going, World, has_server, send

DEADLINE = "2"
"""CIPHERCOST_TIMEOUT of these runs, so that patience does not last long."""
DEVICES = Path("/sys/class/net")


def impatient(world: World) -> None:
    world.environment["CIPHERCOST_TIMEOUT"] = DEADLINE


def stopped(who: str, going: Going) -> bool:
    return send(getattr(going, who)(), signal.SIGSTOP)


def stopped_alone(going: Going) -> bool:
    """The supervisor is stopped and its controller killed: nobody is left to continue it but `clean`."""
    supervisors = going.supervisors()
    return send(supervisors, signal.SIGSTOP) and send(going.controllers(), signal.SIGKILL)


def first_killed(going: Going) -> bool:
    """The server's first process, whose children may go on serving."""
    return send(going.servers()[:1], signal.SIGKILL)


def linked(world: World) -> None:
    world.more = [*world.more, "--bandwidth", "1Gbit"]


def link_removed(going: Going) -> bool:
    """Remove the server's end of the run's link, and with it the other."""
    run = going.run_id()
    names = [
        path.name.rpartition("-")[2] for path in Path("/run/netns").glob("ciphercost-*") if run and run in path.name
    ]
    devices = [f"cc{name}" for name in names if (DEVICES / f"cc{name}").exists()]
    for device in devices:
        subprocess.run(["ip", "link", "del", "dev", device], check=False)
    return bool(devices)


def supervisor_killed(going: Going) -> bool:
    return send(going.supervisors(), signal.SIGKILL)


def may_be_linked(target: str) -> bool:
    return os.geteuid() == 0 and shutil.which("ip") is not None and has_server(target)


FAULTS = (
    Fault("supervisor stopped", partial(stopped, "supervisors"), impatient),
    Fault("supervisor stopped and controller killed", stopped_alone),
    Fault("agent stopped", partial(stopped, "agents"), impatient),
    Fault("server stopped", partial(stopped, "servers"), impatient, suits=has_server),
    Fault("first process of the server killed", first_killed, suits=has_server),
    Fault("link removed", link_removed, linked, suits=may_be_linked, changes_figures=True),
    Fault("supervisor killed, with a link", supervisor_killed, linked, suits=may_be_linked, changes_figures=True),
)
