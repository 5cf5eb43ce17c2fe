"""Splits SQL into tokens and into statements as each server's own client would. Pure.

What is a string, a name or a comment depends on the server: PostgreSQL has `$tag$…$tag$`, `E'\\''` and nested comments
(its manual, section 4.1), MySQL has `#` comments, backticks and backslashes in strings (reference manual, chapter 11).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from ciphercost.load.pgbench.source import Source
from ciphercost.model.errors import UsageError

Kind = Literal["code", "word", "string", "name", "comment", "variable", "place", "question", "end", "backslash"]
"""`name`: a quoted identifier; `variable`: `:NAME`; `place`: `$1`; `question`: `?`; `end`: the `;` between statements; `backslash`: one
that stands in no string, with the `;` or `:` that it escapes."""


class Token(NamedTuple):
    kind: Kind
    text: str


class Statement(NamedTuple):
    """The tokens of one statement, without the `;` that ends it."""

    tokens: list[Token]
    places: list[int]
    """Where each token begins in the text."""
    body: bool = False
    """Whether other statements are in it, between BEGIN and END."""

    @property
    def sql(self) -> str:
        return "".join(token.text for token in self.tokens)


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
        r":(?P<variable>[^\W\d]\w*)",
        r"(?P<backslash>\\[;:]?)",
        r"(?P<question>\?)",
        r"(?P<semicolon>;)",
        rf"(?P<unclosed>['\"{'`' if any(pattern.startswith('`') for pattern in rules.names) else ''}])",
        r"(?P<parenthesis>[()])",
    ]
    return re.compile("|".join(parts), re.DOTALL)


_PATTERNS = {name: _pattern(rules) for name, rules in {**_DIALECTS, "": _OTHERS}.items()}
_BRACKETS = re.compile(r"/\*|\*/")


def tokens(text: str, dialect: str, where: str, at: int = 0) -> Iterator[Token]:
    """Yield the tokens of a text from a position on; joined, they are the text from there.

    `dialect`: an engine's; an unknown one has strings, names and comments of standard SQL. Raises UsageError for a quote
    or a comment that is not closed.
    """
    rules = _DIALECTS.get(dialect, _OTHERS)
    pattern = _PATTERNS[dialect if dialect in _DIALECTS else ""]
    while token_match := pattern.search(text, at):
        if token_match.start() > at:
            yield Token("code", text[at : token_match.start()])
        kind, end = "code", token_match.end()
        match token_match.lastgroup:  # the alternative itself: groups within it close before it
            case "bracketed":
                end = _comment_end(text, token_match.start(), nested=rules.nested)
                kind = "comment"
            case "dollar":
                end = text.find(token_match.group("dollar"), end)
                kind, end = "string", end + len(token_match.group("dollar")) if end >= 0 else -1
            case "unclosed":
                end = -1
            case "string" | "name" | "comment" | "place" | "word" | "variable" | "question" | "backslash" as same:
                kind = same
            case "semicolon":
                kind = "end"
        if end < 0:
            raise _unclosed(text, token_match, where)
        if kind == "comment" and dialect == "mysql" and text.startswith(("/*!", "/*M!"), token_match.start()):
            kind = "code"  # MySQL and MariaDB run what is in it
        yield Token(kind, text[token_match.start() : end])  # type: ignore[arg-type]
        at = end
    if at < len(text):
        yield Token("code", text[at:])


def _comment_end(text: str, start: int, *, nested: bool) -> int:
    """Where the comment that begins at `start` ends; -1: nowhere."""
    if not nested:
        end = text.find("*/", start + 2)
        return end + 2 if end >= 0 else -1
    depth = 0
    for bracket in _BRACKETS.finditer(text, start):
        depth += 1 if bracket.group(0) == "/*" else -1
        if depth == 0:
            return bracket.end()
    return -1


def _unclosed(text: str, match: re.Match[str], where: str) -> UsageError:
    opener = match.group(0)
    what = _OPENERS[opener if opener in _OPENERS else opener[0]]
    shown = opener if opener.startswith(("$", "/*")) else text[match.start() :].splitlines()[0][:20]
    return Source(where, text).error(match.start(), f"the {what} that begins with {shown} is not closed")


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


class Collector:
    """Makes statements of tokens, in their order."""

    def __init__(self, dialect: str, source: Source) -> None:
        self._rules = _DIALECTS.get(dialect, _OTHERS)
        self._dialect, self._source = dialect, source
        self._begin()

    def _begin(self) -> None:
        self._held: list[Token] = []
        self._places: list[int] = []
        self._words: list[str] = []
        self._depth = self._parentheses = 0
        self._start = -1

    def add(self, token: Token, at: int) -> Statement | None:
        """Take a token that begins at this position. Return the statement that it ends, if that has anything but comments.

        Raises UsageError for commands that only another client knows.
        """
        if token.kind == "end" and not self._depth and not self._parentheses:
            return self._finished()
        self._held.append(token)
        self._places.append(at)
        if self._start < 0 and token.kind != "comment" and token.text.strip():
            self._start = at + len(token.text) - len(token.text.lstrip())
        if token.kind == "word":
            self._words.append(token.text.upper())
            _check_client(self._words, self._dialect, self._source.place(self._start))
            self._depth = max(0, self._depth + _step(self._words))
        elif token.kind == "end":
            self._words.append(token.text)
        elif token.kind == "code" and self._rules.parentheses:
            self._parentheses = max(0, self._parentheses + token.text.count("(") - token.text.count(")"))
        return None

    def close(self) -> Statement | None:
        """Return the statement that ends without a `;`, if any. Raises UsageError for what is not closed."""
        if self._parentheses or self._depth:
            what = "a parenthesis" if self._parentheses else "BEGIN"
            raise self._source.error(self._start, f"{what} of this statement is not closed")
        return self._finished()

    def _finished(self) -> Statement | None:
        statement = None
        if self._start >= 0:
            body = _has_body(self._words) and "BEGIN" in self._words
            statement = Statement(*_stripped(self._held, self._places), body)
        self._begin()
        return statement


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


def _stripped(held: list[Token], places: list[int]) -> tuple[list[Token], list[int]]:
    """The tokens without white space at both ends, and where they begin."""
    filled = [number for number, token in enumerate(held) if token.text.strip()]
    kept = slice(filled[0], filled[-1] + 1)
    tokens, starts = held[kept], places[kept]
    first = tokens[0].text.lstrip()
    starts[0] += len(tokens[0].text) - len(first)
    tokens[0] = tokens[0]._replace(text=first)
    tokens[-1] = tokens[-1]._replace(text=tokens[-1].text.rstrip())
    return tokens, starts
