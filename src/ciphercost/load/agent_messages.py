"""agent_messages: messages to an agent that consist of many fields, and what its answers hold (PROTOCOL.md). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from ciphercost.host import deadlines
from ciphercost.load.program import Program

COPY_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
"""What COPY's escape letters stand for."""
MARGIN = 30.0
"""Seconds that an agent gets beyond a request's own deadline, so that it can report that the server missed it."""


class Reply(NamedTuple):
    """What a server answered to one query."""

    columns: tuple[str, ...]
    rows: list[list[str | None]]
    """As texts; None: NULL."""


def connect_message(arm: str, fields: Mapping[str, object]) -> dict[str, Any]:
    """The message that opens an arm's connections. Pure."""
    usual: dict[str, object] = {"connections": 1, "threads": 1, "timeout": deadlines.login()}
    return {"type": "connect", "arm": arm, **(usual | dict(fields))}


def connect_seconds(fields: Mapping[str, object]) -> float:
    """Seconds until an agent must have answered it. Pure."""
    count = fields.get("connections", 1)
    return deadlines.connections(count if isinstance(count, int) else 1) + MARGIN


def program_messages(program: Program) -> Iterator[dict[str, Any]]:
    """The messages that tell an agent a program. Pure."""
    yield {"type": "program", "name": program.name}
    if program.key:
        yield {"type": "cipher", "name": "aes256-gcm", "key": program.key}
    for number, (_, weight, script) in enumerate(program.transactions):
        # Two transactions may use the same variable name, so each transaction gets its own prefix.
        prefix = f"t{number}."
        for variable in script.variables:
            fields = msgspec.to_builtins(variable)
            of = {"of": prefix + variable.of} if variable.of else {}
            yield {"type": "variable", **fields, **of, "name": prefix + variable.name}
        yield {"type": "transaction", "name": f"t{number}", "weight": weight}
        for statement in script.statements:
            message = {
                "type": "statement",
                "transaction": f"t{number}",
                "sql": statement.sql,
                "parameters": " ".join(prefix + name for name in statement.parameters),
            }
            message |= {"arm": statement.arm} if statement.arm else {}
            message |= {"headers": statement.headers} if statement.headers else {}
            message |= {"body": statement.body} if statement.body is not None else {}
            yield message | ({"open": True} if statement.open else {})


def reply_of(answer: Mapping[str, Any]) -> Reply:
    """The columns and rows of an answer to `query`. Pure."""
    names = str(answer.get("columns", ""))
    return Reply(tuple(names.split("\t")) if names else (), rows_of(answer))


def rows_of(answer: Mapping[str, Any]) -> list[list[str | None]]:
    """The rows of an answer to `query`. Pure."""
    if not answer["rows"]:
        return []
    return [[_unescape(value) for value in row.split("\t")] for row in answer["text"].split("\n")]


def _unescape(value: str) -> str | None:
    if value == "\\N":
        return None
    if "\\" not in value:
        return value
    return re.sub(r"\\(.)", lambda match: COPY_LETTERS.get(match[1], match[1]), value, flags=re.DOTALL)
