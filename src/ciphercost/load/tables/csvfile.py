"""Reads a CSV file of any size row by row, with line numbers, and reports what is wrong in which line.

It follows RFC 4180 strictly, with these exceptions. The delimiter may be `,` `;` tab or `|`, and is detected. Lines may
end with LF alone. Blank lines are skipped. A quote inside a value that does not begin with one is an ordinary character
(`5" pipe`). The encoding is UTF-8, with or without a byte order mark. The first line contains the column names, unless
the file has no header: then they are column1, column2 …
"""

from __future__ import annotations

import contextlib
import csv
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

from ciphercost.model.errors import UsageError

DELIMITERS = ",;\t|"
MOST_FIELD = 1 << 20
"""Most characters of one value."""
MOST_ROW = 16 << 20
"""Most bytes of one row. Nothing longer is ever read into memory."""
LOOKED_AT = 50
"""Rows from which the delimiter is detected."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Row = tuple[int, list[str]]
"""The line in which a row begins, and its values."""


def rows(path: Path, delimiter: str = "", *, header: bool = True) -> Iterator[Row]:
    """Yield the header, then every row, each with as many values as the header. `header`: whether the file has one.

    Raises UsageError with file, line and fix.
    """
    delimiter = delimiter or delimiter_of(path)
    with opened(path) as file:
        numbered_rows = _rows(path, file, delimiter)
        first = next(numbered_rows, None)
        if first is None:
            raise UsageError(f"--csv {path}: the file is empty; its first line must contain the column names")
        columns = len(first[1])
        if header:
            yield first
        else:
            yield 0, [f"column{number}" for number in range(1, columns + 1)]
            numbered_rows = chain([first], numbered_rows)
        for line, values in numbered_rows:
            if len(values) != columns:
                raise UsageError(
                    f"--csv {path}, line {line}: {_fields(len(values))}, but the first line has {columns}. "
                    'Fix that line; a value that contains the delimiter or a line break must be quoted: "a, b"'
                )
            yield line, values


def delimiter_of(path: Path) -> str:
    """Return the delimiter that gives the first rows equally many values, and the most; a comma if none does.

    Raises UsageError.
    """

    def fit(delimiter: str) -> tuple[bool, int]:
        widths: list[int] = []
        sound = False
        # If the file is wrong for every delimiter, `rows` reports it.
        with contextlib.suppress(UsageError), opened(path) as file:
            widths.extend(len(values) for _, values in islice(_rows(path, file, delimiter), LOOKED_AT))
            sound = True
        first = widths[0] if widths else 0
        return sound and first > 1 and widths.count(first) == len(widths), first

    return max(DELIMITERS, key=fit)


def has_mark(path: Path) -> bool:
    """Whether the file begins with a byte order mark. Raises UsageError."""
    with opened(path) as file:
        return file.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open the file for reading. Raises UsageError if it is not a regular file or can't be read to its end."""
    try:
        # Each pass starts at the beginning, which a pipe can't. Check first, because opening a pipe waits for a writer.
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise UsageError(f"--csv {path}: not a regular file; ciphercost reads it twice, so save it to a file first")
        with path.open("rb") as file:
            yield file
    except OSError as error:
        reason = "it is a directory" if isinstance(error, IsADirectoryError) else error.strerror
        raise UsageError(f"--csv {path}: can't be read: {reason}") from None


def _rows(path: Path, file: BinaryIO, delimiter: str) -> Iterator[Row]:
    # The csv module has one limit for the whole process, so never lower it.
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
            # Another reader in this process may have raised the limit, so that the file ends first.
            said = "field larger" if lines.row_bytes > MOST_FIELD else str(error)
            raise UsageError(f"--csv {path}, line {begin}: {_advice(said, begin, lines.number)}") from None
        if not values:
            continue
        if max(map(len, values)) > MOST_FIELD:
            raise UsageError(f"--csv {path}, line {begin}: {_advice('field larger', begin, lines.number)}")
        yield begin, values


class _Lines:
    """Decoded, counted lines of a binary file. No line is longer than the limit."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self.file = file
        self.number = 0
        self.row_bytes = 0

    def begin_row(self) -> int:
        """Return the number of the line in which the next row begins."""
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
                f"this row is longer than {MOST_ROW >> 20} MiB. Is the closing quote of a value missing, or do lines not "
                "end with LF? If the row is right: remove long columns"
            )
        if b"\0" in line:
            raise self._refusal(
                "contains a NUL byte, which no server accepts in text. Is it UTF-16? Save the file as UTF-8"
            )
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


def _advice(error: str, begin: int, end: int) -> str:
    """Describe an error of the csv module and how to fix it. Pure."""
    if "field larger" in error:
        return f"a value is longer than {MOST_FIELD >> 20} Mi characters. Is its closing quote missing? If not: remove the column"
    if "unexpected end" in error:
        return "a quoted value begins in this row and is not closed (the file ends inside it). Write its closing quote"
    if "new-line" in error:
        return "lines end with CR alone. Convert the file, e.g. `tr '\\r' '\\n'`"
    if "expected after" in error:
        until = f" (the row ends in line {end})" if end > begin else ""
        return f'something follows a closing quote{until}. Double a quote inside a quoted value: "5"" pipe"'
    return error


def _fields(number: int) -> str:
    return "1 value" if number == 1 else f"{number} values"
