"""Parses a script of a key-value store's commands, one per line, into variables and commands with $1, $2 … Pure.

    \\set id random(1, 1000)
    GET user::id                    the key user:17
    SET "user::id:name" "Ada L."

`\\set` works as in `script`. `:NAME` is replaced by a variable or parameter everywhere, also in quotes; keys contain many
other colons, so one that follows a letter and names nothing stays. A line that begins with `--` or `#` is a comment. A `;`
outside quotes ends a command too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ciphercost.load.script import declared
from ciphercost.load.script_parts import KV, Script, Statement
from ciphercost.model.errors import UsageError, nearest

DIALECTS = ("valkey", "memcached")
"""Dialects of servers that take commands."""
_NAME = re.compile(r":([A-Za-z_]\w*)")
_WORD = re.compile(r"\s+|;|\"[^\"]*\"|'[^']*'|[^\s;\"'][^\s;]*")


def parse(text: str, parameters: Mapping[str, int | str], where: str = "script") -> Script:
    """Parse a script into variables and commands. Parameters are written into the text as they are.

    Raises UsageError naming `where`, the line, and what to write instead.
    """
    variables, lines = declared(text, parameters, where)
    drawn = {variable.name for variable in variables}
    statements = tuple(
        _command(piece, drawn, parameters, f"{where}, line {number}")
        for number, line in enumerate(lines, start=1)
        for piece in _pieces(line, f"{where}, line {number}")
    )
    if not statements:
        raise UsageError(f"{where}: contains no command; write one per line, such as GET key")
    return Script(tuple(variables), statements, KV)


def _pieces(line: str, where: str) -> Iterator[str]:
    """The commands of a line. Raises UsageError for a quote that is not closed."""
    if line.lstrip().startswith(("--", "#")):
        return
    at = 0
    held = ""
    while at < len(line):
        match = _WORD.match(line, at)
        if match is None:
            raise UsageError(f"{where}: the quote that begins with {line[at : at + 20]} is not closed")
        if match.group(0) != ";":
            held += match.group(0)
        elif held.strip():
            yield held.strip()
            held = ""
        at = match.end()
    if held.strip():
        yield held.strip()


def _command(text: str, drawn: set[str], parameters: Mapping[str, int | str], where: str) -> Statement:
    order: list[str] = []

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        if name in drawn:
            if name not in order:
                order.append(name)
            return f"${order.index(name) + 1}"
        if name in parameters:
            return str(parameters[name])
        if not re.search(r"\w$", text[: match.start()]):
            raise UsageError(f"{where}: ':{name}' is not set; {nearest(name, [*drawn, *parameters])}")
        return match[0]

    if re.search(r"\$\d", text):
        raise UsageError(f"{where}: $1, $2 … are reserved for the agent; use \\set name … and :name")
    return Statement(_NAME.sub(replace, text), tuple(order))
