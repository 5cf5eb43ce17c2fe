"""Splits SQL into tokens and into statements as each server's own client would. Pure.

What is a string, a name or a comment depends on the server: PostgreSQL has `$tag$…$tag$`, `E'\\''` and nested comments
(its manual, section 4.1), MySQL has `#` comments, backticks and backslashes in strings (reference manual, chapter 11).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from ciphercost.model.errors import UsageError

Kind = Literal["code", "word", "string", "name", "comment", "variable", "place", "question", "end"]
"""`name`: a quoted identifier; `variable`: `:NAME`; `place`: `$1`; `question`: `?`; `end`: the `;` between statements."""


class Token(NamedTuple):
    kind: Kind
    text: str


class Statement(NamedTuple):
    """The tokens of one statement, without the `;` that ends it."""

    line: int
    """Where it begins, counted from 1."""
    tokens: list[Token]
    body: bool = False
    """Whether other statements are in it, between BEGIN and END."""

    @property
    def sql(self) -> str:
        return "".join(each.text for each in self.tokens)


class _Rules(NamedTuple):
    """How a server reads SQL."""

    strings: tuple[str, ...]
    """Patterns of whole strings, in the order in which they are tried."""
    names: tuple[str, ...]
    comments: tuple[str, ...] = (r"--[^\n]*",)
    nested: bool = False
    """Whether `/* /* */ */` is one comment."""
    dollars: bool = False
    """Whether `$tag$…$tag$` is a string."""
    parentheses: bool = False
    """Whether a `;` in parentheses ends nothing, as psql has it."""


_PLAIN = r"'(?:[^']|'')*'"
_BACKSLASHES = r"'(?:[^'\\]|''|\\.)*'"
_QUOTED = r'"(?:[^"]|"")*"'
_POSTGRES = _Rules(
    (rf"[eE]{_BACKSLASHES}", rf"(?:[bBxXnN]|[uU]&)?{_PLAIN}"), (rf"(?:[uU]&)?{_QUOTED}",), nested=True, dollars=True
)
_OTHERS = _Rules((_PLAIN,), (_QUOTED,))
_DIALECTS = {
    "postgresql": _POSTGRES._replace(parentheses=True),
    "duckdb": _POSTGRES,
    "h2": _OTHERS._replace(comments=(r"--[^\n]*", r"//[^\n]*"), nested=True, dollars=True),
    "mysql": _Rules(
        (rf"[bBxXnN]?{_BACKSLASHES}", r'"(?:[^"\\]|""|\\.)*"'), (r"`(?:[^`]|``)*`",), (r"--(?=\s|\Z)[^\n]*", r"#[^\n]*")
    ),
    "sqlite": _Rules((_PLAIN,), (_QUOTED, r"`(?:[^`]|``)*`", r"\[[^\]]*\]")),
    "firebird": _Rules(
        (r"[qQ]'(?:\[.*?\]|\{.*?\}|\(.*?\)|<.*?>|(?P<q>[^\s\[{(<]).*?(?P=q))'", rf"[xX]?{_PLAIN}"), (_QUOTED,)
    ),
}
_DOLLAR = r"\$(?P<tag>(?:[^\W\d]\w*)?)\$"
_OPENERS = {"'": "string", '"': "string or name", "`": "name", "$": "dollar-quoted string", "/*": "comment"}


def _pattern(rules: _Rules) -> re.Pattern[str]:
    parts = [
        f"(?P<string>{'|'.join(rules.strings)})",
        f"(?P<name>{'|'.join(rules.names)})",
        f"(?P<comment>{'|'.join(rules.comments)})",
        r"(?P<bracketed>/\*)",
        *([f"(?P<dollar>{_DOLLAR})"] if rules.dollars else []),
        r"(?P<place>\$\d+)",
        r"(?P<word>[^\W\d][\w$]*)",
        r"(?P<number>\d\w*)",
        r"(?P<cast>:[:=])",
        r":(?P<variable>[A-Za-z_]\w*)",
        r"(?P<question>\?)",
        r"(?P<semicolon>;)",
        rf"(?P<unclosed>['\"{'`' if any(each.startswith('`') for each in rules.names) else ''}])",
        r"(?P<parenthesis>[()])",
    ]
    return re.compile("|".join(parts), re.DOTALL)


_PATTERNS = {name: _pattern(rules) for name, rules in {**_DIALECTS, "": _OTHERS}.items()}
_BRACKETS = re.compile(r"/\*|\*/")


def tokens(text: str, dialect: str, where: str) -> Iterator[Token]:
    """Yield the tokens of a text; joined, they are the text.

    `dialect`: an engine's; an unknown one has strings, names and comments of standard SQL. Raises UsageError for a quote
    or a comment that is not closed.
    """
    rules = _DIALECTS.get(dialect, _OTHERS)
    pattern = _PATTERNS[dialect if dialect in _DIALECTS else ""]
    at = 0
    while found := pattern.search(text, at):
        if found.start() > at:
            yield Token("code", text[at : found.start()])
        kind, end = "code", found.end()
        match found.lastgroup:  # the alternative itself: groups within it close before it
            case "bracketed":
                end = _comment_end(text, found.start(), nested=rules.nested)
                kind = "comment"
            case "dollar":
                end = text.find(found.group("dollar"), end)
                kind, end = "string", end + len(found.group("dollar")) if end >= 0 else -1
            case "unclosed":
                end = -1
            case "string" | "name" | "comment" | "place" | "word" | "variable" | "question" as same:
                kind = same
            case "semicolon":
                kind = "end"
        if end < 0:
            raise _unclosed(text, found, where)
        if kind == "comment" and dialect == "mysql" and text.startswith(("/*!", "/*M!"), found.start()):
            kind = "code"  # MySQL and MariaDB run what is in it
        yield Token(kind, text[found.start() : end])  # type: ignore[arg-type]
        at = end
    if at < len(text):
        yield Token("code", text[at:])


def _comment_end(text: str, start: int, *, nested: bool) -> int:
    """Where the comment that begins at `start` ends; -1: nowhere."""
    if not nested:
        end = text.find("*/", start + 2)
        return end + 2 if end >= 0 else -1
    depth = 0
    for each in _BRACKETS.finditer(text, start):
        depth += 1 if each.group(0) == "/*" else -1
        if depth == 0:
            return each.end()
    return -1


def _unclosed(text: str, found: re.Match[str], where: str) -> UsageError:
    line = text.count("\n", 0, found.start()) + 1
    opener = found.group(0)
    what = _OPENERS[opener if opener in _OPENERS else opener[0]]
    shown = opener if opener.startswith(("$", "/*")) else text[found.start() :].splitlines()[0][:20]
    return UsageError(f"{where}, line {line}: the {what} that begins with {shown} is not closed")


_BODIES = re.compile(
    r"(?:CREATE (?:OR (?:REPLACE|ALTER) )?|ALTER |RECREATE )(?:.* )?(?:FUNCTION|PROCEDURE|TRIGGER|EVENT|PACKAGE)\b"
    r"|EXECUTE BLOCK\b|BEGIN NOT ATOMIC\b"
)
"""Statements whose text so far begins like this may hold others between BEGIN and END."""
_LONGEST_OPENING = 12
"""Words within which such a statement says what it is."""
_NOT_CASE = ("IF", "LOOP", "WHILE", "REPEAT", "FOR")
"""Words after END that close what no BEGIN or CASE opened."""
_CLIENTS = {
    "mysql": (
        "DELIMITER",
        "a command of MySQL's own client; write the statements with `;`: between BEGIN and END of a body it ends nothing",
    ),
    "firebird": (
        "SET TERM",
        "a command of Firebird's isql; write the statements with `;`: between BEGIN and END of a body it ends nothing",
    ),
}
"""By dialect: a command of its client that the server does not know."""


def statements(text: str, dialect: str, where: str) -> list[Statement]:
    """Return a text's statements; those without anything but comments are left out.

    Raises UsageError for what is not closed, and for commands that only another client knows.
    """
    rules = _DIALECTS.get(dialect, _OTHERS)
    found: list[Statement] = []
    held: list[Token] = []
    words: list[str] = []
    line = depth = parentheses = 0
    at = 1

    def close() -> None:
        nonlocal held, words, line, depth, parentheses
        if line:
            found.append(Statement(line, _stripped(held), _has_body(words) and "BEGIN" in words))
        held, words, line, depth, parentheses = [], [], 0, 0, 0

    for token in tokens(text, dialect, where):
        if token.kind == "end" and not depth and not parentheses:
            close()
            continue
        held.append(token)
        if not line and token.kind != "comment" and token.text.strip():
            line = at + token.text[: len(token.text) - len(token.text.lstrip())].count("\n")
        at += token.text.count("\n")
        if token.kind == "word":
            words.append(token.text.upper())
            _check_client(words, dialect, f"{where}, line {line}")
            depth = max(0, depth + _step(words))
        elif token.kind == "end":
            words.append(token.text)
        elif token.kind == "code" and rules.parentheses:
            parentheses = max(0, parentheses + token.text.count("(") - token.text.count(")"))
    if parentheses or depth:
        what = "a parenthesis" if parentheses else "BEGIN"
        raise UsageError(f"{where}, line {line}: {what} of this statement is not closed")
    close()
    return found


def _step(words: list[str]) -> int:
    """By how much the last word changes the depth of BEGIN … END in a statement that may have a body."""
    last = words[-1]
    if last in _NOT_CASE and words[-2:-1] == ["END"] and _has_body(words):
        return 1  # END was counted, but closes none of them
    if last == "CASE" and words[-2:-1] == ["END"]:
        return 0  # END CASE
    if last in ("BEGIN", "CASE") or (last == "ATOMIC" and words[-3:-1] == ["BEGIN", "NOT"]):
        opens = last != "ATOMIC" or len(words) == 3
        return 1 if opens and _has_body(words) else 0
    return -1 if last == "END" and _has_body(words) else 0


def _has_body(words: list[str]) -> bool:
    return _BODIES.match(" ".join(words[:_LONGEST_OPENING])) is not None


def _check_client(words: list[str], dialect: str, where: str) -> None:
    command, reason = _CLIENTS.get(dialect, ("", ""))
    if len(words) <= 2 and " ".join(words) == command:
        raise UsageError(f"{where}: {command} is {reason}")


def _stripped(held: list[Token]) -> list[Token]:
    """The tokens without white space at both ends."""
    held = list(held)
    while held and not held[0].text.strip():
        held.pop(0)
    while held and not held[-1].text.strip():
        held.pop()
    if held:
        held[0] = held[0]._replace(text=held[0].text.lstrip())
        held[-1] = held[-1]._replace(text=held[-1].text.rstrip())
    return held
