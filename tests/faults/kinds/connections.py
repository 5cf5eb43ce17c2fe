"""Connections to a server that the user runs: they break between here and there, or there are none left."""

from __future__ import annotations

import time
from collections.abc import Callable

from ciphercost.load.agent import Agent
from ciphercost.model.errors import AgentError
from faults.proxy import Proxy
from faults.world import WHILE, Fault, Going, World
from userservers import ENGINES, user_server

DEADLINE = "1"
"""CIPHERCOST_TIMEOUT of these runs, so that silence does not last long."""
MOST = 400
"""Connections that are tried to take all that a server has."""


def behind_a_proxy(world: World) -> None:
    """Start a server as a user has it, with a proxy in front, and measure it by its URL."""
    server = world.stack.enter_context(user_server(world.engine, world.directory))
    proxy = world.stack.enter_context(Proxy(server.fields.port))
    world.proxy, world.server = proxy, server
    world.environment |= {**server.environment, "CIPHERCOST_TIMEOUT": DEADLINE}
    world.more = ["--url", server.url_for(str(server.fields.user), proxy.port), *server.by_ca]
    world.cleaning.append(world.more)
    world.also_left.append(lambda: [f"schema {name}" for name in server.schemas()])


def mended(world: World) -> None:
    world.proxy.speak()
    world.proxy.reset()


def by(strike: Callable[[Proxy], bool]) -> Callable[[Going], bool]:
    return lambda going: strike(going.world.proxy)


def silent_for_a_while(proxy: Proxy) -> bool:
    hit = proxy.silence()
    time.sleep(WHILE)
    proxy.speak()
    return hit


def refused_for_a_while(proxy: Proxy) -> bool:
    proxy.refusing = True
    hit = proxy.reset()
    time.sleep(WHILE)
    proxy.speak()
    return hit


def used_up(going: Going) -> bool:
    """Take every connection that the server has, for a while."""
    with Agent() as agent:
        for number in range(MOST):
            try:
                agent.connect(f"taken{number}", going.world.server.fields | {"connections": 1})
            except AgentError:
                time.sleep(WHILE)
                return True
    return False


def restarted(going: Going) -> bool:
    """Stop the server in order, and start it again."""
    going.world.server.restart()
    going.world.proxy.target = going.world.server.fields.port
    return True


def can_be_a_users(target: str) -> bool:
    return target.partition(":")[0] in ENGINES


def has_a_limit(target: str) -> bool:
    return can_be_a_users(target) and not target.startswith("firebird")


def broken(name: str, strike: Callable[[Going], bool], suits: Callable[[str], bool] = can_be_a_users) -> Fault:
    return Fault(name, strike, behind_a_proxy, mended, suits, changes_figures=True)


FAULTS = (
    broken("connections reset", by(Proxy.reset)),
    broken("connections closed", by(Proxy.cut)),
    broken("connections half open", by(Proxy.half_open)),
    broken("nothing arrives any more", by(Proxy.silence)),
    broken("nothing arrives for 2 s", by(silent_for_a_while)),
    broken("connections reset and refused for 2 s", by(refused_for_a_while)),
    broken("server restarted", restarted),
    broken("no connection left for 2 s", used_up, has_a_limit),
)
