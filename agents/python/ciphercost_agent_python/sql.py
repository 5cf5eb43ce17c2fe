"""Splits a text into statements and replaces `$1`. All it knows about SQL is where literals and comments end."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ciphercost_agent_python.failure import statement

BEGIN, COMMIT, ROLLBACK, OTHER = "begin", "commit", "rollback", "other"
_DOLLAR = re.compile(r"\$(?:[^\W\d]\w*)?\$")
_MARK = re.compile(r"\$([0-9]{1,4})", re.ASCII)
_ROUTINE = re.compile(
    r"\s*(BEGIN\s+NOT\s+ATOMIC|(CREATE|ALTER)\s+(OR\s+REPLACE\s+)?(DEFINER\s*=\s*\S+\s+)?(AGGREGATE\s+)?"
    r"(PROCEDURE|FUNCTION|TRIGGER|PACKAGE|EVENT))\b",
    re.IGNORECASE,
)
_CONTROL = re.compile(
    r"\s*(BEGIN|START\s+TRANSACTION|COMMIT|END|ROLLBACK)(\s+(WORK|TRANSACTION))?\s*;?\s*", re.IGNORECASE
)


class Marked(NamedTuple):
    sql: str
    order: tuple[int, ...]
    """For each mark, the number of the parameter (from 0) that it stands for."""


def kind(sql: str) -> str:
    """Whether it begins or ends a transaction, and does nothing else."""
    if (match := _CONTROL.fullmatch(sql)) is None:
        return OTHER
    return {"C": COMMIT, "E": COMMIT, "R": ROLLBACK}.get(match[1][0].upper(), BEGIN)


def split(text: str, *, mysql: bool) -> list[str]:
    """The statements of a text, separated by `;`."""
    if mysql and _ROUTINE.match(text):
        return [text]
    found, begin, at = [], 0, 0
    while at <= len(text):
        if at < len(text) and (past := _skipped(text, at, mysql=mysql)) > at:
            at = past
            continue
        if at == len(text) or text[at] == ";":
            if part := text[begin:at].strip():
                found.append(part)
            begin = at + 1
        at += 1
    return found


def marked(sql: str, parameters: int, mark: Callable[[int], str], *, mysql: bool, percent: bool = False) -> Marked:
    """The statement with marks of a driver in place of `$1` …, outside literals, quoted names and comments.

    `parameters`: how many there are; `mark`: of the parameter of that number, from 1. `percent`: a `%` that is no mark is written
    twice, if there are any parameters.
    """
    double = percent and parameters > 0
    out: list[str] = []
    order: list[int] = []
    at = 0
    while at < len(sql):
        if (past := _skipped(sql, at, mysql=mysql)) > at:
            out.append(sql[at:past].replace("%", "%%") if double else sql[at:past])
            at = past
            continue
        alone = at == 0 or not (sql[at - 1].isalnum() or sql[at - 1] in "_$")
        if sql[at] == "$" and alone and (match := _MARK.match(sql, at)):
            number = int(match[1])
            if not 1 <= number <= parameters:
                raise statement(f"${number} is not a parameter of: {sql}")
            order.append(number - 1)
            out.append(mark(number))
            at = match.end()
            continue
        out.append("%%" if double and sql[at] == "%" else sql[at])
        at += 1
    return Marked("".join(out), tuple(order))


def _skipped(text: str, at: int, *, mysql: bool) -> int:
    """The position after the literal, quoted name or comment that begins here; `at` if none does."""
    match text[at]:
        case "'":
            escapes = (
                not mysql
                and at > 0
                and text[at - 1] in "eE"
                and (at == 1 or not (text[at - 2].isalnum() or text[at - 2] == "_"))
            )
            return _quoted(text, at, escapes=mysql or escapes)
        case '"':
            return _quoted(text, at, escapes=mysql)
        case "`" if mysql:
            return _quoted(text, at, escapes=False)
        case "#" if mysql:
            return _line(text, at)
        case "-" if text.startswith("--", at) and (not mysql or text[at + 2 : at + 3].strip() == ""):
            return _line(text, at)
        case "/" if text.startswith("/*", at):
            return _comment(text, at, nested=not mysql)
        case "$" if not mysql and (tag := _DOLLAR.match(text, at)):
            close = text.find(tag[0], tag.end())
            return len(text) if close < 0 else close + len(tag[0])
    return at


def _comment(text: str, at: int, *, nested: bool) -> int:
    """The position after a comment. `nested`: comments within it have ends of their own."""
    depth = 0
    for match in re.compile(r"/\*|\*/").finditer(text, at):
        depth += (1 if nested or depth == 0 else 0) if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    return len(text)


def _quoted(text: str, at: int, *, escapes: bool) -> int:
    mark, end = text[at], at + 1
    while end < len(text):
        if text[end] == mark:
            return end + 1
        end += 2 if escapes and text[end] == "\\" else 1
    return len(text)


def _line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
