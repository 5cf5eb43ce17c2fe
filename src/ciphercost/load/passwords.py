"""Passwords of servers that the user already runs. A user at a terminal is asked once, if the server wants a password
and none was found.

They stay in this process's memory: never on disk, never in an argument.
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from ciphercost.load import password_command
from ciphercost.model.connection import Connection
from ciphercost.model.errors import AgentError
from ciphercost.model.secret import Secret

if TYPE_CHECKING:
    from ciphercost.load.agent import Agent

Key = tuple[str, int, str]
"""Address, port, user."""
_known: dict[Key, Secret] = {}


def key_of(connection: Connection) -> Key:
    """Derive the key from where a connection leads. Pure."""
    return connection.host, connection.port, connection.user or ""


def with_password(connection: Connection, stored_password: Secret | None) -> Connection:
    """Return it with the password that a command prints, else the stored one, else the one that the user typed, else without any."""
    password = password_command.found() or stored_password or _known.get(key_of(connection))
    return connection | {"password": password} if password else connection


def may_ask(connection: Connection) -> bool:
    """Whether this connection has no password and standard input is a terminal, so that a user can type one."""
    return not connection.password and sys.stdin.isatty()


def ask_where_wanted(
    agent: Agent,
    connection: Connection,
    wants: str,
    paused: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> bool:
    """Try this connection; if the server refuses it with the text `wants`, ask the user for the password.

    Returns whether it asked; `with_password` then knows the answer. Any other refusal is left for a later connection to
    report. `paused`: a context in which nothing else is drawn on the terminal.
    """
    try:
        agent.connect("password", connection)
    except AgentError as error:
        if not wants or wants not in str(error):
            return False
        host, port, user = key_of(connection)
        with paused():
            _known[host, port, user] = Secret(getpass.getpass(f"Password of {user} at {host}:{port}: "))
        return True
    agent.disconnect("password")
    return False
