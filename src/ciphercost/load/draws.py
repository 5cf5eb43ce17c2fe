"""Statements with values in place of their variables, for questions to a server that are not load. Pure.

Values come from this process's own generator, not from the agent's: both arms get the same ones, in the same order.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

from ciphercost.load import sql_text
from ciphercost.load.program import Program
from ciphercost.load.script_parts import Script, Variable

_PLACE = re.compile(r"\$(\d+)")


def operations(program: Program, arm: str, count: int, seed: int, *, sql: bool) -> list[list[tuple[str, str]]]:
    """The statements of `count` operations, each transaction in turn, each with its own headers if it is a request.

    `sql`: values are written as SQL literals; otherwise as they are, as in commands and requests. The same seed gives both arms
    the same values.
    """
    draw = random.Random(seed)  # noqa: S311 - nothing secret depends on it
    drawn_operations = []
    for number in range(count):
        script = program.transactions[number % len(program.transactions)][2]
        values = {variable.name: _value(variable, number, draw) for variable in script.variables}
        drawn_operations.append(
            [
                (
                    _filled(
                        script, statement.sql, arguments := [values[name] for name in statement.parameters], sql=sql
                    ),
                    _filled(script, statement.headers, arguments, sql=False),
                )
                for statement in script.statements
                if statement.arm in ("", arm) and not statement.sql.startswith("THINK")
            ]
        )
    return drawn_operations


def drawable(program: Program) -> bool:
    """Whether this process can draw all of its variables: it has no key to seal values with."""
    kinds = {variable.kind for _, _, script in program.transactions for variable in script.variables}
    return kinds <= {*_KINDS}


_KINDS: Mapping[str, Callable[[Variable, int, random.Random], int | str]] = {
    "uniform": lambda variable, _, draw: draw.randint(variable.low or 0, variable.high or 0),
    "zipfian": lambda variable, _, draw: draw.randint(variable.low or 0, variable.high or 0),
    "each": lambda variable, number, _: min((variable.low or 0) + number, variable.high or 0),
    "sequence": lambda variable, number, _: (variable.low or 0) + number,
    "text": lambda variable, _, draw: "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=variable.length or 1)),
    "constant": lambda variable, _, __: variable.value or "",
}


def _value(variable: Variable, number: int, draw: random.Random) -> int | str:
    return _KINDS[variable.kind](variable, number, draw)


def _filled(script: Script, statement: str, values: list[int | str], *, sql: bool) -> str:
    if not sql:
        return _PLACE.sub(lambda match: str(values[int(match[1]) - 1]), statement)
    tokens = sql_text.tokens(statement, script.dialect, "statement")
    return "".join(
        _literal(values[int(token.text[1:]) - 1], script.dialect) if token.kind == "place" else token.text
        for token in tokens
    )


def _literal(value: int | str, dialect: str) -> str:
    text = str(value)
    if re.fullmatch(r"\d+", text):
        return text
    if re.fullmatch(r"-\d+", text):
        return f"({text})"
    if dialect == "mysql":
        text = text.replace("\\", "\\\\")
    return "'" + text.replace("'", "''") + "'"
