"""parser: the text of an expression → its tree, with the tokens and the precedence of pgbench (exprscan.l, exprparse.y). Pure.

Precedence climbs from OR, AND, NOT, IS, comparisons (which do not chain), `| # & << >> ~`, `+ -`, `* / %` to the signs.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ciphercost.load.pgbench import functions
from ciphercost.load.pgbench.expression import Call, Constant, Name, Node, depth
from ciphercost.load.pgbench.source import Source

GREATEST = 2**63 - 1
"""The greatest integer."""
_CONTINUED = re.compile(r"\\\r?\n")
_TOKEN = re.compile(
    r"(?P<blank>(?:[ \t\r\f\v]|\\\r?\n)+)"
    r"|(?P<double>\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\.\d+(?:[eE][-+]?\d+)?)"
    r"|(?P<integer>\d+)"
    r"|:(?P<variable>\w+)"
    r"|(?P<word>[^\W\d]\w*)"
    r"|(?P<operator><>|!=|<=|>=|<<|>>|[-+*/%=<>|&#~(),])",
)
_KEYWORDS = {
    "and", "or", "not", "is", "isnull", "notnull", "null", "true", "false", "case", "when", "then", "else", "end",
}  # fmt: skip
_COMPARISON, _UNARY, _NOT, _TILDE = 5, 9, 3, 6
_BINARY = {
    "or": 1, "and": 2, "is": 4, "isnull": 4, "notnull": 4,
    "<": 5, ">": 5, "=": 5, "<=": 5, ">=": 5, "<>": 5, "!=": 5,
    "|": 6, "#": 6, "&": 6, "<<": 6, ">>": 6,
    "+": 7, "-": 7, "*": 8, "/": 8, "%": 8,
}  # fmt: skip
_SWAPPED = {">": "<", ">=": "<="}
"""pgbench has no such operation: it evaluates the right operand first, and compares the other way round."""
_WORDS = {"null": None, "true": True, "false": False}


MOST_NESTED = 100
"""Operators and parentheses within one another. An agent takes a few more."""
TOO_DEEP = f"more than {MOST_NESTED} operators within one another; set a part of the expression with a \\set of its own"


class Token(NamedTuple):
    kind: str
    """`integer`, `double`, `variable`, `name` of a function, `end`, or the operator or keyword itself."""
    text: str
    at: int


def tokens(source: Source, start: int) -> list[Token]:
    """The tokens from a position to the end of its line, which `\\` continues. The last one is `end`.

    Raises UsageError for a character that no token has.
    """
    text = source.text
    found: list[Token] = []
    at = start
    while at < len(text) and text[at] != "\n":
        match = _TOKEN.match(text, at)
        if match is None:
            raise source.error(at, f"unexpected character '{text[at]}' in an expression")
        kind, word = str(match.lastgroup), match[0]
        if kind == "word":
            kind = word.lower() if word.lower() in _KEYWORDS else "name"
        elif kind == "operator":
            kind = word
        elif kind == "variable":
            word = word[1:]
        if kind != "blank":
            found.append(Token(kind, word, at))
        at = match.end()
    return [*found, Token("end", "", at)]


def parse(source: Source, start: int) -> tuple[Node, int]:
    """(the expression that begins at a position, the position after its line's end). Raises UsageError."""
    parser = _Parser(source, tokens(source, start))
    node = parser.expression(0)
    last = parser.take()
    if last.kind != "end":
        raise parser.unexpected(last)
    if depth(node) > MOST_NESTED:
        raise source.error(start, TOO_DEEP)
    return node, last.at


class _Parser:
    def __init__(self, source: Source, held: list[Token]) -> None:
        self._source = source
        self._tokens = held
        self._next = 0
        self._depth = 0

    def take(self) -> Token:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def unexpected(self, token: Token, wanted: str = "") -> Exception:
        what = f"'{token.text}'" if token.text else "the end of the line"
        hint = f"; {wanted}" if wanted else ""
        if token.kind == "name":
            hint = f"; a variable is written :{token.text}"
        return self._source.error(token.at, f"unexpected {what} in an expression{hint}")

    def expression(self, least: int) -> Node:
        """An expression of operators with at least this precedence."""
        depth = self._depth
        self._deeper()
        left = self._prefix()
        while (precedence := _BINARY.get((token := self._tokens[self._next]).kind, -1)) >= least:
            self.take()
            self._deeper()
            if precedence == _BINARY["is"]:
                left = self._is(left, token)
                continue
            right = self.expression(precedence + 1)
            if precedence == _COMPARISON and _BINARY.get(self._tokens[self._next].kind) == _COMPARISON:
                raise self.unexpected(self._tokens[self._next], "comparisons don't chain; write parentheses, or AND")
            operation = "<>" if token.kind == "!=" else token.kind
            operands = (right, left) if operation in _SWAPPED else (left, right)
            left = Call(_SWAPPED.get(operation, operation), operands, token.at)
        self._depth = depth
        return left

    def _deeper(self) -> None:
        """Count an operator or a parenthesis. What stands in a row counts too: each operator's tree holds the one before it."""
        self._depth += 1
        if self._depth > MOST_NESTED:
            at = self._tokens[self._next].at
            raise self._source.error(at, TOO_DEEP)

    def _is(self, left: Node, token: Token) -> Node:
        value, negated = None, token.kind == "notnull"
        if token.kind == "is":
            word = self.take()
            if word.kind == "not":
                negated, word = True, self.take()
            if word.kind not in _WORDS:
                raise self.unexpected(word, "IS takes NULL, TRUE or FALSE")
            value = _WORDS[word.kind]
        test = Call("is", (left, Constant(value)), token.at)
        return Call("not", (test,), token.at) if negated else test

    def _prefix(self) -> Node:
        token = self.take()
        match token.kind:
            case "-":
                if (after := self._tokens[self._next]).kind == "integer" and int(after.text) == GREATEST + 1:
                    self.take()
                    return Constant(-GREATEST - 1)
                return Call("-", (Constant(0), self.expression(_UNARY)), token.at)
            case "+":
                return self.expression(_UNARY)
            case "~":
                return Call("#", (Constant(-1), self.expression(_TILDE + 1)), token.at)
            case "not":
                return Call("not", (self.expression(_NOT),), token.at)
            case "(":
                inner = self.expression(0)
                self._expect(")")
                return inner
            case "case":
                return self._case(token)
            case "integer":
                if (number := int(token.text)) > GREATEST:
                    raise self._source.error(token.at, f"{token.text} is above the greatest integer, {GREATEST}")
                return Constant(number)
            case "double":
                if (real := float(token.text)) == float("inf"):
                    raise self._source.error(token.at, f"{token.text} is above the greatest double")
                return Constant(real)
            case "null" | "true" | "false":
                return Constant(_WORDS[token.kind])
            case "variable":
                return Name(token.text, token.at)
            case "name" if self._tokens[self._next].kind == "(":
                self.take()
                return functions.call(token.text, self._arguments(), token.at, self._source)
        raise self.unexpected(token)

    def _expect(self, kind: str) -> Token:
        token = self.take()
        if token.kind != kind:
            raise self.unexpected(token, f"'{kind}' is missing")
        return token

    def _arguments(self) -> list[Node]:
        if self._tokens[self._next].kind == ")":
            self.take()
            return []
        arguments = [self.expression(0)]
        while (token := self.take()).kind == ",":
            arguments.append(self.expression(0))
        if token.kind != ")":
            raise self.unexpected(token, "')' is missing")
        return arguments

    def _case(self, token: Token) -> Node:
        operands: list[Node] = []
        self._expect("when")
        while True:
            operands.append(self.expression(0))
            self._expect("then")
            operands.append(self.expression(0))
            word = self.take()
            if word.kind != "when":
                break
        if word.kind == "else":
            operands.append(self.expression(0))
            word = self.take()
        else:
            operands.append(Constant(None))
        if word.kind != "end":
            raise self.unexpected(word, "END is missing")
        return Call("case", tuple(operands), token.at)
