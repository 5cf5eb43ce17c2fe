"""csvfile: a CSV file of any size -> its rows, one at a time, each with its line. Or what is wrong with it, and in which line.

RFC 4180, strictly but for this: `,` `;` tab and `|` may separate (found out by looking), lines may end with LF alone, blank lines are
passed over, and a quote within a value that doesn't begin with one stands for itself (`5" pipe`). UTF-8, with or without a mark
at the front. The first line holds the columns' names.
"""

from __future__ import annotations

import contextlib
import csv
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from ciphercost.model.errors import UsageError

DELIMITERS = ",;\t|"
MOST_FIELD = 1 << 20
"""Characters of one value."""
MOST_ROW = 16 << 20
"""Bytes of one row. Nothing longer is ever read into memory."""
LOOKED_AT = 50
"""Rows from which the delimiter is found out."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Row = tuple[int, list[str]]
"""The line that a row begins in, and its values."""


def rows(path: Path, delimiter: str = "") -> Iterator[Row]:
    """The header, then every row, each with as many values as the header. Raises UsageError with file, line and mend."""
    delimiter = delimiter or delimiter_of(path)
    with opened(path) as file:
        found = _rows(path, file, delimiter)
        first = next(found, None)
        if first is None:
            raise UsageError(f"--csv {path}: the file is empty; its first line must hold the columns' names")
        yield first
        columns = len(first[1])
        for line, values in found:
            if len(values) != columns:
                raise UsageError(
                    f"--csv {path}, line {line}: {_fields(len(values))} where the first line has {columns}. "
                    'Mend that line; a value that holds the delimiter or a line break must be quoted: "a, b"'
                )
            yield line, values


def delimiter_of(path: Path) -> str:
    """The delimiter by which the first rows have equally many values, and the most of them; a comma where none fits. Raises UsageError."""

    def fit(delimiter: str) -> tuple[bool, int]:
        widths: list[int] = []
        sound = False
        # Wrong for this delimiter, or wrong for all: then `rows` says so.
        with contextlib.suppress(UsageError), opened(path) as file:
            widths.extend(len(values) for _, values in islice(_rows(path, file, delimiter), LOOKED_AT))
            sound = True
        first = widths[0] if widths else 0
        return sound and first > 1 and widths.count(first) == len(widths), first

    return max(DELIMITERS, key=fit)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The file, open for reading. Raises UsageError where it is none, or can't be read (to its end)."""
    try:
        # Each pass begins at the front, and a pipe has no second time. Asked before it is opened: that would wait for a writer.
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise UsageError(f"--csv {path}: not a regular file; it is read twice, so save it as one")
        with path.open("rb") as file:
            yield file
    except OSError as error:
        reason = "it is a directory" if isinstance(error, IsADirectoryError) else error.strerror
        raise UsageError(f"--csv {path}: can't be read: {reason}") from None


def _rows(path: Path, file: BinaryIO, delimiter: str) -> Iterator[Row]:
    # The limit is the csv module's own, for all of the process; we never make it stricter than somebody else has it.
    csv.field_size_limit(max(csv.field_size_limit(), MOST_FIELD))
    lines = _Lines(path, file)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        begin = lines.begin_row()
        try:
            values = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise UsageError(f"--csv {path}, line {begin}: {_mend(str(error), begin, lines.number)}") from None
        if not values:
            continue
        if max(map(len, values)) > MOST_FIELD:
            raise UsageError(f"--csv {path}, line {begin}: {_mend('field larger', begin, lines.number)}")
        yield begin, values


class _Lines:
    """Lines of text out of a file of bytes, counted, none longer than may be."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self.file = file
        self.number = 0
        self.row_bytes = 0

    def begin_row(self) -> int:
        """Number of the line that the next row begins in."""
        self.row_bytes = 0
        return self.number + 1

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self.file.readline(MOST_ROW + 1)
        if not line:
            raise StopIteration
        self.number += 1
        self.row_bytes += len(line)
        if self.row_bytes > MOST_ROW:
            raise self._refusal(
                f"this row is longer than {MOST_ROW >> 20} MiB. Is the closing quote of a value missing, or are lines not "
                "ended by LF? If it is meant: leave such columns out"
            )
        if b"\0" in line:
            raise self._refusal("holds a NUL byte, which no server takes in text. Is it UTF-16? Save the file as UTF-8")
        if self.number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            raise self._refusal(
                f"byte {error.start + 1} is not UTF-8. Convert the file, e.g. `iconv -f WINDOWS-1252 -t UTF-8`"
            ) from None

    def _refusal(self, text: str) -> UsageError:
        return UsageError(f"--csv {self.path}, line {self.number}: {text}")


def _mend(error: str, begin: int, end: int) -> str:
    """What the csv module found, and what to do about it. Pure."""
    if "field larger" in error:
        return f"a value is longer than {MOST_FIELD >> 20} Mi characters. Is its closing quote missing? If not: leave the column out"
    if "unexpected end" in error:
        return (
            "a quoted value begins in this row and is never closed (the file ends within it). Write its closing quote"
        )
    if "new-line" in error:
        return "lines end with CR alone. Convert the file, e.g. `tr '\\r' '\\n'`"
    if "expected after" in error:
        until = f" (the row reaches to line {end})" if end > begin else ""
        return f'something follows a closing quote{until}. A quote within a quoted value is written twice: "5"" pipe"'
    return error


def _fields(number: int) -> str:
    return "1 value" if number == 1 else f"{number} values"
