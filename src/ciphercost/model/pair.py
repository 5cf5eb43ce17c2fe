"""What the two arms of a cell are: encryption off and on, or two settings of encryption."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from ciphercost.model.spec import Arm

Kind = Literal["off-on", "versus"]
_PHRASES = (
    ("plain → encrypted", "{reference} → {compared}"),
    ("encrypted ÷ plain", "{compared} ÷ {reference}"),
    ("plain ÷ encrypted", "{reference} ÷ {compared}"),
    ("encrypted / plain", "{compared} / {reference}"),
    (r"(?<![\w-])plain(?= (?:(?:arm|slice|operation|one)s?\b|\d))|(?<=\d )plain\b|^plain$", "{reference}"),
    (
        r"(?<![\w-])encrypted(?= (?:(?:arm|slice|operation|one)s?\b|and \d|\d))|(?<=\d )encrypted\b|^encrypted$",
        "{compared}",
    ),
    (r"\bencryption(?= (?:adds|costs)\b)", "{compared}"),
    ("cost of encryption", "cost of {compared}"),
    (r"\bwithout encryption\b", "with {reference}"),
    (r"\bwith encryption\b", "with {compared}"),
)
"""How texts speak of the arms, as regular expressions, and how they speak of two encrypted ones."""
_COMPILED = tuple((re.compile(pattern), words) for pattern, words in _PHRASES)


class PairArm(msgspec.Struct, frozen=True, omit_defaults=True):
    """One arm of a pair."""

    name: str
    """What reports call it: `TLS 1.2`, `cipher=chacha20`."""
    factors: dict[str, str] = {}
    """Its settings, as far as the arms differ in them."""
    encryption: dict[str, str] = {}
    """As negotiated, like `Cell.encryption`."""


class Pair(msgspec.Struct, frozen=True, omit_defaults=True):
    """The two arms of a cell. Ratios are `compared` ÷ `reference`.

    Wherever a record or a result says `plain`, that is the reference's place, and `encrypted` that of the compared arm.
    """

    kind: Kind
    reference: PairArm
    compared: PairArm

    def of(self, arm: Arm) -> PairArm:
        """The arm in this place."""
        return self.reference if arm == "plain" else self.compared

    def worded(self, text: str) -> str:
        """The text with both arms' own names instead of plain and encrypted, wherever it speaks of the arms as in `_PHRASES`."""
        for pattern, words in _COMPILED:
            phrase = words.format(reference=self.reference.name, compared=self.compared.name)
            text = pattern.sub(lambda _, phrase=phrase: phrase, text)  # type: ignore[misc]
        return text


PLACES = {"plain": "reference", "encrypted": "compared"}
"""What result.json calls the arms of a cell whose arms are both encrypted."""
_INWARD = {outside: inside for inside, outside in PLACES.items()}
_KEY = re.compile(r"^(plain|encrypted|reference|compared)(?=$|_)")


def place(pair: Pair | None, arm: Arm) -> str:
    """What result.json and tables call this arm of a cell: `plain`, or `reference` if both arms are encrypted. Pure."""
    return PLACES[arm] if pair else arm


def outward_key(name: str) -> str:
    """What result.json calls a field in a cell whose arms are both encrypted. Pure."""
    return _KEY.sub(lambda match: PLACES.get(match[1], match[1]), name)


def outward(result: Any) -> Any:
    """The builtins of a result as result.json has them: a cell with a pair says `reference` and `compared`. Pure."""
    return _translated(result, PLACES)


def inward(result: Any) -> Any:
    """The reverse of `outward`. Pure."""
    return _translated(result, _INWARD)


def _translated(result: Any, words: Mapping[str, str]) -> Any:
    cells = result.get("cells") if isinstance(result, dict) else None
    if not isinstance(cells, list):
        return result  # not a result, which its reader says better
    return {**result, "cells": [_of_cell(cell, words) for cell in cells]}


def _of_cell(cell: Any, words: Mapping[str, str]) -> Any:
    if not (isinstance(cell, dict) and cell.get("pair")):
        return cell
    return {name: value if name in KEPT else _renamed(value, words) for name, value in cell.items()}


KEPT = ("pair", "factors", "against_reference", "client_against_reference")
"""Fields of a cell whose keys are no arms, or name them already."""


def _renamed(value: Any, words: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        renamed = {}
        for name, field_value in value.items():
            new_value = (
                words.get(field_value, field_value)
                if name == "arm" and isinstance(field_value, str)
                else _renamed(field_value, words)
            )
            renamed[_KEY.sub(lambda match: words.get(match[1], match[1]), name)] = new_value
        return renamed
    return [_renamed(item, words) for item in value] if isinstance(value, list) else value


OFF_ON = Pair("off-on", PairArm("plain"), PairArm("encrypted"))
"""The pair of every cell that does not say otherwise."""
