"""Parses figures of a table: decimal point or comma, thousands separators, percent. Pure."""

from __future__ import annotations

import math
import re

from ciphercost.importers.formats import Bad

NUMBERS = ("time", "latency", "throughput", "operations", "cpu", "clients", "at")
GROUPED = re.compile(r"-?[1-9]\d{0,2}(?:\.\d{3})+%?")
"""Matches points as thousands separators, and also figures with three digits after a decimal point."""
NUMERIC = re.compile(r"-?\d[\d.]*%?")
FRACTIONS = ("time", "latency", "cpu")
"""Figures that tools print with three digits after a decimal point, where commas separate the columns."""
THOUSANDS = re.compile(r"-?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?%?")
"""Matches commas as thousands separators, and also some figures with a decimal comma; `0,125` and `1234,500` don't
match.
"""


def numbers(line: int, row: dict[str, str], comma: bool) -> dict[str, float]:
    return {role: _number(line, text, comma) for role, text in row.items() if role in NUMBERS}


def has_decimal_comma(table: list[tuple[int, dict[str, str]]], delimiter: str, others: set[str], said: str) -> bool:
    """Whether the figures have a decimal comma, so that points separate thousands. Raises Bad if commas or points are
    ambiguous.

    `others`: all figures of the file with a point; `said`: `point`, `comma` or empty.
    """
    if said:
        return said == "comma"
    if delimiter == ",":
        return _points(table, delimiter, others)
    with_comma = [(line, text) for line, row in table for role, text in row.items() if role in NUMBERS and "," in text]
    if not with_comma:
        return _points(table, delimiter, others)
    if with_comma and all(THOUSANDS.fullmatch(re.sub(r"\s", "", text)) for _, text in with_comma):
        line, text = with_comma[0]
        raise Bad(
            line,
            f"'{text}' is ambiguous: every comma here is followed by three digits, like a thousands separator; write figures "
            "with a point and without commas, or set decimal=comma",
        )
    return True


def _points(table: list[tuple[int, dict[str, str]]], delimiter: str, others: set[str]) -> bool:
    """Whether points separate thousands in a file without decimal commas. Raises Bad if they are ambiguous.

    A single figure that can only have a decimal point decides for the whole file.
    """
    pointed = [
        (line, role, text) for line, row in table for role, text in row.items() if role in NUMBERS and "." in text
    ]
    if any(text.count(".") > 1 and GROUPED.fullmatch(text) for _, _, text in pointed):
        return True
    if any(NUMERIC.fullmatch(word) and word.count(".") == 1 and not GROUPED.fullmatch(word) for word in others):
        return False
    whole = {
        role for _, row in table for role, text in row.items() if role in NUMBERS and re.fullmatch(r"\d{1,3}", text)
    }
    for line, role, text in pointed:
        if GROUPED.fullmatch(text) and (delimiter != "," or role not in FRACTIONS or role in whole):
            raise Bad(
                line,
                f"'{text}' is ambiguous: every point in these figures is followed by three digits, like a thousands separator; set "
                "decimal=point or decimal=comma in --columns",
            )
    return False


def _number(line: int, text: str, comma: bool) -> float:
    plain = text.replace("\u202f", "").replace("\u00a0", "").replace(" ", "").rstrip("%")
    if comma:
        if "." in plain and not re.fullmatch(r"-?\d{1,3}(?:\.\d{3})+(?:,\d+)?", plain):
            raise Bad(line, f"'{text}' has a point where other figures have a comma; write all of them the same way")
        plain = plain.replace(".", "").replace(",", ".")
    elif "," in plain:
        if not re.fullmatch(r"-?\d{1,3}(?:,\d{3})+\.\d+", plain):
            raise Bad(
                line,
                f"'{text}' is ambiguous because commas also separate the columns; write it with a point",
            )
        plain = plain.replace(",", "")
    try:
        value = float(plain)
    except ValueError:
        raise Bad(line, f"'{text[:40]}' is not a number") from None
    if not math.isfinite(value) or value < 0:
        raise Bad(line, f"'{text[:40]}' can't be compared")
    return value


def decimal_digits(text: str) -> int:
    """Return the number of digits after the point or comma."""
    return len(re.split("[.,]", text.rstrip("% "))[-1]) if re.search("[.,]", text) else 0
