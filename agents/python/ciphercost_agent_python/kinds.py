"""How a variable's values are generated, in the same order of draws as in the Rust agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ciphercost_agent_python.failure import bad_message
from ciphercost_agent_python.fields import Fields
from ciphercost_agent_python.rng import MASK, Random, Zipf

LONGEST_TEXT = 16 << 20


class Kind(NamedTuple):
    name: str
    draw: Callable[[Random], Any] | None = None
    """None: its value is not drawn."""
    low: int = 0
    high: int = 0
    value: int | str = ""
    """Of a constant, as it is bound: an integer if it is written as one."""


def read(kind: str, fields: Fields) -> Kind:
    """Each kind accepts only its own fields. Raises Failure."""
    match kind:
        case "uniform" | "zipfian" | "each":
            low, high = fields.whole("low"), fields.whole("high")
            if low > high:
                raise bad_message("low: must not be above high")
            if kind == "each":
                return Kind(kind, None, low, high)
            values = high - low + 1
            if kind == "uniform":
                return Kind(kind, lambda random: low + random.below(values & MASK), low, high)
            skew = fields.number("skew")
            if not 0 < skew < 100 or skew == 1:
                raise bad_message("skew: must be above 0, below 100 and not 1")
            zipf = Zipf(values, skew)
            return Kind(kind, lambda random: min(low + zipf.draw(random) - 1, high), low, high)
        case "sequence":
            return Kind(kind, None, fields.whole("low"))
        case "text":
            length = fields.whole("length")
            if not 0 <= length <= LONGEST_TEXT:
                raise bad_message(f"length: must lie between 0 and {LONGEST_TEXT}")
            return Kind(kind, lambda random: random.letters(length))
        case "constant":
            written = fields.text("value")
            digits = written.removeprefix("-")
            whole = digits.isascii() and digits.isdecimal() and len(digits) <= 18
            return Kind(kind, None, value=int(written) if whole else written)
        case "computed" | "client":
            return Kind(kind)
        case "sealed" | "blind":
            raise bad_message(f'kind: this agent does not support "{kind}"')
    raise bad_message(f'kind: "{kind}" is unknown')
