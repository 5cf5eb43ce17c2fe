"""places: a statement with `$1`, `$2` … in place of its variables. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ciphercost.load import inner, opened, sql_text
from ciphercost.load.pgbench.source import Source
from ciphercost.load.script_parts import OPEN, SEAL, SEALED, Statement
from ciphercost.load.sql_text import Token
from ciphercost.model.errors import nearest


def numbered(
    statement: sql_text.Statement,
    drawn: Collection[str],
    fixed: Mapping[str, int | str],
    source: Source,
    dialect: str,
) -> Statement:
    """A statement with `$1`, `$2` … for the variables that are drawn.

    `fixed`: values that never change, by name. `source`: what the statement was read from. Raises UsageError.
    """
    opening = opened.opens(statement.sql, source.place(statement.places[0]))
    order: list[str] = []
    numbers: dict[str, str] = {}

    def place(name: str) -> str:
        if name not in numbers:
            numbers[name] = another(name)
        return numbers[name]

    def another(name: str) -> str:
        # A parameter has one type: the same variable in a string is another one.
        order.append(name)
        return f"${len(order)}"

    written: list[str] = []
    before = word = this = Token("code", "")  # `word`: the last one that is more than white space or a comment
    for token, at in zip(statement.tokens, statement.places, strict=True):
        before, this = this, token
        if before.kind != "comment" and before.text.strip():
            word = before
        text, name = token.text, token.text.removeprefix(":")
        if token.kind == "word" and before.kind == "code" and before.text.endswith("\\"):
            raise source.error(
                at, f"'\\{text}' is not supported: it is a command of a client, not SQL; end the statement with ';'"
            )
        if token.kind == "comment":
            written.append("" if text in (OPEN, SEAL) else text)
        elif token.kind in ("string", "name"):
            written.append(inner.replaced(token, word, drawn, fixed, another, source.place(at), dialect))
        elif token.kind == "place":
            raise source.error(at, f"write ':name' and '\\set name …' instead of '{text}'")
        elif token.kind == "question" and dialect not in ("", "postgresql"):
            raise source.error(at, "write ':name' and '\\set name …' instead of '?'")
        elif token.kind != "variable":
            written.append(text)
        elif before.text == SEAL:
            if name not in drawn:
                raise source.error(at, f"':{name}' is not a variable and can't be sealed; declare it with \\set")
            written.append(place(name + SEALED))
        elif name in drawn:
            inner.check_apart(before, name, source.place(at))
            written.append(place(name))
        elif name in fixed:
            written.append(str(fixed[name]))
        elif statement.body:
            written.append(text)  # a variable of that body
        else:
            raise source.error(at, f"':{name}' is not set; {nearest(name, [*drawn, *fixed])}")
    return Statement("".join(written).strip(), tuple(order), open=opening)
