"""functions: the functions of pgbench's expressions and how many arguments each takes. Pure.

The names and numbers are those of PostgreSQL 18 (exprparse.y, PGBENCH_FUNCTIONS).
"""

from __future__ import annotations

from typing import NamedTuple

from ciphercost.load.pgbench.expression import Call, Name, Node
from ciphercost.load.pgbench.source import Source
from ciphercost.model.errors import nearest

MOST_ARGUMENTS = 16
DEFAULT_SEED = "default_seed"
"""The variable that seeds `hash` and `permute` where a script names no seed."""


class Function(NamedTuple):
    operation: str
    """Its name in the prefix form."""
    takes: str
    """Its arguments, for a message."""
    least: int
    most: int
    seeded: bool = False
    """Whether its last argument is a seed that may be left out."""


def _fixed(operation: str, *takes: str) -> Function:
    return Function(operation, ", ".join(takes), len(takes), len(takes))


OURS = {
    "sequence": _fixed("sequence", "first"),
    "random_text": _fixed("random_text", "length"),
    "each": _fixed("each", "low", "high"),
}
"""Functions that only ciphercost has. Each is a whole expression."""
_HASH = Function("hash_murmur2", "value, seed", 1, 2, seeded=True)
FUNCTIONS: dict[str, Function] = {
    "abs": _fixed("abs", "number"),
    "debug": _fixed("debug", "value"),
    "double": _fixed("double", "number"),
    "exp": _fixed("exp", "number"),
    "greatest": Function("greatest", "number, …", 1, MOST_ARGUMENTS),
    "hash": _HASH,
    "hash_fnv1a": _HASH._replace(operation="hash_fnv1a"),
    "hash_murmur2": _HASH,
    "int": _fixed("int", "number"),
    "least": Function("least", "number, …", 1, MOST_ARGUMENTS),
    "ln": _fixed("ln", "number"),
    "mod": _fixed("mod", "number", "number"),
    "permute": Function("permute", "number, size, seed", 2, 3, seeded=True),
    "pi": _fixed("pi"),
    "pow": _fixed("pow", "number", "number"),
    "power": _fixed("pow", "number", "number"),
    "random": _fixed("random", "low", "high"),
    "random_exponential": _fixed("random_exponential", "low", "high", "parameter"),
    "random_gaussian": _fixed("random_gaussian", "low", "high", "parameter"),
    "random_zipfian": _fixed("random_zipfian", "low", "high", "parameter"),
    "sqrt": _fixed("sqrt", "number"),
    # not pgbench's: ciphercost had them before it knew `least` and `greatest`
    "min": Function("least", "number, …", 1, MOST_ARGUMENTS),
    "max": Function("greatest", "number, …", 1, MOST_ARGUMENTS),
    **OURS,
}


def call(name: str, given: list[Node], at: int, source: Source) -> Call:
    """A call of the function of that name. Raises UsageError for an unknown name and a wrong number of arguments."""
    function = FUNCTIONS.get(name.lower())
    if function is None:
        raise source.error(at, f"unknown function '{name}': {nearest(name.lower(), FUNCTIONS)}")
    if not function.least <= len(given) <= function.most:
        count = f"{len(given)} argument{'s' * (len(given) != 1)}"
        raise source.error(at, f"{name.lower()} takes ({function.takes}), got {count}")
    if function.seeded and len(given) < function.most:
        given = [*given, Name(DEFAULT_SEED, at)]
    return Call(function.operation, tuple(given), at, name.lower())
