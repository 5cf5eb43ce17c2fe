"""Reads and writes one line as one flat object; takes its fields one by one."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from ciphercost_agent_python.failure import bad_message

INTEGERS = (-(2**63), 2**63 - 1)
UNSIGNED = 2**64


def read(line: bytes) -> dict[str, Any]:
    """The fields of a line. Raises Failure unless it is one flat object of strings, numbers and booleans."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(found)
        if len(fields) < len(found):
            raise bad_message("not a flat JSON object: a field is given twice")
        return fields

    def no(word: str) -> NoReturn:
        raise bad_message(f"not a flat JSON object: {word} is not a number")

    try:
        fields = json.loads(line.decode(), object_pairs_hook=pairs, parse_constant=no)
    except (ValueError, RecursionError) as error:
        raise bad_message(f"not a flat JSON object: {error}") from None
    if not isinstance(fields, dict):
        raise bad_message("not a flat JSON object")
    for name, value in fields.items():
        if not isinstance(value, str | int | float):
            raise bad_message(f"not a flat JSON object: {name}: must be a string, a number or a boolean")
    return fields


def written(fields: dict[str, Any]) -> bytes:
    """The line of an answer."""
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="replace") + b"\n"


class Fields:
    """A message's fields. Each is taken once, by name and type; those that remain are refused."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._left = fields

    def has(self, name: str) -> bool:
        return name in self._left

    def text(self, name: str, *otherwise: str | None) -> Any:
        return self._taken(name, lambda value: isinstance(value, str), "a string", otherwise)

    def flag(self, name: str, *otherwise: bool) -> Any:
        return self._taken(name, lambda value: isinstance(value, bool), "a boolean", otherwise)

    def whole(self, name: str, *otherwise: int) -> Any:
        low, high = INTEGERS
        return self._taken(name, lambda value: type(value) is int and low <= value <= high, "an integer", otherwise)

    def unsigned(self, name: str, *otherwise: int) -> Any:
        """An integer from 0 below 2⁶⁴."""
        right = "an integer, 0 or above"
        return self._taken(name, lambda value: type(value) is int and 0 <= value < UNSIGNED, right, otherwise)

    def number(self, name: str, *otherwise: float) -> float:
        value = self._taken(
            name, lambda value: isinstance(value, int | float) and not isinstance(value, bool), "a number", otherwise
        )
        return float(value)

    def within(self, name: str, otherwise: int, least: int, most: int) -> Any:
        value = self.whole(name, otherwise)
        if not least <= value <= most:
            raise bad_message(f"{name}: must lie between {least} and {most}")
        return value

    def end(self) -> None:
        """Raises Failure if fields were not taken."""
        for name in self._left:
            raise bad_message(f"unknown field `{name}`")

    def _taken(self, name: str, right: Any, what: str, otherwise: tuple[Any, ...]) -> Any:
        if name not in self._left:
            if otherwise:
                return otherwise[0]
            raise bad_message(f"missing field `{name}`")
        value = self._left.pop(name)
        if not right(value):
            raise bad_message(f"{name}: must be {what}")
        return value
