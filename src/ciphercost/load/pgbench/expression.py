"""expression: the tree of an expression, and the prefix form in which an agent takes it (PROTOCOL.md). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

Value = int | float | bool | None
"""What a variable holds. None: NULL."""
LAZY = {"and", "or", "case"}
"""Operations that do not evaluate all of their operands."""
DRAWS = {"random", "random_exponential", "random_gaussian", "random_zipfian"}
"""Functions whose value differs from call to call."""


class Constant(msgspec.Struct, frozen=True):
    value: Value


class Name(msgspec.Struct, frozen=True):
    """A variable."""

    name: str
    at: int = 0
    """Where it stands in the script's text."""


class Call(msgspec.Struct, frozen=True):
    """An operator or a function with its operands."""

    operation: str
    """Its name in the prefix form."""
    operands: tuple[Node, ...]
    at: int = 0
    written: str = ""
    """The function's name as the user wrote it; empty: an operator."""


Node = Constant | Name | Call


def printed(node: Node) -> str:
    """The prefix form: `(+ (* :a 2) 7)`, tokens separated by single blanks."""
    match node:
        case Constant(value=None):
            return "null"
        case Constant(value=bool(truth)):
            return "true" if truth else "false"
        case Constant(value=number):
            return repr(number)
        case Name(name=name):
            return f":{name}"
        case Call(operation=operation, operands=operands):
            return f"({' '.join([operation, *map(printed, operands)])})"


def with_prefix(text: str, prefix: str) -> str:
    """The prefix form with `prefix` before the name of each variable: no other token holds a colon."""
    return text.replace(":", f":{prefix}")


def names(node: Node) -> Iterator[Name]:
    """The variables of an expression, in the order in which they stand in its prefix form."""
    match node:
        case Name():
            yield node
        case Call(operands=operands):
            for operand in operands:
                yield from names(operand)


def calls(node: Node) -> Iterator[Call]:
    """The operators and functions of an expression, outer ones first."""
    if isinstance(node, Call):
        yield node
        for operand in node.operands:
            yield from calls(operand)


def replaced(node: Node, change: Callable[[Name], Node]) -> Node:
    """The expression with what `change` returns in place of each variable."""
    match node:
        case Name():
            return change(node)
        case Call(operands=operands):
            return msgspec.structs.replace(node, operands=tuple(replaced(operand, change) for operand in operands))
    return node


def depth(node: Node) -> int:
    """Operators and functions within one another. Not recursive, since an expression may be deeper than Python's stack."""
    deepest, waiting = 0, [(node, 0)]
    while waiting:
        current, level = waiting.pop()
        deepest = max(deepest, level)
        if isinstance(current, Call):
            waiting += [(operand, level + 1) for operand in current.operands]
    return deepest
