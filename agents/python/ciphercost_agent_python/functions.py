"""Operators and functions of expressions, with the types, bounds and words for errors of pgbench, as in the Rust agent
(agents/rust/src/program/expression/functions.rs).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from ciphercost_agent_python import rng, scalar
from ciphercost_agent_python.failure import bad_message, statement
from ciphercost_agent_python.rng import Random
from ciphercost_agent_python.scalar import LEAST, MOST, boolean, integer, real

ARGUMENTS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("+", "-", "*", "/", "%", "=", "<>", "<", "<=", "&", "|", "#", "<<", ">>", "is"), (2, 2)),
    **dict.fromkeys(("not", "abs", "debug", "double", "exp", "int", "ln", "sqrt"), (1, 1)),
    **dict.fromkeys(("hash_fnv1a", "hash_murmur2", "mod", "pow", "random"), (2, 2)),
    **dict.fromkeys(("permute", "random_exponential", "random_gaussian", "random_zipfian"), (3, 3)),
    **dict.fromkeys(("greatest", "least"), (1, 1000)),
    "pi": (0, 0),
}
"""How many arguments each takes, at least and at most."""
LEAST_DEVIATION, MOST_SKEW = 2.0, 1000.0
_NAMES = {"+": "add", "-": "sub", "*": "mul"}
_SUMS: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
}


def check(name: str, arguments: int) -> None:
    """Raises Failure for an unknown function, or a wrong number of arguments."""
    if name not in ARGUMENTS:
        raise bad_message(f'expression: no function "{name}" is known')
    least, most = ARGUMENTS[name]
    if not least <= arguments <= most:
        raise bad_message(f"expression: {name} takes {least} to {most} arguments, not {arguments}")


def call(name: str, given: list[Any], random: Random) -> Any:
    """Its value. NULL if any argument is, except for `is` and `debug`."""
    if name == "is":
        return type(given[0]) is type(given[1]) and given[0] == given[1]
    if name == "debug":
        return given[0]
    if None in given:
        return None
    if name in ("+", "-", "*", "/", "%", "mod"):
        return _arithmetic(name, *given)
    if name in _COMPARED:
        convert: Callable[[Any], Any] = real if _any_real(given) else integer
        return _COMPARED[name](convert(given[0]), convert(given[1]))
    if name in _OF_INTEGERS:
        return _OF_INTEGERS[name](*map(integer, given))
    if name in _OF_REALS:
        return _OF_REALS[name](*map(real, given))
    if name.startswith("random"):
        low, high, shape = integer(given[0]), integer(given[1]), real(given[2]) if len(given) > 2 else 0.0
        return _drawn(name, low, high, shape, random)
    match name:
        case "not":
            return not boolean(given[0])
        case "abs":
            return abs(given[0]) if isinstance(given[0], float) else rng.signed(abs(integer(given[0])))
        case "int":
            return integer(given[0])
        case "permute":
            value, size, seed = integer(given[0]), integer(given[1]), given[2]
            if size <= 0:
                raise statement("permute size parameter must be greater than zero")
            return rng.permute(value, size, integer(seed))
    return _extreme(name, given)


def _any_real(given: list[Any] | tuple[Any, ...]) -> bool:
    return any(isinstance(value, float) for value in given)


def _arithmetic(name: str, left: Any, right: Any) -> Any:
    if _any_real((left, right)) and name not in ("%", "mod"):
        return _of_doubles(name, real(left), real(right))
    first, second = integer(left), integer(right)
    if name in _SUMS:
        value = _SUMS[name](first, second)
    else:
        if second == 0:
            raise statement("division by zero")
        value = abs(first) // abs(second)
        value = value if (first < 0) == (second < 0) else -value
        if name != "/":
            return first - second * value
    if not LEAST <= value <= MOST:
        raise statement(f"bigint {_NAMES.get(name, 'div')} out of range")
    return value


def _of_doubles(name: str, left: float, right: float) -> float:
    if name != "/":
        return _SUMS[name](left, right)  # type: ignore[no-any-return]
    if right:
        return left / right
    return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _ln(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf if value == 0 else math.nan


def _extreme(name: str, given: list[Any]) -> Any:
    """The greatest or the least value: an integer if all are."""
    chosen: Callable[..., Any] = max if name == "greatest" else min
    if not _any_real(given):
        return chosen(map(integer, given))
    numbers = [value for value in map(real, given) if not math.isnan(value)]
    return chosen(numbers) if numbers else math.nan


_OF_INTEGERS: dict[str, Callable[..., int]] = {
    "&": operator.and_,
    "|": operator.or_,
    "#": operator.xor,
    # A shift uses the low six bits of its distance, as processors do.
    "<<": lambda left, right: rng.signed(left << (right & 63)),
    ">>": lambda left, right: left >> (right & 63),
    "hash_fnv1a": rng.fnv1a,
    "hash_murmur2": rng.murmur2,
}
_OF_REALS: dict[str, Callable[..., float]] = {
    "double": float,
    "exp": _exp,
    "ln": _ln,
    "sqrt": lambda value: math.sqrt(value) if value >= 0 else math.nan,
    "pi": lambda: math.pi,
    "pow": rng.power,
}


def _drawn(name: str, low: int, high: int, shape: float, random: Random) -> int:
    """A random integer from `low` to `high`, by the distributions of pgbench's documentation."""
    if low > high:
        raise statement("empty range given to random")
    values = high - low + 1
    if values > MOST:
        raise statement("random range is too large")
    if name == "random":
        return low + random.below(values)
    if name == "random_exponential":
        if not 0 < shape < math.inf:
            raise statement(f"exponential parameter must be greater than zero (not {scalar.shown(shape)})")
        cut = math.exp(-shape)
        uniform = 1.0 - random.share()
        return low + _at(-math.log(cut + (1.0 - cut) * uniform) / shape, values)
    if name == "random_gaussian":
        if not LEAST_DEVIATION <= shape < math.inf:
            raise statement(f"gaussian parameter must be at least {LEAST_DEVIATION:.6f} (not {scalar.shown(shape)})")
        return low + _at((_normal_within(shape, random) + shape) / (2.0 * shape), values)
    if not 0 < shape <= MOST_SKEW or shape == 1:
        raise statement(f"zipfian parameter must be above 0, at most 1000 and not 1 (not {scalar.shown(shape)})")
    return low + min(rng.Zipf(values, shape).draw(random) - 1, values - 1)


def _at(share: float, values: int) -> int:
    """The value at this share of the range. Rounding may reach the range's end, which is not in it."""
    return max(0, min(int(values * share), values - 1))


def _normal_within(most: float, random: Random) -> float:
    """A value of the standard normal distribution within ±most (Box and Muller 1958), drawn anew until it is."""
    while True:
        radius = math.sqrt(-2.0 * math.log(1.0 - random.share()))
        value = radius * math.sin(2.0 * math.pi * random.share())
        if -most <= value < most:
            return value
