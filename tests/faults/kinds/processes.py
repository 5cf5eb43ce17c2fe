"""Processes that are killed or stand still."""

from __future__ import annotations

import signal
import time
from functools import partial

from faults.world import Fault, Going, has_server, send

FROZEN = 2.0
"""Seconds that a process stands still."""


def killed(who: str, going: Going) -> bool:
    return send(getattr(going, who)(), signal.SIGKILL)


def one_killed(who: str, going: Going) -> bool:
    pids = getattr(going, who)()
    return bool(pids) and send([going.world.rng.choice(pids)], signal.SIGKILL)


def frozen(who: str, going: Going) -> bool:
    pids = getattr(going, who)()
    hit = send(pids, signal.SIGSTOP)
    time.sleep(FROZEN)
    send(pids, signal.SIGCONT)
    return hit


def together(going: Going) -> bool:
    """Controller, supervisor and agents at the same time, as in a crash of the whole tool."""
    return send([*going.controllers(), *going.supervisors(), *going.agents()], signal.SIGKILL)


def stopped(going: Going) -> bool:
    """The server shuts down in order, as if an administrator had stopped it."""
    servers = going.servers()
    return bool(servers) and send(servers[:1], signal.SIGTERM)


FAULTS = (
    Fault("server killed", partial(killed, "servers"), suits=has_server),
    Fault("one server process killed", partial(one_killed, "servers"), suits=has_server),
    Fault("server frozen for 2 s", partial(frozen, "servers"), suits=has_server),
    Fault("server shut down", stopped, suits=has_server),
    Fault("agent killed", partial(killed, "agents")),
    Fault("agent frozen for 2 s", partial(frozen, "agents")),
    Fault("supervisor killed", partial(killed, "supervisors")),
    Fault("controller killed", partial(killed, "controllers")),
    Fault("controller frozen for 2 s", partial(frozen, "controllers")),
    Fault("controller, supervisor and agents killed", together),
)
