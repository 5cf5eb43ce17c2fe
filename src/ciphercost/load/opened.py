"""opened: which columns of a statement's rows the agent opens. Pure."""

from __future__ import annotations

import re

from ciphercost.load.script_parts import OPEN
from ciphercost.model.errors import UsageError

_CLAUSE = re.compile(
    r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|" + re.escape(OPEN) + r"[\w.]+|/\*.*?\*/|[A-Za-z_]\w*(?:\.\w+)*|[^\s]",
    re.DOTALL,
)
_CLAUSES = {
    "SELECT",
    "RETURNING",
    "FROM",
    "WHERE",
    "GROUP",
    "ORDER",
    "HAVING",
    "SET",
    "VALUES",
    "ON",
    "USING",
    "LIMIT",
    "DISTINCT",
    "UNION",
}


def opens(sql: str, where: str) -> bool:
    """Whether the agent is to open columns of the rows.

    Raises UsageError if a server without the key would have to use one.
    """
    if OPEN not in sql:
        return False
    words = [match.group(0) for match in _CLAUSE.finditer(sql)]
    words = [word for word in words if word.startswith(OPEN) or not word.startswith(("--", "/*"))]
    # One entry per open parenthesis: the clause before it, and whether it may be a whole item of a SELECT list.
    outer: list[tuple[str, bool]] = []
    clause, before, listed = "", "", True
    for number, word in enumerate(words):
        after = words[number + 1].upper() if number + 1 < len(words) else ""
        item = clause in ("SELECT", "RETURNING") and before.upper() in ("SELECT", "RETURNING", ",")
        if word == "(":
            outer.append((clause, listed))
            listed, clause = listed and item, ""
        elif word == ")" and outer:
            clause, listed = outer.pop()
        elif word.startswith(OPEN) and not (item and listed and re.fullmatch(r"[,;)]?|FROM|AS|[A-Z_]\w*", after)):
            column = word.removeprefix(OPEN)
            raise UsageError(
                f"{where}: opened({column}, …) must be an item of the SELECT list on its own: the application opens it, and the server has "
                "no key to compute with it. Return the rows to the application, or use a mechanism with functions of the server"
            )
        elif word.upper() in _CLAUSES:
            clause = word.upper()
        before = word
    return True
