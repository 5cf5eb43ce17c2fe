"""Splits a table into its header and rows: separated values, Markdown, and what psql, mysql, sqlite3 and duckdb print. Pure.

A frame is recognised by its rules (`+----+`, `|---|`) or by `-[ RECORD 1 ]-` and `*** 1. row ***`. Lines above a framed
table, such as a prompt with the query, are skipped, and so are row counts below it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

from ciphercost.importers.formats import Bad, Lines
from ciphercost.model import bounds

DELIMITERS = (";", "\t", "|", ",")
BARS = str.maketrans("│┃║｜", "||||")
RULE = re.compile(r"[\s|+:=\-\u2500-\u257f]*[-=\u2500-\u257f]{2}[\s|+:=\-\u2500-\u257f]*")
RECORD = re.compile(r"\*{4,} \d+\. row \*{4,}|[-─]\[ RECORD \d+ \][-─+┬┼]*|\* Record \d+")
FOOTER = re.compile(
    r"\(\d+ rows?\)|\d+ rows? in set.*|\d+ rows?\b.*|Time: [\d.,]+ ms.*|Empty set.*|Query OK.*|\d+ warnings?.*|\\\w+.*"
    r"|[\w\[\]()]+[=\-\w\[\]() ]*[>#].*",
    re.IGNORECASE,
)
"""Row counts, times and prompts."""
TYPE = re.compile(
    r"(?:u?(?:tiny|small|big|huge)?int(?:eger)?\d*|varchar|text|double|float|real|decimal\(.*\)|boolean|date|timestamp)"
)
"""Types that duckdb prints below its header."""
Numbered = tuple[int, list[str]]
"""The line on which a row begins, and its values."""


class Table:
    """A table's columns, and the line and values of each row. `delimiter`: `|` for every frame."""

    def __init__(self, header: list[str], delimiter: str, line: int, rows: Iterator[Numbered]) -> None:
        self.header, self.delimiter, self.line, self.rows = header, delimiter, line, rows


def table(lines: Lines, *, header: bool = True) -> Table:
    """Return the table in this text. Without `header`, the columns are column1, column2 … Raises Bad with the line."""
    every: list[tuple[int, str, bool]] = []
    for line in lines:
        if len(every) > bounds.TABLE_ROWS:
            raise Bad(lines.number, f"more than {bounds.TABLE_ROWS:,} lines; {bounds.IMPORTED.advice} (fewer rows)")
        every.append((lines.number, line, lines.cut))
    at = next((number for number, (_, line, _) in enumerate(every) if line.strip()), None)
    if at is None:
        raise Bad(0, "the file is empty")
    if any(RECORD.fullmatch(line.strip()) for _, line, _ in every):
        return records([(number, line) for number, line, _ in every])
    rule = next((index for index, (_, line, _) in enumerate(every) if _rule(line)), None)
    if rule is not None and (start := _framed(every, rule)) is not None:
        return framed([(number, line) for number, line, _ in every[start:]])
    return separated([(number, line) for number, line, _ in every[at:]], header=header)


def _rule(line: str) -> bool:
    text = line.strip()
    return len(text) >= 2 and bool(RULE.fullmatch(text)) and not text.startswith("--[")


def _framed(every: Sequence[tuple[int, str, bool]], rule: int) -> int | None:
    """Return the index of a framed table's header: the line above its first rule, else the one below; None: no header."""
    for index in (rule - 1, rule + 1):
        if 0 <= index < len(every):
            text = every[index][1].translate(BARS).strip()
            alone = "|" not in text and "," not in text and ";" not in text and "\t" not in text
            below = every[rule][1].translate(BARS)
            one = alone and index < rule and not re.search(r"[|+┼]", below.strip())
            if text and not _rule(text) and ("|" in text or one):
                return index
    return None


def framed(lines: list[tuple[int, str]]) -> Table:
    """Return a table whose first line is its header and whose cells are between bars."""
    number, first = lines[0]
    first = first.translate(BARS).strip()
    outer = first.startswith("|"), first.endswith("|") and len(first) > 1
    header = _cells(first, outer)

    def rows() -> Iterator[Numbered]:
        ended = False
        for at, line in lines[1:]:
            text = line.translate(BARS)
            if _rule(text) or not text.strip():
                ended = ended or not text.strip()
                continue
            if len(header) > 1 and "|" not in text:
                if not FOOTER.fullmatch(text.strip()) and not ended:
                    raise Bad(at, f"'{text.strip()[:40]}' is not a row of the table that begins on line {number}")
                ended = True
                continue
            if len(header) == 1 and "|" not in first and FOOTER.fullmatch(text.strip()):
                continue
            cells = _cells(text.rstrip() if outer[1] else text, outer)
            if cells == header or all(TYPE.fullmatch(cell) for cell in cells):
                continue
            if ended and "|" in text and len(cells) != len(header):
                raise Bad(
                    at,
                    f"another table begins here: {len(cells)} columns, not {len(header)}; put each table into its own file",
                )
            yield at, cells

    return Table(header, "|", number, rows())


def _cells(line: str, outer: tuple[bool, bool]) -> list[str]:
    """Return the cells between bars, without Markdown's emphasis. `outer`: whether bars stand before and behind all."""
    text = line.strip() if outer[0] else line.rstrip("\r\n")
    if outer[0]:
        text = text.removeprefix("|")
    if outer[1]:
        text = text.rstrip().removesuffix("|")
    return [
        re.sub(r"^[*_`]+|(?<=\S)[*`]+$", "", cell.replace("\\|", "|").strip()) for cell in re.split(r"(?<!\\)\|", text)
    ]


def records(lines: list[tuple[int, str]]) -> Table:
    r"""Return a table of which each row is printed as a block of `name: value` (mysql's `\G`) or `name | value` (psql's `\x`)."""
    rows: list[tuple[int, dict[str, str]]] = []
    for at, line in lines:
        text = line.translate(BARS).strip()
        if RECORD.fullmatch(line.strip()):
            rows.append((at, {}))
        elif rows and text and (match := re.fullmatch(r"([^|:]*?)\s*[|:]\s?(.*)", text)) and not FOOTER.fullmatch(text):
            rows[-1][1][match[1].strip()] = match[2].strip()
        elif rows and text and not FOOTER.fullmatch(text):
            raise Bad(at, f"'{text[:40]}' is not a value of a row")
    header = list(rows[0][1])
    for at, row in rows:
        if list(row) != header:
            raise Bad(at, f"{len(row)} values for {len(header)} columns")
    return Table(header, "|", rows[0][0], ((at, list(row.values())) for at, row in rows))


def separated(lines: list[tuple[int, str]], *, header: bool) -> Table:
    """Return a table of separated values, whose delimiter is the most frequent one in its first line."""
    number, first = lines[0]
    delimiter = max(DELIMITERS, key=lambda character: (first.count(character), -DELIMITERS.index(character)))
    if not any(character in first for character in DELIMITERS) and len(first.split()) > 1 and _by_spaces(lines):
        delimiter = " "
    titles = [word.strip() for word in _split(lines[:1], delimiter)[0][1]]
    rest = lines[1:]
    if not header:
        titles, rest = [f"column{count}" for count in range(1, len(titles) + 1)], lines

    def rows() -> Iterator[Numbered]:
        for at, words in _split(rest, delimiter):
            if not any(word.strip() for word in words):
                continue
            if len(words) != len(titles):
                if len(words) == 1 and FOOTER.fullmatch(words[0].strip()):
                    continue
                raise Bad(at, f"{len(words)} values for {len(titles)} columns")
            yield at, words

    return Table(titles, delimiter, number, rows())


LONGEST_VALUE = 1 << 17
"""Characters of a value: the csv module's usual limit."""


def _by_spaces(lines: list[tuple[int, str]]) -> bool:
    """Whether all lines have as many words as the first, as in a table that `column -t` aligned."""
    words = {len(line.split()) for _, line in lines if line.strip() and not FOOTER.fullmatch(line.strip())}
    return len(words) == 1


def _split(lines: list[tuple[int, str]], delimiter: str) -> list[Numbered]:
    """Return the values of each line, which a quoted line break may continue on the next one."""
    if delimiter == " ":
        return [(at, line.split()) for at, line in lines]
    last = 0

    def counted() -> Iterator[str]:
        nonlocal last
        for at, line in lines:
            last = at
            yield line

    rows: list[Numbered] = []
    reader = csv.reader(counted(), delimiter=delimiter)
    while True:
        try:
            rows.append((0, next(reader)))
        except StopIteration:
            return rows
        except csv.Error as error:
            raise Bad(last, f"not a row of a table: {error}") from None
        # Another reader in this process may have raised the module's own limit.
        if any(len(value) > LONGEST_VALUE for value in rows[-1][1]):
            raise Bad(last, f"not a row of a table: a value is longer than {LONGEST_VALUE:,} characters")
        rows[-1] = (last, rows[-1][1])
