"""Parses figures of a table: decimal point or comma, thousands separators, percent, units of single values. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from ciphercost.importers.formats import SECONDS, Bad

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
BOTH = re.compile(r"-?\d{1,3}(?:,\d{3})+\.\d+%?")
"""Commas between thousands and a decimal point: neither can be read otherwise."""
DIGITS = r"-?\d[\d.,'\u2019\u202f\u00a0 ]*"
WITH_UNIT = re.compile(rf"({DIGITS}?)\s*(us|µs|μs|ms|s|sec|msec|usec)", re.IGNORECASE)
WITH_RATE = re.compile(
    rf"({DIGITS}?)\s*([kKMG]?)\s*(?:/s|tps|qps|rps|ops|req/s|ops/s(?:ec)?|(?:requests|transactions|queries) per sec(?:ond)?\.?)?"
)
SPREAD = re.compile(rf"({DIGITS}?)\s*(?:±|\+/-).*")
"""A mean with its spread, which is not used."""
LONGEST = 100
"""Characters of a figure with its unit and its spread; a longer text is none."""
UNITS = {"sec": "s", "msec": "ms", "usec": "us", "μs": "us"}
TIMES_1000 = {"": 0, "k": 1, "m": 2, "g": 3}


def own_unit(text: str) -> bool:
    """Whether a value has its own unit, as in `850us` or `12 %`."""
    return text.endswith("%") or (len(text) <= LONGEST and bool(WITH_UNIT.fullmatch(SPREAD.sub(r"\1", text))))


def is_figure(text: str) -> bool:
    """Whether a text is a number, with or without a unit."""
    return len(text) <= LONGEST and bool(re.fullmatch(rf"{DIGITS}\s*%?", text) or WITH_UNIT.fullmatch(text))


def bare(row: Mapping[str, str], units: Mapping[str, str]) -> dict[str, str]:
    """Return a row whose figures are numbers in the units of their columns: `850us` becomes `0.85` in a column in ms."""
    bare_row = dict(row)
    for role, text in row.items():
        if role not in NUMBERS or role == "at" or len(text) > LONGEST:
            continue
        text = re.sub(r"(?<=\d)['\u2019](?=\d{3})", "", SPREAD.sub(r"\1", text))
        if role in ("time", "latency") and (match := WITH_UNIT.fullmatch(text)):
            name = match[2].lower()
            scale = SECONDS[UNITS.get(name, name)] / SECONDS[units[role]]
            text = match[1].strip() if scale == 1 else _scaled(match[1], scale)
        elif role in ("throughput", "operations") and (match := WITH_RATE.fullmatch(text)):
            text = match[1].strip() if not match[2] else _scaled(match[1], 1000.0 ** TIMES_1000[match[2].lower()])
        bare_row[role] = text
    return bare_row


def _scaled(text: str, scale: float) -> str:
    """Return a number times `scale`. A comma is its decimal mark, unless a point is there too."""
    plain = re.sub(r"\s", "", text)
    plain = plain.replace(",", "") if BOTH.fullmatch(plain) else plain.replace(",", ".")
    return f"{float(plain) * scale:.12g}"


def numbers(line: int, row: dict[str, str], comma: bool) -> dict[str, float]:
    return {role: _number(line, text, comma) for role, text in row.items() if role in NUMBERS}


def without_thousands(table: list[tuple[int, dict[str, str]]], decimal: str) -> list[tuple[int, dict[str, str]]]:
    """Return the table without commas between thousands, if a figure such as `1,234.5` or `decimal` (`point`) shows that they are."""
    figures = [re.sub(r"\s", "", text) for _, row in table for role, text in row.items() if role in NUMBERS]
    if decimal != "point" and not any(BOTH.fullmatch(text) for text in figures):
        return table
    return [
        (
            line,
            {
                role: text.replace(",", "") if role in NUMBERS and THOUSANDS.fullmatch(text) else text
                for role, text in row.items()
            },
        )
        for line, row in table
    ]


def has_decimal_comma(table: list[tuple[int, dict[str, str]]], delimiter: str, others: set[str], decimal: str) -> bool:
    """Whether the figures have a decimal comma, so that points separate thousands. Raises Bad if commas or points are
    ambiguous.

    `others`: all figures of the file with a point; `decimal`: `point`, `comma` or empty.
    """
    if decimal:
        return decimal == "comma"
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
