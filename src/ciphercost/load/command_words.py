"""command_words: a command of the user's as words, with its placeholders filled in. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from ciphercost.model.errors import UsageError, nearest

NAMES = ("seconds", "seed", "clients", "host", "port", "ca")
"""Placeholders of a command that makes load."""
PLACES = ("host", "port", "ca")
"""Those of a command before or after a session."""
PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
"""A literal brace, written twice; a placeholder; or a brace that is neither."""
SHELL = re.compile(r"^(?:\|\|?|&&?|;|>>?|<|2>&1|[12]?>.*)$")
"""Words that mean something to a shell only."""


def words(option: str, text: str) -> list[str]:
    """Split a command as a shell would. `option`: for messages. Raises UsageError."""
    try:
        parts = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{option}: {str(error).lower()} in: {text}") from None
    if not parts:
        raise UsageError(f"{option} is empty; write a command, e.g. {option} 'pgbench -S -T {{seconds}} -p {{port}}'")
    if shell := next((part for part in parts if SHELL.match(part)), ""):
        raise UsageError(
            f"{option}: the command runs without a shell, so '{shell}' would be an argument; write sh -c '…' around it"
        )
    return parts


def placeholders(option: str, text: str, known: tuple[str, ...] = NAMES) -> set[str]:
    """The placeholders that a command has. Raises UsageError for another one, or for a single brace."""
    found = set()
    for match in PART.finditer(text):
        if match[0] in ("{{", "}}"):
            continue
        if match[1] is None:
            raise UsageError(f"{option}: has a single '{match[0]}'; write {2 * match[0]} for a literal brace")
        if match[1] not in known:
            raise UsageError(
                f"{option}: unknown placeholder {match[0]}: {nearest(match[1], known)}; write {{{{ and }}}} for literal braces"
            )
        found.add(match[1])
    return found


def filled(parts: list[str], values: Mapping[str, str | int]) -> list[str]:
    """The words with every placeholder replaced by its value. The words have been checked by `placeholders`."""

    def value(match: re.Match[str]) -> str:
        return match[0][0] if match[1] is None else str(values[match[1]])

    return [PART.sub(value, part) for part in parts]
