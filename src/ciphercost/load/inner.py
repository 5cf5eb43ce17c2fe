"""Variables inside strings and names. pgbench writes their values there, since it sends text; a server takes parameters only
as whole values. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from ciphercost.load.sql_text import Token
from ciphercost.model.errors import UsageError

_INNER = re.compile(r"(:+)([^\W\d]\w*)")
_STRING = re.compile(r"([eE]?)'(.*)'", re.DOTALL)
_JOINED: dict[str, tuple[str, str, str]] = {
    "": ("(", " || ", ")"),
    "postgresql": ("(", " || ", ")"),
    "sqlite": ("(", " || ", ")"),
    "duckdb": ("(", " || ", ")"),
    "mysql": ("CONCAT(", ", ", ")"),
    "h2": ("CONCAT(", ", ", ")"),
    "firebird": ("(", " || ", ")"),
}
"""By dialect: how a string is put together."""
_AS_TEXT = {"firebird": "CAST({} AS VARCHAR(1000))", "sqlite": "CAST({} AS TEXT)", "postgresql": "{}::text"}
_MAY_TOUCH = {
    "ALL", "AND", "ANY", "AS", "BETWEEN", "BY", "ELSE", "FIRST", "IN", "IS", "LIKE", "LIMIT", "NOT", "OFFSET", "ON", "OR",
    "RETURN", "ROWS", "SELECT", "SKIP", "THEN", "TO", "VALUES", "WHEN", "WHERE",
}  # fmt: skip
"""Words that may stand directly before a variable."""
_TYPES = {
    "BIT", "BOOL", "BOOLEAN", "BYTEA", "CIDR", "DATE", "INET", "INTERVAL", "JSON", "JSONB", "NUMERIC", "POINT", "TIME",
    "TIMESTAMP", "TIMESTAMPTZ", "TIMETZ", "UUID", "XML",
}  # fmt: skip
"""Types whose literals are written as type and string: interval '5 days'."""
WHY = "ciphercost sends variables as parameters, which can only be whole values"


def replaced(
    token: Token,
    before: Token,
    drawn: Collection[str],
    fixed: Mapping[str, int | str],
    place: Callable[[str], str],
    where: str,
    dialect: str,
) -> str:
    """A string or a quoted name with its variables replaced. `before`: the word before it; `place` gives a variable's `$1`.

    Raises UsageError for a variable where no parameter can be.
    """

    def fill(match: re.Match[str]) -> str:
        colons, name = match.groups()
        return str(fixed[name]) if len(colons) == 1 and name in fixed and name not in drawn else match[0]

    text = _INNER.sub(fill, token.text)
    inside = [match for match in _INNER.finditer(text) if len(match[1]) == 1 and match[2] in drawn]
    if not inside:
        return text
    name = inside[0][2]
    string = _STRING.fullmatch(text)
    if token.kind == "name" or string is None:
        what = "a quoted name" if token.kind == "name" else "this string"
        raise UsageError(f"{where}: ':{name}' is in {what}: {WHY}; write it outside of quotes")
    if before.kind == "word" and before.text.upper() in _TYPES:
        raise UsageError(
            f"{where}: ':{name}' is in a literal of type {before.text}: {WHY}; write CAST(… || :{name} AS {before.text})"
        )
    prefix, content = string.groups()
    if len(inside) == 1 and content == f":{name}" and dialect in ("", "postgresql"):
        return place(name)  # the server takes its type from where it stands, as it does for '42'
    pieces: list[str] = []
    at = 0
    for match in _INNER.finditer(content):
        if len(match[1]) > 1 or match[2] not in drawn:
            continue
        if match.start() > at:
            pieces.append(f"{prefix}'{content[at : match.start()]}'")
        pieces.append(_AS_TEXT.get(dialect, "{}").format(place(match[2])))
        at = match.end()
    if at < len(content):
        pieces.append(f"{prefix}'{content[at:]}'")
    begin, between, end = _JOINED.get(dialect, _JOINED[""])
    return f"{begin}{between.join(pieces)}{end}"


def mentioned(text: str) -> list[str]:
    """The names in a string or a quoted name that would be replaced if they were variables."""
    return [name for colons, name in _INNER.findall(text) if len(colons) == 1]


def check_apart(before: Token, name: str, where: str) -> None:
    """Raises UsageError for a variable that continues a name: `table_:n`."""
    if before.kind == "word" and before.text.upper() not in _MAY_TOUCH:
        raise UsageError(f"{where}: ':{name}' continues the name {before.text}: {WHY}")
