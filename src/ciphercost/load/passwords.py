"""passwords: of servers that are the user's: asked for once, on a terminal, where the server wants one and none was found.

They are kept in this process alone: never on disk, never in an argument.
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from ciphercost.model.errors import AgentError

if TYPE_CHECKING:
    from ciphercost.load.agent import Agent

Key = tuple[str, int, str]
"""Address, port, user."""
_known: dict[Key, str] = {}


def key_of(fields: Mapping[str, object]) -> Key:
    """Of the agent's `connect`. Pure."""
    return str(fields["host"]), int(str(fields["port"])), str(fields["user"])


def with_password(fields: Mapping[str, object], found: str) -> dict[str, object]:
    """The fields with the password that was found, else with the one that was typed in, else without."""
    password = found or _known.get(key_of(fields), "")
    return {**fields, "password": password} if password else dict(fields)


def may_ask(fields: Mapping[str, object]) -> bool:
    """Whether there is no password for this connection, and somebody at a terminal who may know it."""
    return not fields.get("password") and sys.stdin.isatty()


def ask_where_wanted(
    agent: Agent,
    fields: Mapping[str, object],
    wants: str,
    paused: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> bool:
    """Try this connection; where it is refused with the words `wants`, ask for the password.

    Returns whether it asked: then `with_password` knows the answer. Every other refusal is left to who comes later to report.
    `paused`: in which nothing else is drawn on the terminal.
    """
    try:
        agent.connect("password", **fields)
    except AgentError as error:
        if not wants or wants not in str(error):
            return False
        host, port, user = key_of(fields)
        with paused():
            _known[host, port, user] = getpass.getpass(f"Password of {user} at {host}:{port}: ")
        return True
    agent.disconnect("password")
    return False
