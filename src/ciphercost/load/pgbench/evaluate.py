"""evaluate: the value of an expression of constants, and errors that are certain before any statement runs. Pure.

The types, bounds and errors are pgbench's (evalStandardFunc in pgbench.c). Whatever only the agent knows is `Undecided`.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping

import msgspec

from ciphercost.load.pgbench.expression import LAZY, Call, Constant, Name, Node, Value

LEAST, GREATEST = -(2**63), 2**63 - 1
"""The bounds of an integer."""


class Undecided(Exception):
    """Its value depends on what only the agent knows."""


class Failure(Exception):
    """It has no value. The text says why; `at` is the place of the operator or function."""

    def __init__(self, why: str, at: int = 0) -> None:
        super().__init__(why)
        self.at = at


def value_of(text: str) -> Value:
    """What a variable's text stands for in an expression. Raises ValueError for a text that is no number, truth or NULL."""
    word = text.strip().lower()
    if word == "null":
        return None
    if word and ("true".startswith(word) or "yes".startswith(word) or word == "on"):
        return True
    if word and ("false".startswith(word) or "no".startswith(word) or word in ("off", "of")):
        return False
    if re.fullmatch(r"[-+]?\d+", word):
        number = int(word)
        if not LEAST <= number <= GREATEST:
            raise ValueError(text)
        return number
    if not re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", word) or math.isinf(float(word)):
        raise ValueError(text)
    return float(word)


def evaluate(node: Node) -> Value:
    """The value of an expression without variables. Raises Failure, Undecided."""
    match node:
        case Constant(value=value):
            return value
        case Name():
            raise Undecided
        case Call(operation="case", operands=operands):
            for condition, chosen in zip(operands[:-1:2], operands[1::2], strict=True):
                if evaluate(condition):
                    return evaluate(chosen)
            return evaluate(operands[-1])
        case Call(operation="and" | "or" as both, operands=(left, right)):
            return _decided(both, left, right, node.at)
        case Call(operands=operands):
            given = [evaluate(operand) for operand in operands]
            try:
                return _called(node.operation, given)
            except Failure as failure:
                raise Failure(str(failure), node.at) from None
    raise Undecided


def certain(node: Node) -> Failure | None:
    """A failure that the expression must meet whenever it is evaluated, or None."""
    try:
        evaluate(node)
    except Failure as failure:
        return failure
    except Undecided:
        assert not isinstance(node, Constant)
        if isinstance(node, Call):
            if node.operation == "permute" and isinstance(node.operands[-1], Name):
                return certain(msgspec.structs.replace(node, operands=(*node.operands[:-1], Constant(0))))
            always = node.operands[:1] if node.operation in LAZY else node.operands
            return next(filter(None, map(certain, always)), None)
    return None


def _decided(operation: str, left: Node, right: Node, at: int) -> Value:
    first = evaluate(left)
    if first is None:
        return None  # where SQL would look at the other side
    if _truth(first, at) == (operation == "or"):
        return operation == "or"
    second = evaluate(right)
    return None if second is None else _truth(second, at)


def _truth(value: Value, at: int = 0) -> bool:
    if not isinstance(value, bool):
        raise Failure(f"AND, OR and NOT take TRUE and FALSE, not {_kind(value)}", at)
    return value


def _kind(value: Value) -> str:
    return "NULL" if value is None else {bool: "a truth value", int: "an integer", float: "a double"}[type(value)]


def _integer(value: Value) -> int:
    match value:
        case bool() | None:
            raise Failure(f"{_kind(value)} is not a number")
        case int():
            return value
    if not math.isfinite(value) or not LEAST <= round(value) <= GREATEST:
        raise Failure(f"{value:.15g} does not fit into an integer")
    return round(value)


def _double(value: Value) -> float:
    if value is None or isinstance(value, bool):
        raise Failure(f"{_kind(value)} is not a number")
    return float(value)


def _bounded(number: int) -> int:
    if not LEAST <= number <= GREATEST:
        raise Failure("the result does not fit into an integer of 64 bits")
    return number


def _wrapped(number: int) -> int:
    return (number - LEAST) % 2**64 + LEAST


def _divided(left: int, right: int) -> int:
    if right == 0:
        raise Failure("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    return left - right * _divided(left, right)


def _double_divided(left: float, right: float) -> float:
    if right:
        return left / right
    return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)


_ARITHMETIC: Mapping[str, tuple[Callable[[int, int], int], Callable[[float, float], float]]] = {
    "+": (operator.add, operator.add),
    "-": (operator.sub, operator.sub),
    "*": (operator.mul, operator.mul),
    "/": (_divided, _double_divided),
}
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
}
_BITS: Mapping[str, Callable[[int, int], int]] = {
    "&": operator.and_,
    "|": operator.or_,
    "#": operator.xor,
    "<<": lambda left, right: _wrapped(left << (right & 63)),
    ">>": lambda left, right: left >> (right & 63),
}
_REAL: Mapping[str, Callable[..., float]] = {
    "exp": math.exp,
    "ln": math.log,
    "pi": lambda: math.pi,
    "pow": math.pow,
    "sqrt": math.sqrt,
}


def _called(operation: str, given: list[Value]) -> Value:
    if operation == "is":
        return type(given[0]) is type(given[1]) and given[0] == given[1]
    if operation == "debug":
        raise Undecided  # the agent prints it
    if any(value is None for value in given):
        return None
    if operation in ("least", "greatest"):
        chosen = min if operation == "least" else max
        if any(isinstance(value, float) for value in given):
            return chosen(map(_double, given))
        return chosen(map(_integer, given))
    if operation in _REAL:
        try:
            return _REAL[operation](*map(_double, given))
        except (ValueError, OverflowError, ZeroDivisionError):
            raise Undecided from None  # infinite, or not a number: as the agent's library has it
    match operation, given:
        case "not", [value]:
            return not _truth(value)
        case "int", [value]:
            return _integer(value)
        case "double", [value]:
            return _double(value)
        case "abs", [value]:
            return abs(value) if isinstance(value, float) else _wrapped(abs(_integer(value)))
        case "%" | "mod", [left, right]:
            return _remainder(_integer(left), _integer(right))
        case _, [left, right] if operation in _BITS:
            return _BITS[operation](_integer(left), _integer(right))
        case _, [left, right] if operation in _ARITHMETIC or operation in _COMPARISONS:
            return _of_two(operation, left, right)
        case "random", [low, high]:
            _check_range(_integer(low), _integer(high), "random")
        case "random_exponential" | "random_gaussian" | "random_zipfian", [low, high, parameter]:
            _check_range(_integer(low), _integer(high), operation)
            _check_parameter(operation, _double(parameter))
        case "permute", [_, size, _] if _integer(size) <= 0:
            raise Failure("the size that permute takes must be above 0")
    raise Undecided


def _of_two(operation: str, left: Value, right: Value) -> Value:
    if isinstance(left, float) or isinstance(right, float):
        try:
            one, other = _double(left), _double(right)
            return (
                _COMPARISONS[operation](one, other)
                if operation in _COMPARISONS
                else _ARITHMETIC[operation][1](one, other)
            )
        except OverflowError:
            raise Undecided from None
    if operation in _COMPARISONS:
        return _COMPARISONS[operation](_integer(left), _integer(right))
    return _bounded(_ARITHMETIC[operation][0](_integer(left), _integer(right)))


def _check_range(low: int, high: int, function: str) -> None:
    if low > high:
        raise Failure(f"the lower bound of {function}, {low}, is above its upper bound, {high}")
    if high - low >= GREATEST:
        raise Failure(f"the range of {function}, {low} to {high}, is too large")


def _check_parameter(function: str, parameter: float) -> None:
    match function:
        case "random_exponential":
            right, rule = parameter > 0, "above 0"
        case "random_gaussian":
            right, rule = parameter >= 2, "of at least 2"
        case _:
            right, rule = 0 < parameter <= 1000 and parameter != 1, "above 0 other than 1, at most 1000"
    if not right:
        raise Failure(
            f"{function} takes a {'skew' if function == 'random_zipfian' else 'parameter'} {rule}, got {parameter:g}"
        )
