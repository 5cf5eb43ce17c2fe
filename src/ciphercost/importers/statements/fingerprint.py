"""The shape of a statement: its text without values, comments and what differs only in writing. Pure.

As `pt-fingerprint` and pgBadger do it: a value becomes `?`, a list of values `(?+)`, letters become small, white space one blank.
"""

from __future__ import annotations

import re

from ciphercost.load import sql_text
from ciphercost.model.errors import UsageError

_SLOW = re.compile(r"[-/#\"`\\$:?](?:(?<=-)-|(?<=/)\*|(?<![-/]))")
"""What needs the server's own rules to read: comments, quoted names, backslashes, places. Each alternative begins with a set of characters, as
the patterns below do: such a search is quick where nothing is found."""
_PREFIXED = re.compile(r"[eEbBxXnNqQ&]'(?<!\w[eEbBxXnNqQ&]')")
"""A string with a letter before it."""
_AFTER_DIGIT = r"(?:[xX][0-9a-fA-F]+|[\d.]*(?:[eE][-+]?\d+)?)(?!\w)"
_NUMBER = re.compile(r"\d(?<![\w$]\d)" + _AFTER_DIGIT)
"""Begins with a digit, so that the search skips everything else at once."""
_VALUE = re.compile(r"['\d](?:(?<=')(?:[^']|'')*'|(?<![\w$]\d)(?<=\d)" + _AFTER_DIGIT + ")")
"""A string or a number."""
_SIGN = re.compile(r"(?<![\w.)?])[-+]\?")
_LIST = re.compile(r"\b(in|values|any|all|row) ?\( ?\?(?: ?, ?\?)* ?\)(?: ?, ?\( ?\?(?: ?, ?\?)* ?\))*")
LONGEST_SHAPE = 4000
"""Characters of a shape: more are a list that has no other form, such as an IN with sub-expressions."""


class Unreadable(Exception):
    """A statement with a quote or comment that is not closed."""


def shape(sql: str, dialect: str) -> str:
    """The statement's shape. Raises Unreadable."""
    if _SLOW.search(sql) or ("'" in sql and _PREFIXED.search(sql)):
        text = _tokenized(sql, dialect)
    else:
        text = _VALUE.sub("?", sql)
        if "'" in text:
            raise Unreadable
    if "-?" in text or "+?" in text:
        text = _SIGN.sub("?", text)
    text = " ".join(text.lower().split())
    if "(?" in text or "( ?" in text:
        text = _LIST.sub(r"\1 (?+)", text)
    return text.rstrip("; ")[:LONGEST_SHAPE]


def _tokenized(sql: str, dialect: str) -> str:
    """The text without comments and values. Digits of quoted names stay."""
    parts, unquoted = list[str](), ""
    try:
        for token in sql_text.tokens(sql, dialect, ""):
            if token.kind == "name":
                parts += [_NUMBER.sub("?", unquoted), token.text]
                unquoted = ""
            else:
                unquoted += _written(token)
    except UsageError:
        raise Unreadable from None
    return "".join((*parts, _NUMBER.sub("?", unquoted)))


def _written(token: sql_text.Token) -> str:
    match token.kind:
        case "comment":
            return " "
        case "string" | "place" | "question":
            return "?"
        case _:
            return token.text


def split(sql: str, dialect: str) -> list[str]:
    """The statements of a text, which a client may send together. Raises Unreadable."""
    if ";" not in sql or sql.find(";") == len(sql.rstrip()) - 1:
        return [sql.rstrip().removesuffix(";")]
    parts, current = [], ""
    try:
        for token in sql_text.tokens(sql, dialect, ""):
            if token.kind == "end":
                parts.append(current)
                current = ""
            else:
                current += token.text
    except UsageError:
        raise Unreadable from None
    return [part.strip() for part in (*parts, current) if part.strip()]
