"""Expands the macros that mark secrets in a workload's SQL into the SQL of one arm. Pure.

    secret(60)              the type of a column for secret texts of up to 60 letters
    sealed(:name, 60)       a text as stored
    opened(s.name, 60)      a stored value as the original text
    matches(s.name, :name, 60)  whether the stored value is this text
    stored_like(s.name, :name, 60)  the same with LIKE, for applications that compare this way

Without encryption they become `varchar(60)`, `:name`, `s.name`, `s.name = :name` and `s.name LIKE :name`, so a workload
that marks its secrets runs with any mechanism. A last argument may name the column: `sealed(:name, 60, patient)`.
`--set secret=…` then chooses columns.
"""

from __future__ import annotations

import re

from ciphercost.load.codec import PLAIN, Codec, Impossible
from ciphercost.model.errors import UsageError

# Quoted text and comments stay as they are.
_TOKEN = re.compile(
    r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/|\b(?:sealed|opened|secret|matches|stored_like)\s*\(|[(),]",
    re.DOTALL | re.IGNORECASE,
)


def used(text: str) -> bool:
    """Whether the text marks anything as secret."""
    return expand(text, _MARK) != expand(text)


def expand(text: str, codec: Codec = PLAIN, where: str = "script") -> str:
    """Return the text with its macros expanded. Raises UsageError naming `where`."""
    parts: list[str] = []
    at = 0
    while (match := _next(text, at)) is not None:
        word = match.group(0)
        name = word.rstrip("(").strip().lower()
        parts.append(text[at : match.start()])
        arguments, at = _arguments(text, match.end(), f"{where}: {name}(…)")
        parts.append(_expanded(name, arguments, codec, where))
    parts.append(text[at:])
    return "".join(parts)


def _next(text: str, at: int) -> re.Match[str] | None:
    for match in _TOKEN.finditer(text, at):
        if match.group(0)[0] not in "'\"-/(),":
            return match
    return None


def _arguments(text: str, start: int, where: str) -> tuple[list[str], int]:
    """Return the arguments between the parentheses, split at their top-level commas, and the position after them."""
    depth, last, arguments = 0, start, []
    for match in _TOKEN.finditer(text, start):
        word = match.group(0)
        if word.endswith("(") and word[0] not in "'\"-/":
            depth += 1
        elif word == ")" and depth:
            depth -= 1
        elif word in (",", ")") and not depth:
            arguments.append(text[last : match.start()].strip())
            last = match.end()
            if word == ")":
                return arguments, last
    raise UsageError(f"{where} is not closed; write the missing )")


FORMS = {
    "secret": "secret(LENGTH)",
    "sealed": "sealed(EXPRESSION, LENGTH)",
    "opened": "opened(COLUMN, LENGTH)",
    "matches": "matches(COLUMN, EXPRESSION, LENGTH)",
    "stored_like": "stored_like(COLUMN, EXPRESSION, LENGTH)",
}


def named(text: str) -> tuple[str, ...]:
    """Return the names of a load's secret columns in the order of its tables; empty if it names none."""
    columns: list[str] = []
    at = 0
    while (match := _next(text, at)) is not None:
        word = match.group(0).rstrip("(").strip().lower()
        arguments, at = _arguments(text, match.end(), word)
        if word == "secret" and len(arguments) == 2:
            columns.append(arguments[1])
    return tuple(dict.fromkeys(columns))


def _expanded(name: str, arguments: list[str], codec: Codec, where: str) -> str:
    form = FORMS[name]
    given = arguments
    if len(arguments) == form.count(",") + 2 and re.fullmatch(r"[a-z_]+", arguments[-1]):
        codec = codec.named(arguments[-1])
        arguments = arguments[:-1]
    if len(arguments) != form.count(",") + 1 or not arguments[-1].isdigit() or not all(arguments):
        raise UsageError(f"{where}: write {form}, got {name}({', '.join(given)})")
    length = int(arguments[-1])
    inner = [expand(argument, codec, where) for argument in arguments[:-1]]
    try:
        match name:
            case "secret":
                return codec.column(length)
            case "sealed":
                return codec.seal(inner[0], length)
            case "opened":
                return codec.open(inner[0], length)
            case "stored_like":
                return codec.like(inner[0], inner[1], length)
            case _:
                return codec.match(inner[0], inner[1], length)
    except Impossible as error:
        raise UsageError(f"{where}: {name}({', '.join(arguments)}): {error}") from None


class _Mark(Codec):
    def column(self, length: int) -> str:
        return f"<{length}>"

    def seal(self, value: str, length: int) -> str:
        return f"<{value}, {length}>"

    def open(self, column: str, length: int) -> str:
        return f"<{column}, {length}>"


_MARK = _Mark()
