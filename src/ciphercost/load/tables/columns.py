"""Detects the type of each column of a CSV file from its values. Pure.

A column gets a type only if every value can be read back unchanged: `007` stays text, and so does a number with more
digits than a server's numbers have. A decimal comma becomes a point, unless every comma may separate thousands.
An empty value is NULL, except in a text column, where it is the empty text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Literal

import msgspec

from ciphercost.model.errors import UsageError

Kind = Literal["boolean", "integer", "bigint", "decimal", "double", "date", "timestamp", "text"]

PREFIX = "c_"
"""Prefix of every column name, so that no name is a keyword of any server or begins with a digit."""
NAME_LETTERS = 24
"""With prefix and number, this fits Firebird 3's limit of 31 bytes."""
MOST_NUMBER = 64
"""Most characters of a number; anything longer is text."""
TINY, HUGE = 1e-290, 1e300
"""The range in which every server's double keeps all its digits. Firebird refuses a parameter whose exponent and digits after the
point exceed 308 together, and 17 digits may follow."""

NULL = "\ufdd0NULL"
"""Stands for NULL in files that ciphercost itself makes of a table: U+FDD0 is in no text that is interchanged."""

_INTEGER = re.compile(r"0|-?[1-9][0-9]*").fullmatch
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)?\.[0-9]+").fullmatch
_COMMA = re.compile(r"-?(?:0|[1-9][0-9]*),[0-9]+").fullmatch
_THOUSANDS = re.compile(r"-?[1-9][0-9]{0,2},[0-9]{3}").fullmatch
_DOUBLE = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?[eE][+-]?[0-9]{1,3}").fullmatch
_BOOLEAN = re.compile(r"true|false", re.IGNORECASE).fullmatch
# MySQL's dates start in the year 1000.
_DATE = re.compile(r"[1-9][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])").fullmatch
_TIMESTAMP = re.compile(
    r"([1-9][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01]))[ T](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.([0-9]{1,6}))?)?"
).fullmatch


class Seen:
    """Kinds of values as bits, so that a set of kinds is one number. Fast, since every value of the file is checked."""

    INTEGER, DECIMAL, DOUBLE, BOOLEAN, DATE, TIMESTAMP, TEXT, COMMA = (1 << n for n in range(8))


NUMBERS = Seen.INTEGER | Seen.DECIMAL | Seen.DOUBLE | Seen.COMMA


class Column(msgspec.Struct, frozen=True):
    """One column of a table made from the user's file."""

    name: str
    """The name in SQL."""
    title: str
    """The name in the file."""
    kind: Kind
    length: int = 1
    """Characters of its longest value."""
    bytes: int = 1
    """Upper bound of the bytes of its longest value in UTF-8."""
    digits: int = 0
    """For a decimal: number of all its digits."""
    scale: int = 0
    """For a decimal: digits after the point. For a timestamp: digits of the fractional second."""
    comma: bool = False
    """The file writes this number with a decimal comma."""
    empty_is_null: bool = False
    """A secret column of another type than text, which is stored as text: an empty value stays NULL."""
    marked: bool = False
    """Some of its values are NULL."""

    def is_null(self, value: str) -> bool:
        return value == NULL or (not value and (self.kind != "text" or self.empty_is_null))

    @property
    def as_text(self) -> Column:
        """The column whose values are texts, as they are in the file: how a secret column is stored."""
        return msgspec.structs.replace(
            self, kind="text", digits=0, scale=0, comma=False, empty_is_null=self.kind != "text"
        )


class ColumnDetector:
    """What is known so far about the values of one column."""

    __slots__ = ("decimal_comma", "exact", "high", "length", "low", "marked", "scale", "seen", "whole", "wide")

    def __init__(self) -> None:
        self.seen = 0
        self.length = 1
        self.wide = False
        """Whether a value contains characters outside ASCII."""
        self.marked = False
        """Whether a value is `NULL`."""
        self.low = self.high = 0
        self.whole = self.scale = 0
        """Most digits before and after a decimal point, or of a fractional second."""
        self.exact = True
        """Whether a double returns every number unchanged."""
        self.decimal_comma = False
        """Whether a comma can't separate thousands, so that all of them are decimal."""

    def add(self, value: str) -> None:
        if value == NULL:
            self.marked = True
            return
        length = len(value)
        if length > self.length:
            self.length = length
        if not self.wide and not value.isascii():
            self.wide = True
        if not value or self.seen & Seen.TEXT:
            return
        kind = self._kind(value)
        self.seen |= kind
        if self.seen != kind and self.seen & ~NUMBERS:
            self.seen = Seen.TEXT  # kinds that have no common type

    def _kind(self, value: str) -> int:
        # A value most likely has the same kind as the previous one.
        seen = self.seen
        if not (seen == Seen.DATE and _DATE(value)) and len(value) <= MOST_NUMBER:
            if _INTEGER(value):
                self._integer(value)
                return Seen.INTEGER
            if _DECIMAL(value):
                whole, _, fraction = value.lstrip("-").partition(".")
                self.whole, self.scale = max(self.whole, len(whole)), max(self.scale, len(fraction))
                self._exactly(value)
                return Seen.DECIMAL
            if _COMMA(value):
                whole, _, fraction = value.lstrip("-").partition(",")
                self.whole, self.scale = max(self.whole, len(whole)), max(self.scale, len(fraction))
                self.decimal_comma = self.decimal_comma or not _THOUSANDS(value)
                self._exactly(value.replace(",", "."))
                return Seen.COMMA
            if _DOUBLE(value):
                self._exactly(value)
                return Seen.DOUBLE
        if _BOOLEAN(value):
            return Seen.BOOLEAN
        if _DATE(value):
            return Seen.DATE if _in_the_calendar(value) else Seen.TEXT
        if (match := _TIMESTAMP(value)) and _in_the_calendar(match[1]):
            self.scale = max(self.scale, len(match[2] or ""))
            return Seen.TIMESTAMP
        return Seen.TEXT

    def _integer(self, value: str) -> None:
        digits = len(value) - (value[0] == "-")
        if digits > self.whole:
            self.whole = digits
        if digits > 9:
            number = int(value)
            self.low, self.high = min(self.low, number), max(self.high, number)
            self._exactly(value)

    def _exactly(self, value: str) -> None:
        # A double holds any 15 digits, unless an exponent takes them out of its range.
        if self.exact and (len(value) > 15 or "e" in value or "E" in value):
            number = float(value)
            self.exact = number == 0 or TINY < abs(number) < HUGE
            self.exact = self.exact and Decimal(repr(number)) == Decimal(value)

    def column(self, name: str, title: str, most_digits: int = 18, most_fraction: int = 6) -> Column:
        """Return the column for these values.

        `most_digits`: of a decimal; `most_fraction`: digits of a fractional second.
        """
        kind = self._final(most_digits)
        if kind == "timestamp" and self.scale > most_fraction:
            kind = "text"
        return Column(
            name=name,
            title=title,
            kind=kind,
            length=self.length,
            bytes=self.length * (4 if self.wide else 1),
            digits=max(1, self.whole + self.scale) if kind == "decimal" else 0,
            scale=self.scale if kind in ("decimal", "timestamp") else 0,
            comma=bool(self.seen & Seen.COMMA) and kind in ("decimal", "double"),
            marked=self.marked,
        )

    def _final(self, most_digits: int) -> Kind:
        match self.seen:
            case Seen.BOOLEAN:
                return "boolean"
            case Seen.DATE:
                return "date"
            case Seen.TIMESTAMP:
                return "timestamp"
            case Seen.INTEGER if self.low >= -(2**31) and self.high < 2**31:
                return "integer"
            case Seen.INTEGER if self.low >= -(2**63) and self.high < 2**63:
                return "bigint"
            case seen if seen & Seen.COMMA and (seen & (Seen.DECIMAL | Seen.DOUBLE) or not self.decimal_comma):
                return "text"
            case seen if seen and not seen & ~NUMBERS:
                fits = not seen & Seen.DOUBLE and seen != Seen.INTEGER and self.whole + self.scale <= most_digits
                return "decimal" if fits else "double" if self.exact else "text"
            case _:
                return "text"


def _in_the_calendar(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def names(titles: Sequence[str], where: str) -> list[str]:
    """Return SQL names for a file's column titles: valid in every server, all different.

    Raises UsageError for an empty or repeated title.
    """
    sql_names: dict[str, None] = {}
    places: dict[str, int] = {}
    for number, title in enumerate(titles, start=1):
        if not title.strip():
            raise UsageError(f"{where}: column {number} has no name. The first line must name every column")
        if title in places:
            raise UsageError(
                f"{where}: columns {places[title]} and {number} are both named '{shown(title)}'. Rename one of them"
            )
        places[title] = number
        plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
        letters = re.sub(r"[^a-z0-9]+", "_", plain).strip("_")[:NAME_LETTERS].rstrip("_")
        stem = PREFIX + (letters or "column")
        name, again = stem, 1
        while name in sql_names:
            again += 1
            name = f"{stem}_{again}"
        sql_names[name] = None
    if all(_is_data(title) for title in titles):
        raise UsageError(
            f"{where}: these look like values, not names ({', '.join(shown(title) for title in titles[:3])}…). "
            "The first line must name the columns; add such a line, or use --no-header"
        )
    return list(sql_names)


def _is_data(title: str) -> bool:
    gauge = ColumnDetector()
    gauge.add(title.strip())
    return not gauge.seen & Seen.TEXT


def shown(text: str) -> str:
    """Shorten a user's value for a message. Pure."""
    line = "".join(letter if letter.isprintable() else "?" for letter in text)
    return line if len(line) <= 40 else line[:39] + "…"
