"""read_file: one file -> its format, its readings and its checksum. A format is recognised by its content."""

from __future__ import annotations

import codecs
import hashlib
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ciphercost.importers import csv_columns, formats
from ciphercost.importers.formats import Bad, Lines, clean, csv, discreet
from ciphercost.importers.headings import Heading, heading, under_headings
from ciphercost.model.errors import UsageError
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

HEAD = 262_144
"""Bytes in which a format is looked for."""
LONGEST_LINE = 1_000_000
STRICT = ("pgbench_log", "csv", "hyperfine")
"""Formats whose readers refuse every line that isn't their own."""
CPU = ("sar", "sadf", "atop")
"""Formats of a machine's counters: their headings name hosts."""
KNOWN_BINARY: tuple[tuple[bytes, str], ...] = (
    (b"\x96\xd5", "sysstat's own binary file: print it with `sadf -d FILE -- -u -r > FILE.csv`, and import that"),
    (b"\xd5\x96", "sysstat's own binary file: print it with `sadf -d FILE -- -u -r > FILE.csv`, and import that"),
    (
        b"\xef\xbe\xed\xfe",
        "atop's own binary file: print it with `atop -r FILE -P CPU,MEM > FILE.txt`, and import that",
    ),
    (
        b"\xfe\xed\xbe\xef",
        "atop's own binary file: print it with `atop -r FILE -P CPU,MEM > FILE.txt`, and import that",
    ),
    (b"\x1f\x8b", "compressed (gzip): unpack it first"),
    (b"\xfd7zXZ", "compressed (xz): unpack it first"),
    (b"\x28\xb5\x2f\xfd", "compressed (zstd): unpack it first"),
    (b"PK\x03\x04", "an archive or an office document: unpack it, or save the table as CSV"),
)
KNOWN_TEXT: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^Benchmark (?:#?1|\S+): .*\n\s+Time \(", re.MULTILINE), "hyperfine's screen, which rounds: run it with --export-json FILE"),
    (re.compile(r"\Acommand,mean,stddev,median,user,system,min,max"), "hyperfine's CSV, which has no single times: run it with --export-json FILE"),
    (re.compile(r'\A\s*\{\s*"sysstat"'), "sysstat's JSON: print it with `sadf -d FILE -- -u -r > FILE.csv`, and import that"),
    (re.compile(r"^ATOP - ", re.MULTILINE), "atop's screen: print its file with `atop -r FILE -P CPU,MEM`, and import that"),
    (re.compile(r"^(?:RESET|SEP)\s*$", re.MULTILINE), "atop's output without CPU: run `atop -P CPU,MEM`"),
)  # fmt: skip


class Unknown(UsageError):
    """A file of no format that is known; `kind`: why, without its name."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


def read(path: Path, columns: list[csv_columns.Column]) -> tuple[str, list[Reading], str]:
    """(format, what it says, SHA-256) of a file. Raises UsageError naming file and line; Unknown where it is something else."""
    digest = hashlib.sha256()
    label = clean(str(path))
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
            if not head.strip(b"\0 \t\r\n"):
                raise Unknown(f"{label}: the file is empty: was the tool's output sent elsewhere (2>&1)?", "empty")
            encoding = encoding_of(head, label)
            beginning = codecs.getincrementaldecoder(encoding)("replace").decode(head)
            importer = format_of(beginning.replace("\r\n", "\n"), columns, label)
            file.seek(0)
            headings: list[Heading] = []
            above = None if importer in (*STRICT, *CPU) else headings
            lines = Lines(texts(file, encoding, digest, "" if importer in STRICT else importer, above))
            readings = csv.read(lines, columns) if importer == "csv" else formats.get(importer).read(lines)
            for _ in lines:  # what the reader left, for the checksum
                pass
    except OSError as error:
        raise UsageError(f"{label} can't be read: {error.strerror}") from None
    except Bad as error:
        where = f"{label}, line {error.line}" if error.line else label
        raise UsageError(f"{where}: {clean(error.what)}") from None
    except (ValueError, ArithmeticError) as error:
        raise UsageError(f"{label}, line {lines.number}: a figure can't be read ({clean(str(error))})") from None
    if not readings:
        raise UsageError(f"{label}, line {lines.number}: {importer}'s output ends before its result: import all of it")
    try:
        under_headings(readings, headings)
    except Bad as error:
        raise UsageError(f"{label}, line {error.line}: {error.what}") from None
    for each in readings:
        each.file = label
        cleaned(each)
        finite(each)
        if each.errors > each.operations > 0:
            raise UsageError(
                f"{label}, line {each.line}: more failed ({each.errors:,}) than was done ({each.operations:,}): this is no result; "
                "find out why, and run it again"
            )
    return importer, readings, digest.hexdigest()


def cleaned(reading: Reading) -> None:
    """Its names with letters alone. Changes it."""
    reading.tool, reading.version = clean(reading.tool), clean(reading.version)
    reading.engine, reading.workload = clean(reading.engine), clean(reading.workload)
    reading.names = [clean(each) for each in reading.names]
    reading.factors = {clean(name): clean(value) for name, value in reading.factors.items()}
    reading.encryption = {clean(name): clean(value) for name, value in reading.encryption.items()}
    reading.notes = [Warning_(each.code, clean(each.text)) for each in reading.notes]


def finite(reading: Reading) -> None:
    """Raises UsageError where a figure is none that can be reckoned with."""
    figures = [("seconds", [reading.seconds]), *((name, [value]) for name, value in reading.figures.items())]
    for name, values in [*figures, *reading.series.items()]:
        if wrong := [value for value in values if not math.isfinite(value)]:
            raise UsageError(
                f"{reading.file}, line {reading.line}: {name} is {wrong[0]}: no figure that can be compared; is the output whole?"
            )


def encoding_of(head: bytes, label: str) -> str:
    """UTF-8, UTF-16 as Windows' shell writes it, or, where bytes don't fit either, cp1252. Raises Unknown for what is no text."""
    for mark, what in KNOWN_BINARY:
        if head.startswith(mark):
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
        raise Unknown(f"{label} is no text: import what a tool printed", "no text")
    try:
        # The head may end in the middle of a letter.
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def texts(
    file: Iterable[bytes], encoding: str, digest: object, of: str, headings: list[Heading] | None = None
) -> Iterator[str]:
    """The lines of a file, one at a time; each byte goes through the checksum. `headings`: gets those that tell of the runs below them.

    Raises Bad where, far below the beginning, another tool's mark is than that of `of` (empty: its reader sees to that).
    """
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    rest = ""
    number = 0
    for block in iter(lambda: file.read(HEAD), b""):  # type: ignore[attr-defined]
        digest.update(block)  # type: ignore[attr-defined]
        *whole, rest = (rest + decoder.decode(block)).split("\n")
        if of and number:
            for name, line_of_it in formats.recognised("\n".join(whole)).items():
                if name not in (of, "pgbench_log"):
                    raise Bad(
                        number + line_of_it,
                        f"here begins a result of {name}, in a file of {of}: give each tool's output a file of its own",
                    )
        for line in whole:
            number += 1
            if headings is not None and (told := heading(line, number)):
                headings.append(told)
            yield line + "\n"
        if len(rest) > LONGEST_LINE and not rest.lstrip().startswith("{"):
            raise Bad(number + 1, "a line of more than a million letters: this is no tool's output")
    rest += decoder.decode(b"", final=True)
    if rest:
        yield rest


def format_of(head: str, columns: list[csv_columns.Column], label: str) -> str:
    """The importer whose mark the text bears. Raises UsageError where two do, Unknown where none does."""
    fits = formats.recognised(head)
    if "hyperfine" in fits:
        return "hyperfine"
    if len(fits) > 1:
        where = " and ".join(f"{name} (line {line})" for name, line in sorted(fits.items(), key=lambda item: item[1]))
        raise UsageError(f"{label} holds results of {where}: give each tool's output a file of its own")
    if fits:
        return next(iter(fits))
    for pattern, what in KNOWN_TEXT:
        if pattern.search(head):
            raise Unknown(f"{label} is {what}", what)
    if columns:
        return "csv"
    known = ", ".join(name for name in formats.names() if name != "csv")
    first = next((line for line in head.splitlines() if line.strip()), "")
    if any(first.count(each) >= 1 for each in (";", ",", "\t")):
        raise Unknown(
            f"{label}, line 1: if this is a table ('{discreet(first[:300])[:60]}'), say which column is what: {csv_columns.EXAMPLE}. Known without: {known}",
            f"maybe tables (say which column is what: {csv_columns.EXAMPLE})",
        )
    raise Unknown(
        f"{label}, line 1: '{discreet(first[:300])[:60]}' is the beginning of no output that is known: {known}",
        "not the output of a tool that is known",
    )
