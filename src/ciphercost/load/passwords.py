"""Passwords of servers that the user already runs. A user at a terminal is asked once, if the server wants a password
and none was found.

They stay in this process's memory: never on disk, never in an argument.
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from ciphercost.model.errors import AgentError
from ciphercost.model.secret import Secret

if TYPE_CHECKING:
    from ciphercost.load.agent import Agent

Key = tuple[str, int, str]
"""Address, port, user."""
_known: dict[Key, Secret] = {}


def key_of(fields: Mapping[str, object]) -> Key:
    """Derive the key from fields of the agent's `connect`. Pure."""
    return str(fields["host"]), int(str(fields["port"])), str(fields["user"])


def with_password(fields: Mapping[str, object], found: Secret | None) -> dict[str, object]:
    """Return the fields with the password that was found, else with the one that the user typed, else without any."""
    password = found or _known.get(key_of(fields))
    return {**fields, "password": password} if password else dict(fields)


def may_ask(fields: Mapping[str, object]) -> bool:
    """Whether this connection has no password and standard input is a terminal, so that a user can type one."""
    return not fields.get("password") and sys.stdin.isatty()


def ask_where_wanted(
    agent: Agent,
    fields: Mapping[str, object],
    wants: str,
    paused: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> bool:
    """Try this connection; if the server refuses it with the text `wants`, ask the user for the password.

    Returns whether it asked; `with_password` then knows the answer. Any other refusal is left for a later connection to
    report. `paused`: a context in which nothing else is drawn on the terminal.
    """
    try:
        agent.connect("password", **fields)
    except AgentError as error:
        if not wants or wants not in str(error):
            return False
        host, port, user = key_of(fields)
        with paused():
            _known[host, port, user] = Secret(getpass.getpass(f"Password of {user} at {host}:{port}: "))
        return True
    agent.disconnect("password")
    return False
