"""Reads one file: its format, which its content determines, its readings and its checksum."""

from __future__ import annotations

import codecs
import hashlib
import math
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from ciphercost.importers import csv_columns, formats
from ciphercost.importers.formats import Bad, Lines, Nothing, as_printed, clean, csv, without_secrets
from ciphercost.importers.formats._csv_frames import table as table_in
from ciphercost.importers.headings import Heading, heading, measured, under_headings
from ciphercost.importers.known_files import unread_binary, unread_text
from ciphercost.importers.unwrap import Wrapping, without_colours, wrapping
from ciphercost.model import bounds
from ciphercost.model.errors import UsageError
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

HEAD = 262_144
"""Bytes at the beginning in which a format is searched."""
LONGEST_LINE = 1_000_000
BLOCK = 4096
"""Lines that are searched at once for another tool's mark."""
STRICT = ("pgbench_log", "csv", "hyperfine", "times")
"""Formats whose readers refuse every unknown line."""
CPU = ("sar", "sadf", "atop", "atop_screen")
"""Formats of machine counters: their headings contain host names."""


class Unknown(UsageError):
    """A file of unknown format; `kind`: the reason, without the file's name."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


def read(path: Path, columns: list[csv_columns.Column], *, header: bool = True) -> tuple[str, list[Reading], str]:
    """Return (format, readings, SHA-256) of a file. `header`: whether the first line of a table names its columns.

    Raises UsageError naming file and line, Unknown if the format is unknown.
    """
    digest = hashlib.sha256()
    label = clean(str(path))
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
            if not head.strip(b"\0 \t\r\n"):
                raise Unknown(f"{label}: the file is empty; did the tool print to standard error (2>&1)?", "empty")
            encoding = encoding_of(head, label)
            beginning = codecs.getincrementaldecoder(encoding)("replace").decode(head).replace("\r\n", "\n")
            around = wrapping(beginning)
            importer = format_of(beginning, around, columns, label)
            bound = bounds.IMPORTED_LOG if importer == "pgbench_log" else bounds.IMPORTED
            if (size := os.fstat(file.fileno()).st_size) > bound.most:
                raise bounds.too_large(label, bound, size)
            file.seek(0)
            headings: list[Heading] = []
            known = formats.get(importer)
            strict = importer in STRICT or is_data(known, beginning)
            above = None if importer in CPU else headings
            raw_lines = texts(file, encoding, digest, bound)
            if strict:
                lines = Lines(without_colours(line) for line in raw_lines)
            else:
                lines = Lines(tool_lines(raw_lines, around, importer, above))
            readings = csv.read(lines, columns, header=header) if importer == "csv" else known.read(lines)
            for _ in lines:  # the rest of the file, for the checksum
                pass
    except OSError as error:
        raise UsageError(f"can't read {label}: {error.strerror}") from None
    except Nothing as error:
        raise Unknown(f"{label}, line {error.line}: {clean(error.what)}", clean(error.what)) from None
    except Bad as error:
        where = f"{label}, line {error.line}" if error.line else label
        raise UsageError(f"{where}: {clean(error.what)}") from None
    except (ValueError, ArithmeticError) as error:
        raise UsageError(f"{label}, line {lines.number}: invalid figure ({clean(str(error))})") from None
    if not readings:
        raise UsageError(
            f"{label}, line {lines.number}: {importer}'s output ends before its result; import the whole output"
        )
    try:
        readings = measured(readings, headings)
        under_headings(readings, headings)
    except Bad as error:
        raise UsageError(f"{label}, line {error.line}: {error.what}") from None
    for reading in readings:
        reading.file = label
        cleaned(reading)
        finite(reading)
        if reading.errors > reading.operations > 0:
            raise UsageError(
                f"{label}, line {reading.line}: more operations failed ({reading.errors:,}) than succeeded ({reading.operations:,}), so this is not "
                "a usable result; fix the cause and run it again"
            )
    return importer, readings, digest.hexdigest()


def is_data(importer: formats.Importer, beginning: str) -> bool:
    """Whether the text is JSON or a table from the importer's mark on, so that none of its lines was wrapped or is a heading."""
    mark_line = importer.recognise(beginning) if importer.data else 0
    return bool(importer.data and mark_line and importer.data.match(beginning.split("\n")[mark_line - 1]))


def cleaned(reading: Reading) -> None:
    """Clean its names of unprintable characters. Changes the reading."""
    reading.tool, reading.version = clean(reading.tool), clean(reading.version)
    reading.engine, reading.workload = clean(reading.engine), clean(reading.workload)
    reading.names = [clean(name) for name in reading.names]
    reading.factors = {clean(name): clean(value) for name, value in reading.factors.items()}
    reading.encryption = {clean(name): clean(value) for name, value in reading.encryption.items()}
    reading.notes = [Warning_(note.code, clean(note.text)) for note in reading.notes]


def finite(reading: Reading) -> None:
    """Raise UsageError if a figure is not a usable number."""
    figures = [("seconds", [reading.seconds]), *((name, [value]) for name, value in reading.figures.items())]
    for name, values in [*figures, *reading.series.items()]:
        if wrong := [value for value in values if not math.isfinite(value)]:
            raise UsageError(
                f"{reading.file}, line {reading.line}: {name} is {wrong[0]}, which can't be compared; is the output complete?"
            )


def encoding_of(head: bytes, label: str) -> str:
    """Detect UTF-8, UTF-16 (as Windows' shell writes it) or, if the bytes fit neither, cp1252.

    Raises Unknown if it is not text.
    """
    if what := unread_binary(head):
        raise Unknown(f"{label} is {what}", what)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    zeros = head.count(0)
    if zeros:
        odd = head[1::2].count(0)
        if zeros > 0.3 * len(head) and (odd > 0.9 * zeros or odd < 0.1 * zeros):
            return "utf-16-le" if odd > 0.5 * zeros else "utf-16-be"
        raise Unknown(f"{label} is not text; import a tool's printed output", "not text")
    try:
        # The head may end in the middle of a character.
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def texts(file: Iterable[bytes], encoding: str, digest: object, bound: bounds.Bound = bounds.IMPORTED) -> Iterator[str]:
    """Yield the lines of a file and pass every byte to the checksum. Raises Bad for a line that no tool prints."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    rest = ""
    number = done = 0
    for block in iter(lambda: file.read(HEAD), b""):  # type: ignore[attr-defined]
        done += len(block)
        if done > bound.most:  # it grows
            raise Bad(number + 1, f"more than {bound.size}; {bound.advice}")
        digest.update(block)  # type: ignore[attr-defined]
        *whole, rest = (rest + decoder.decode(block)).split("\n")
        for line in whole:
            number += 1
            yield line + "\n"
        if len(rest) > LONGEST_LINE and not rest.lstrip().startswith("{"):
            raise Bad(number + 1, "a line of more than a million characters, so this is not a tool's output")
        if len(rest) > bounds.IMPORTED_JSON.most:
            raise Bad(number + 1, f"more than {bounds.IMPORTED_JSON.size} of JSON; {bounds.IMPORTED_JSON.advice}")
    rest += decoder.decode(b"", final=True)
    if rest:
        yield rest


def tool_lines(lines: Iterable[str], around: Wrapping, of: str, headings: list[Heading] | None = None) -> Iterator[str]:
    """Yield lines as the tool `of` printed them. `headings`: collects the lines that describe the runs below them.

    Raises Bad if a line below the beginning has the mark of another tool.
    """
    number, own = 0, formats.get(of).own
    for block in batched(lines, BLOCK):
        unwrapped = [around.off(line) for line in block]
        for name, line_of_it in formats.recognised("".join(unwrapped)).items() if number else ():
            if name not in (of, "pgbench_log"):
                raise Bad(
                    number + line_of_it,
                    f"a result of {name} begins here, in a file of {of}; put each tool's output into its own file",
                )
        for line in unwrapped:
            number += 1
            if headings is not None and (told := heading(line, number, own)):
                headings.append(told)
            yield as_printed(line)


def batched(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    """Yield lists of at most `size` lines."""
    every = iter(lines)
    while block := list(islice(every, size)):
        yield block


def suggestion(head: str) -> str:
    """Return the map of columns that the names of a table suggest; empty: they suggest none."""
    try:
        header = table_in(Lines(head.splitlines(keepends=True)[:200])).header
    except Bad:
        return ""
    return csv_columns.suggested(header)


def format_of(head: str, around: Wrapping, columns: list[csv_columns.Column], label: str) -> str:
    """Return the importer whose mark the text contains. Raises UsageError if two do, Unknown if none does."""
    fits = formats.recognised("\n".join(around.off(line) for line in head.split("\n")))
    if "hyperfine" in fits:
        return "hyperfine"
    if len(fits) > 1:
        where = " and ".join(f"{name} (line {line})" for name, line in sorted(fits.items(), key=lambda item: item[1]))
        raise UsageError(f"{label} contains results of {where}; put each tool's output into its own file")
    if fits:
        return next(iter(fits))
    if what := unread_text(head):
        raise Unknown(f"{label} is {what}", what)
    if columns:
        return "csv"
    known = ", ".join(name.replace("_", "-") for name in formats.names() if name != "csv")
    first = next((line for line in head.splitlines() if line.strip()), "")
    if any(first.count(delimiter) >= 1 for delimiter in (";", ",", "\t", "|")) or first.startswith("+-"):
        asked = clean(suggestion(head)) or csv_columns.EXAMPLE
        raise Unknown(
            f"{label}, line 1: if this is a table ('{without_secrets(first[:300])[:60]}'), map its columns: "
            f"{asked}. Formats that need no map: {known}",
            f"possibly tables (map their columns: {csv_columns.EXAMPLE})",
        )
    raise Unknown(
        f"{label}, line 1: '{without_secrets(first[:300])[:60]}' is not the beginning of a known tool's output; known tools: {known}",
        "not the output of a known tool",
    )
