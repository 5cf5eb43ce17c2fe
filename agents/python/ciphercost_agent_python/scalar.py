"""Values of expressions, with the conversions and errors of the Rust agent (agents/rust/src/program/expression/scalar.rs).

None is NULL; else a bool, an int of 64 bits, or a float.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

from ciphercost_agent_python.failure import statement

LEAST, MOST = -(2**63), 2**63 - 1
_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_TRUE, _FALSE = {"true", "t", "yes", "y", "on"}, {"false", "f", "no", "n", "off"}


def is_true(value: Any) -> bool:
    """Whether a condition holds: numbers other than zero do, NULL doesn't."""
    return value is not None and (math.isnan(value) or value != 0) if isinstance(value, float) else bool(value)


def boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise statement(f"cannot coerce {kind(value)} to boolean")


def integer(value: Any) -> int:
    """A number as an integer. One with a fraction is rounded to the nearest, halves to even."""
    if type(value) is int:
        return value
    if not isinstance(value, float):
        raise statement(f"cannot coerce {kind(value)} to int")
    if not math.isfinite(value) or not LEAST <= round(value) <= MOST:
        raise statement(f"double to int overflow for {shown(value)}")
    return round(value)


def real(value: Any) -> float:
    if isinstance(value, float):
        return value
    if type(value) is int:
        return float(value)
    raise statement(f"cannot coerce {kind(value)} to double")


def kind(value: Any) -> str:
    return "null" if value is None else {bool: "boolean", int: "int"}.get(type(value), "double")


def of_text(text: str, name: str) -> Any:
    """The value of a text from a row. Raises Failure if it is none; `name`: the variable's."""
    word = text.strip().lower()
    if word == "null":
        return None
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    for read in (integer_of, real_of):
        if (number := read(word)) is not None:
            return number
    raise statement(f"variable {name} is no number, boolean or NULL")


def integer_of(text: str) -> int | None:
    """An integer of 64 bits; None: the text is none."""
    if not _WHOLE.fullmatch(text) or len(text) > 40:
        return None
    number = int(text)
    return number if LEAST <= number <= MOST else None


def real_of(text: str) -> float | None:
    """A number; None: the lower-case text is none."""
    if _NUMBER.fullmatch(text) or (
        text.lstrip("+-") in ("inf", "infinity") and len(text) - len(text.lstrip("+-")) <= 1
    ):
        return float(text)
    return math.nan if text in ("nan", "+nan", "-nan") else None


def text(value: float) -> str:
    """A number as C's `%.15g` writes it."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return f"{value:.15g}"


def shown(value: float) -> str:
    """A number in the text of an error: the fewest digits that tell it from all others, without an exponent."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
    written = format(Decimal(repr(value)), "f")
    return written.removesuffix(".0") if "." in written else written
