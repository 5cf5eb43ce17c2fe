"""passwords: of servers that are the user's: asked for once, on a terminal, where the server wants one and none was found.

They are kept in this process alone: never on disk, never in an argument.
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Mapping

from ciphercost.errors import AgentError

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


def ask_where_wanted(
    arms: list[dict[str, object]], connect: Callable[[dict[str, object]], object], wants: Callable[[AgentError], bool]
) -> bool:
    """Try each arm's connection until one gets in. Where one is refused for want of a password, and a terminal is there, ask for it.

    Returns whether it asked; then `with_password` knows the answer. Every other refusal is left to who comes later to report.
    """
    if not sys.stdin.isatty() or any("password" in fields for fields in arms):
        return False
    for fields in arms:
        try:
            connect(fields)
        except AgentError as error:
            if not wants(error):
                continue
            host, port, user = key_of(fields)
            _known[host, port, user] = getpass.getpass(f"Password of {user} at {host}:{port}: ")
            return True
        return False
    return False
