"""reader: a script → its commands, in their order: statements, and what the backslashes say. Pure.

As in pgbench, a backslash outside of strings and comments ends the statement before it, and the command reaches to the end of the line,
which a `\\` there continues.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ciphercost.load import sql_text
from ciphercost.load.pgbench import parser
from ciphercost.load.pgbench.expression import Call, Constant, Name, Node
from ciphercost.load.pgbench.source import Source
from ciphercost.model.errors import nearest


class Sql(NamedTuple):
    """A statement, and where the columns of its rows go."""

    statement: sql_text.Statement
    at: int
    """Where a later command that belongs to it stands."""
    into: str | None = None
    r"""The prefix of `\gset` or `\aset`; None: neither."""
    every: bool = False
    r"""`\aset`: several rows, or none, are no error."""


class Meta(NamedTuple):
    """A meta command."""

    name: str
    at: int
    variable: str = ""
    node: Node | None = None
    r"""The expression of `\set`, `\if`, `\elif`; of `\sleep` its microseconds."""


Command = Sql | Meta
EXAMPLES = {
    "set": r"\set NAME EXPRESSION', e.g. '\set aid random(1, 100000)",
    "if": r"\if EXPRESSION', e.g. '\if :n > 5",
    "elif": r"\elif EXPRESSION', e.g. '\elif :n > 2",
    "else": r"\else",
    "endif": r"\endif",
    "sleep": r"\sleep NUMBER [us|ms|s]', e.g. '\sleep 2 ms",
    "gset": r"\gset [PREFIX]",
    "aset": r"\aset [PREFIX]",
    "startpipeline": r"\startpipeline",
    "syncpipeline": r"\syncpipeline",
    "endpipeline": r"\endpipeline",
}
"""By meta command: how it is written."""
SHELLS = ("setshell", "shell")
PSQLS = {"g": "end the statement with ;", "gx": "end the statement with ;", "gexec": "write the statements themselves"}
"""Meta commands that psql has and pgbench has not: what to do instead."""
UNITS = {"us": 1, "ms": 1000, "s": 1_000_000}
VARIABLE = re.compile(r"[^\W\d]\w*")
_BLANK = re.compile(r"(?:[ \t\r\f\v]|\\\r?\n)*")
_WORD = re.compile(r"(?:(?!\\\r?\n)\S)+")
_SLEEP = re.compile(r"([-+]?\d+)(\D.*)?")


def read(source: Source, dialect: str) -> list[Command]:
    """Raises UsageError with the place of what is wrong."""
    commands: list[Command] = []
    collector = sql_text.Collector(dialect, source)
    at = 0
    while at < len(source.text):
        for token in sql_text.tokens(source.text, dialect, source.where, at):
            if token.kind == "backslash" and token.text == "\\":
                break
            if token.kind == "backslash":
                token = sql_text.Token("code", token.text[1:])
                at += 1
            if statement := collector.add(token, at):
                commands.append(Sql(statement, at))
            at += len(token.text)
        else:
            break
        if statement := collector.close():
            commands.append(Sql(statement, at))
        command, after = meta(source, at)
        if command.name in ("gset", "aset"):
            commands.append(_storing(command, commands, source))
        else:
            commands.append(command)
        at = after
    if statement := collector.close():
        commands.append(Sql(statement, at))
    return commands


def _storing(command: Meta, commands: list[Command], source: Source) -> Sql:
    """The statement before it, which it takes off the end of the list."""
    last = commands.pop() if commands else None
    if not isinstance(last, Sql) or last.into is not None:
        raise source.error(command.at, rf"\{command.name} must follow a statement; write it at the statement's end")
    return last._replace(into=command.variable, every=command.name == "aset", at=command.at)


def meta(source: Source, backslash: int) -> tuple[Meta, int]:
    """(the meta command that begins at this position, the position after its line's end)."""
    word = next(_words(source.text, backslash + 1), None)
    name = word.text.lower() if word else ""
    if name in SHELLS:
        raise source.error(
            backslash,
            rf"\{name} is not supported: a command of the shell is not the server's work, and would run with your rights in each operation; "
            "remove it",
        )
    if word is None or name not in EXAMPLES:
        shown = word.text if word else ""
        instead = PSQLS.get(name) or nearest(name, EXAMPLES)
        raise source.error(backslash, rf"'\{shown}' is not a meta command of pgbench: {instead}")
    variable = ""
    after = word.end
    if name == "set":
        target = next(_words(source.text, after), None)
        if target is None or not VARIABLE.fullmatch(target.text):
            at = target.at if target else backslash
            raise source.error(
                at, f"write '{EXAMPLES[name]}'; a name has letters, digits and _, and begins with no digit"
            )
        variable, after = target.text, target.end
    if name in ("set", "if", "elif"):
        if next(_words(source.text, after), None) is None:
            raise source.error(backslash, f"write '{EXAMPLES[name]}'")
        node, end = parser.parse(source, after)
        return Meta(name, backslash, variable, node), end
    rest = list(_words(source.text, after))
    end = source.text.find("\n", rest[-1].end if rest else after)
    while end > 0 and re.search(r"\\\r?$", source.text[max(0, end - 2) : end]):
        end = source.text.find("\n", end + 1)
    end = end if end >= 0 else len(source.text)
    if name == "sleep":
        return Meta(name, backslash, "", _microseconds(source, backslash, rest)), end
    most = 1 if name in ("gset", "aset") else 0
    if len(rest) > most:
        raise source.error(rest[most].at, rf"unexpected '{rest[most].text}' after \{name}; write '{EXAMPLES[name]}'")
    prefix = rest[0].text if rest else ""
    if prefix and not VARIABLE.fullmatch(prefix):
        raise source.error(
            rest[0].at, f"'{prefix}' can't begin the name of a variable, which has letters, digits and _"
        )
    return Meta(name, backslash, prefix), end


class _Word(NamedTuple):
    text: str
    at: int

    @property
    def end(self) -> int:
        return self.at + len(self.text)


def _words(text: str, at: int) -> Iterator[_Word]:
    """The words of a command, from a position to the end of its line."""
    while True:
        blank = _BLANK.match(text, at)
        at = blank.end() if blank else at
        word = _WORD.match(text, at)
        if word is None:
            return
        yield _Word(word[0], at)
        at = word.end()


def _microseconds(source: Source, backslash: int, words: list[_Word]) -> Node:
    if not words or len(words) > 2:
        raise source.error(backslash, f"write '{EXAMPLES['sleep']}'")
    first, *rest = words
    unit = rest[0] if rest else _Word("s", first.at)
    node: Node
    if first.text.startswith(":") and VARIABLE.fullmatch(first.text[1:]):
        node = Name(first.text[1:], first.at)
    else:
        match = _SLEEP.fullmatch(first.text)
        if match is None or (match[2] and rest):
            raise source.error(first.at, f"'{first.text}' is not a time; write '{EXAMPLES['sleep']}'")
        if match[2]:
            unit = _Word(match[2], first.at + match.start(2))
        if int(match[1]) < 0:
            raise source.error(first.at, f"{first.text} is a time below 0")
        node = Constant(int(match[1]))
    if unit.text.lower() not in UNITS:
        raise source.error(unit.at, f"'{unit.text}' is not a unit of time; write us, ms or s")
    factor = UNITS[unit.text.lower()]
    if isinstance(node, Constant):
        assert isinstance(node.value, int)
        return Constant(node.value * factor)
    return node if factor == 1 else Call("*", (node, Constant(factor)), first.at)
