"""drawn: the variables that an agent draws before an operation begins, from the expressions that set them. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from ciphercost.load.pgbench import evaluate, functions
from ciphercost.load.pgbench.evaluate import Failure, Undecided
from ciphercost.load.pgbench.expression import Call, Constant, Name, Node, calls, replaced
from ciphercost.load.pgbench.source import Source
from ciphercost.load.script_parts import Variable

LONGEST_TEXT = 1 << 20


def with_constants(node: Node, constants: Mapping[str, int | str], source: Source) -> Node:
    """The expression with the values of variables that never change. Raises UsageError for one that is no number."""

    def change(name: Name) -> Node:
        if name.name not in constants:
            return name
        try:
            return Constant(evaluate.value_of(str(constants[name.name])))
        except ValueError:
            raise source.error(name.at, f"':{name.name}' is not a number, TRUE, FALSE or NULL") from None

    return replaced(node, change)


def check(node: Node, source: Source) -> None:
    """Raises UsageError for a failure that the expression must meet, such as a division by zero."""
    if failure := evaluate.certain(node):
        raise source.error(failure.at, str(failure))


def is_ours(node: Node) -> bool:
    """Whether it calls a function that only ciphercost has: no step can."""
    return any(call.operation in functions.OURS for call in calls(node))


def variable(name: str, node: Node, source: Source) -> Variable | None:
    """The variable, if its expression is a whole number or one call that an agent draws. None: only a step can set it.

    Raises UsageError.
    """
    if isinstance(node, Call) and (node.operation in functions.OURS or node.operation in ("random", "random_zipfian")):
        if any(map(is_ours, node.operands)):
            raise source.error(node.at, f"{node.written} takes numbers")
        return _of_call(name, node, source)
    if ours := next((call for call in calls(node) if call.operation in functions.OURS), None):
        raise source.error(
            ours.at, f"{ours.written}(…) must be the whole expression; compute with its variable in the next \\set"
        )
    with contextlib.suppress(Failure, Undecided):
        value = evaluate.evaluate(node)
        if isinstance(value, int) and not isinstance(value, bool):
            return Variable(name, "constant", value=str(value))
    return None


def _of_call(name: str, node: Call, source: Source) -> Variable | None:
    try:
        values = [evaluate.evaluate(operand) for operand in node.operands]
    except (Failure, Undecided):
        values = []
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < len(node.operands):
        if node.operation in functions.OURS:
            raise source.error(node.at, f"{node.written} takes numbers that are known before the first operation")
        return None
    low = round(numbers[0])
    match node.operation:
        case "random":
            return Variable(name, "uniform", low=low, high=round(numbers[1]))
        case "random_zipfian":
            return Variable(name, "zipfian", low=low, high=round(numbers[1]), skew=float(numbers[2]))
        case "sequence":
            return Variable(name, "sequence", low=low)
        case "random_text":
            if not 1 <= low <= LONGEST_TEXT:
                raise source.error(node.at, f"random_text takes a length from 1 to {LONGEST_TEXT}, got {low}")
            return Variable(name, "text", length=low)
    if low > numbers[1]:
        raise source.error(node.at, f"the lower bound of each, {low}, is above its upper bound, {numbers[1]}")
    return Variable(name, "each", low=low, high=round(numbers[1]))
