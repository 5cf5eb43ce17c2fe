"""Reads the tables of an .xlsx workbook, each as `csv` reads a table. A sheet may hold several, above or beside each other.

Empty rows and columns separate tables. A single text above a table's header is its title, which may state the arm, the server, and by
its numbers a factor that sets the table's runs apart from those of others. openpyxl is an extra (`pip install 'ciphercost[sheets]'`).
"""

from __future__ import annotations

import csv as stdlib_csv
import datetime
import hashlib
import io
import itertools
import re
import types
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ciphercost.importers import csv_columns
from ciphercost.importers.arm_words import arm_in
from ciphercost.importers.formats import Bad, Lines, clean, csv
from ciphercost.importers.read_file import Unknown, cleaned, finite
from ciphercost.importers.server_words import server_in
from ciphercost.model import bounds
from ciphercost.model.errors import UsageError
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

MAGIC = b"PK\x03\x04"
PART = "xl/workbook.xml"
SPREAD = re.compile(
    r"\s*(?:sd|std|stddev|stdev|st\.? ?dev\.?|standard deviation|dp|desvio(?: padrão)?|σ|standardabweichung|stabw|[eé]cart[- ]type"
    r"|desviación(?: estándar)?|cv|variance|variância)\s*",
    re.IGNORECASE,
)
"""Labels of rows that show how far the rows above them scatter."""
TLS_VERSION = re.compile(r"(?:tls|ssl)[\s_-]*v?\d(?:\.\d)?", re.IGNORECASE)
NUMBERS = re.compile(r"(?<![\w.,])\d[\d.,]*(?![\w.,])")
MOST_CELLS = 5_000_000
"""Cells of a sheet that are read."""
Grid = list[list[str]]


class Block(NamedTuple):
    """A table of a sheet: where it begins, counted from 1, its title if it has one, and its rows, the first of which is its header."""

    sheet: str
    row: int
    column: int
    title: str
    rows: Grid

    @property
    def place(self) -> str:
        return f"sheet '{clean(self.sheet)[:40]}', row {self.row}, column {self.column}"


def is_one(path: Path) -> bool:
    """Whether a file is an .xlsx workbook, by its content."""
    try:
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                return False
        with zipfile.ZipFile(path) as archive:
            return PART in archive.namelist()
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return False


def read(path: Path, columns: list[csv_columns.Column], *, header: bool = True) -> tuple[str, list[Reading], str]:
    """Return (format, readings, SHA-256) of a workbook. Raises UsageError naming the file and the row, Unknown without `columns`."""
    label = clean(str(path))
    content = bounds.readable(path, bounds.SPREADSHEET, label)
    blocks = tables(content, label)
    if not columns:
        asked = (
            next((text for block in blocks if (text := csv_columns.suggested(block.rows[0]))), "")
            or csv_columns.EXAMPLE
        )
        raise Unknown(
            f"{label} is a spreadsheet; map its columns: {clean(asked)}",
            f"spreadsheets (map their columns: {csv_columns.EXAMPLE})",
        )
    if not any(column.role == "decimal" for column in columns):
        # A sheet's numbers have no decimal mark of their own.
        columns = [*columns, csv_columns.Column("decimal", "point", "")]
    wanted = {column.name.lower() for column in columns if column.role in csv_columns.FIGURES}
    readings: list[Reading] = []
    without = []
    for block in blocks:
        if header and not wanted <= {name.strip().lower() for name in block.rows[0]}:
            without.append(block)
        else:
            readings += _readings(block, columns, label, header=header)
    if not readings:
        names = ", ".join(f"'{name}'" for name in sorted(wanted))
        has = "; ".join(
            f"{block.place}: {', '.join(filter(None, map(str.strip, block.rows[0])))[:80]}" for block in blocks[:3]
        )
        raise UsageError(
            f"{label}: no table has the columns {clean(names)}; its tables begin with {clean(has) or 'nothing'}"
        )
    if without:
        places = "; ".join(block.place for block in without[:2]) + (" …" if len(without) > 2 else "")
        text = f"{len(without)} tables lack the mapped columns and were skipped ({places})"
        readings[0].notes.append(Warning_("other-tables", text))
    for reading in readings:
        reading.file = label
        cleaned(reading)
        finite(reading)
    return "spreadsheet", readings, hashlib.sha256(content).hexdigest()


def _readings(block: Block, columns: list[csv_columns.Column], label: str, *, header: bool) -> list[Reading]:
    """The runs of one table, with what its title states. Raises UsageError."""
    rows = [row for row in block.rows if not any(SPREAD.fullmatch(cell) for cell in row)]
    written = io.StringIO()
    writer = stdlib_csv.writer(written, delimiter="\t", lineterminator="\n")
    writer.writerows(rows)
    lines = Lines(itertools.chain(["\n"] * (block.row - 1), written.getvalue().splitlines(keepends=True)))
    try:
        readings = csv.read(lines, columns, header=header)
    except Bad as error:
        where = f"sheet '{clean(block.sheet)[:40]}', row {error.line}" if error.line else block.place
        raise UsageError(f"{label}, {where}: {clean(error.what)}") from None
    except (ValueError, ArithmeticError) as error:
        raise UsageError(f"{label}, {block.place}: invalid figure ({clean(str(error))})") from None
    if left := len(block.rows) - len(rows):
        readings[0].notes.append(
            Warning_("spread-row", f"{block.place}: {left} rows that show the spread of others were skipped")
        )
    server = server_in((block.title,), "table")
    numbers = " ".join(NUMBERS.findall(TLS_VERSION.sub("", block.title)))
    for reading in readings:
        reading.server = reading.server or server
        if numbers:
            reading.factors = {**reading.factors, "title": numbers}
        if not reading.names and arm_in(block.title):
            reading.names = [block.title]
    return readings


# ── a workbook's tables ───────────────────────────────────────────────────────────────────────────────────────────────


def tables(content: bytes, label: str) -> list[Block]:
    """Every table of every sheet. Raises UsageError if the workbook can't be read."""
    openpyxl = need(label)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > bounds.SPREADSHEET.most:
            raise bounds.too_large(f"{label}, unpacked", bounds.SPREADSHEET, unpacked)
        workbook = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        blocks: list[Block] = []
        for sheet in workbook.worksheets:
            blocks += _blocks(sheet.title, _cells(sheet, label))
    except UsageError:
        raise
    except Exception as error:  # openpyxl raises errors of many kinds for damaged files
        raise UsageError(
            f"{label}: not a readable workbook ({clean(str(error))[:80] or type(error).__name__}); save the table as CSV"
        ) from None
    return blocks


def need(label: str) -> types.ModuleType:
    """The openpyxl module. Raises UsageError if it is not installed."""
    try:
        import openpyxl
    except ImportError:
        raise UsageError(
            f"{label}: spreadsheets need openpyxl; run: pip install 'ciphercost[sheets]', or save the table as CSV"
        ) from None
    module: types.ModuleType = openpyxl
    return module


def _cells(sheet: object, label: str) -> Grid:
    """The texts of a sheet's cells. Raises UsageError if there are too many."""
    sheet.reset_dimensions()  # type: ignore[attr-defined]  # what a file says of its own size
    grid: Grid = []
    count = 0
    for row in sheet.iter_rows(values_only=True):  # type: ignore[attr-defined]
        grid.append([_text(value) for value in row])
        count += len(row) + 1
        if count > MOST_CELLS or len(grid) > bounds.TABLE_ROWS:
            raise UsageError(
                f"{label}: more than {bounds.TABLE_ROWS:,} rows or {MOST_CELLS:,} cells; import a part of it"
            )
    width = max(map(len, grid), default=0)
    if width * len(grid) > MOST_CELLS:
        raise UsageError(
            f"{label}: its cells lie too far apart ({len(grid):,} rows, {width:,} columns); save the table as CSV"
        )
    return [row + [""] * (width - len(row)) for row in grid]


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat(sep=" ") if isinstance(value, datetime.datetime) else value.isoformat()
    return " ".join(str(value).split())


def _blocks(sheet: str, grid: Grid) -> Iterator[Block]:
    """The tables of a sheet: bands of rows between empty ones, each split at its empty columns."""
    for top, bottom in _runs([any(row) for row in grid]):
        band = grid[top:bottom]
        filled = [any(row[column] for row in band) for column in range(len(band[0]))]
        for left, right in _runs(filled):
            rows = [row[left:right] for row in band]
            first = next(number for number, row in enumerate(rows) if any(row))
            rows = rows[first:]
            title = ""
            while len(rows) > 1 and sum(map(bool, rows[0])) == 1 and sum(map(bool, rows[1])) != 1:
                title, first, rows = " ".join(rows[0]).strip(), first + 1, rows[1:]
            while not any(rows[-1]):
                rows.pop()
            yield Block(sheet, top + first + 1, left + 1, title, rows)


def _runs(filled: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """The first and the end of each run of true values."""
    at = 0
    for value, group in itertools.groupby(filled):
        size = len(list(group))
        if value:
            yield at, at + size
        at += size
