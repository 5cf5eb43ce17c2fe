"""Reads a text as a whole: its lines, or the JSON documents in it, which may stand between other lines. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from ciphercost.importers.formats import Bad, Lines

LONGEST = 50_000_000
"""Characters."""
JSON_BEGIN = re.compile(r"\s*(?:\{\s*(?:\"|$)|\[\s*(?:\{|$))")
"""The first line of a JSON document: an object, or a list of objects."""
JSON_END = re.compile(r".*[}\]]\s*")
T = TypeVar("T")


def rows(lines: Lines, tool: str, complete: re.Pattern[str] | None = None) -> list[str]:
    """Return all lines. A last one without its end is left out, since it may lack digits, unless it is `complete`."""
    every, size = [], 0
    for line in lines:
        every.append(line)
        size += len(line)
        if size > LONGEST:
            raise Bad(lines.number, f"too long for an output of {tool}; import the part with its result")
    if every and lines.cut and not (complete and complete.fullmatch(every[-1])):
        every.pop()
    return every


def documents(every: list[str], tool: str, again: str, of: type[T], key: str) -> list[tuple[int, T]]:
    """Return (line, document) of each JSON document that has this key. Raises Bad if one is not complete.

    `every`: the lines of the text; `again`: how to get a whole document. The key is in the document, or in the first of a list.
    """
    found = []
    for line, value in _values(every, tool, again):
        if (value[0] if isinstance(value, list) else value).keys() >= {key}:
            try:
                found.append((line, msgspec.convert(value, of)))
            except (msgspec.ValidationError, RecursionError, OverflowError) as error:
                raise Bad(line, f"not JSON of {tool} ({error}); {again}") from None
    if not found:
        raise Bad(len(every), f"it contains no JSON document with '{key}'; {again}")
    return found


def has_json(every: list[str]) -> bool:
    """Whether a JSON document may begin in one of these lines."""
    return any(JSON_BEGIN.match(row) for row in every)


def json_alone(every: list[str], mark: re.Pattern[str]) -> bool:
    """Whether the text is the tool's JSON: a document may begin in one of these lines, and none has the mark of its other form."""
    return not any(mark.match(row) for row in every) and has_json(every)


def _values(every: list[str], tool: str, again: str) -> Iterator[tuple[int, Any]]:
    """Yield (line, value) of each JSON document: an object, or a list that begins with one."""
    text = "\n".join(every)
    starts = [0]
    for line in every:
        starts.append(starts[-1] + len(line) + 1)
    decoder = json.JSONDecoder()
    end = 0
    for number, line in enumerate(every, 1):
        begin = starts[number - 1] + len(line) - len(line.lstrip())
        if begin < end or not JSON_BEGIN.match(line):
            continue
        try:
            value, end = decoder.raw_decode(text, begin)
        except json.JSONDecodeError as error:
            raise Bad(error.lineno, f"not complete JSON of {tool} ({error.msg}); {again}") from None
        except (ValueError, RecursionError) as error:
            raise Bad(number, f"not JSON of {tool} ({error}); {again}") from None
        if isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], dict)):
            yield number, value
