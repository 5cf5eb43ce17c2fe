"""Parses an expression as it travels, `(+ (* :a 2) 1)`, into a function of an operation that returns its value (`scalar`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ciphercost_agent_python import functions, scalar
from ciphercost_agent_python.failure import Failure, bad_message

if TYPE_CHECKING:
    from ciphercost_agent_python.script import Operation

DEEPEST = 200
"""Expressions within one another, at most."""
Evaluate = Callable[["Operation"], Any]


class Expression(NamedTuple):
    evaluate: Evaluate
    variables: frozenset[int]
    """The variables that it reads."""


def read(text: str, names: Sequence[str]) -> Expression:
    """Raises Failure. `names`: of the declared variables."""
    reader = _Reader(text, names)
    evaluate = reader.one(0)
    if more := reader.next():
        raise _bad(f'"{more}" follows its end')
    return Expression(evaluate, frozenset(reader.read))


def _bad(text: str) -> Failure:
    return bad_message(f"expression: {text}")


class _Reader:
    def __init__(self, text: str, names: Sequence[str]) -> None:
        self._names = names
        self._tokens: Iterator[str] = (match[0] for match in re.finditer(r"[()]|[^ ()]+", text))
        self.read: set[int] = set()

    def next(self) -> str:
        return next(self._tokens, "")

    def _needed(self) -> str:
        if not (word := self.next()):
            raise _bad("it ends too early")
        return word

    def one(self, depth: int) -> Evaluate:
        return self._of(self._needed(), depth)

    def _of(self, word: str, depth: int) -> Evaluate:
        if depth > DEEPEST:
            raise _bad(f"nested more than {DEEPEST} deep")
        if word == "(":
            name = self._needed()
            given: list[Evaluate] = []
            while (word := self.next()) != ")":
                if not word:
                    raise _bad("a parenthesis is not closed")
                given.append(self._of(word, depth + 1))
            return _call(name, given)
        if word == ")":
            raise _bad("a parenthesis closes nothing")
        if word.startswith(":"):
            if word[1:] not in self._names:
                raise _bad(f'no variable "{word[1:]}" is declared')
            variable = self._names.index(word[1:])
            self.read.add(variable)
            return lambda operation: operation.scalar(variable)
        value = (
            {"null": None, "true": True, "false": False}[word] if word in ("null", "true", "false") else _number(word)
        )
        return lambda _: value


def _number(word: str) -> int | float:
    """An integer unless it has a point or an exponent."""
    found: int | float | None = None
    if re.search("[0-9]", word):  # inf and nan are no numbers here
        found = scalar.real_of(word.lower()) if re.search("[.eE]", word) else scalar.integer_of(word)
    if found is None:
        raise _bad(f'"{word}" is no value')
    return found


def _call(name: str, given: list[Evaluate]) -> Evaluate:
    if name in ("and", "or"):
        if len(given) != 2:
            raise _bad(f"{name} takes 2 arguments, not {len(given)}")
        return _decision(given[0], given[1], ends_with=name == "or")
    if name == "case":
        if len(given) % 2 == 0 or len(given) < 3:
            raise _bad("case takes conditions and values in turn, and the value of else")
        return _case(given)
    functions.check(name, len(given))
    return lambda operation: functions.call(name, [each(operation) for each in given], operation.random)


def _decision(left: Evaluate, right: Evaluate, *, ends_with: bool) -> Evaluate:
    """As in pgbench, `and` and `or` evaluate only what decides them."""

    def decide(operation: Operation) -> bool | None:
        first = left(operation)
        if first is None:
            return None
        if scalar.boolean(first) == ends_with:
            return ends_with
        second = right(operation)
        return None if second is None else scalar.boolean(second)

    return decide


def _case(parts: list[Evaluate]) -> Evaluate:
    def choose(operation: Operation) -> Any:
        for condition, value in zip(parts[:-1:2], parts[1::2], strict=True):
            if scalar.is_true(condition(operation)):
                return value(operation)
        return parts[-1](operation)

    return choose
