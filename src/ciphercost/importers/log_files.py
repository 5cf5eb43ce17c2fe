"""Finds the format of log files by their first lines, and their order in time. I/O."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ciphercost.importers import logs
from ciphercost.importers.formats import clean, without_secrets
from ciphercost.importers.log_lines import LogFile
from ciphercost.importers.logs import Format
from ciphercost.importers.logs._sql import Ignored
from ciphercost.model.errors import UsageError
from ciphercost.model.traffic import Kind

LEAST = 0.02
"""Share of the first lines that must have a format."""


class Log(NamedTuple):
    """A log file of a known format."""

    file: LogFile
    format: Format
    head: list[bytes]


def found(paths: Sequence[Path], asked: str = "") -> list[Log]:
    """The logs of one kind, in the order of their first lines' times. `asked`: the format's name, if the user gave it.

    Empty files are left out. Raises UsageError for a file that can't be read, of no known format, of another kind than the first, and for a
    file that is named twice.
    """
    opened: list[Log] = []
    known: dict[tuple[int, int], Path] = {}
    for path in paths:
        file = LogFile(path)
        if file.identity in known:
            raise UsageError(f"{clean(str(path))} is the same file as {clean(str(known[file.identity]))}; name it once")
        known[file.identity] = path
        head = file.head()
        if not any(line.strip() for line in head):
            continue
        opened.append(Log(file, _format(file, head, asked), head))
    if not opened:
        raise UsageError(f"{clean(str(paths[0]))}: the log is empty; name one that has lines")
    if other := next((log for log in opened if log.format.kind != opened[0].format.kind), None):
        raise UsageError(
            f"{opened[0].file.name} is a log of a {_server(opened[0].format.kind)}, and {other.file.name} of a {_server(other.format.kind)}; "
            "make a workload of each"
        )
    return _in_order(opened)


def _server(kind: Kind) -> str:
    return "web server" if kind == "web" else "database"


def _format(file: LogFile, head: Sequence[bytes], asked: str) -> Format:
    """Raises UsageError if no format fits."""
    lines = [line for line in head if line.strip() and not line.startswith(b"#")]
    if asked:
        chosen = logs.get(asked)
        if not chosen.recognise(lines if chosen.kind == "web" else head):
            raise UsageError(
                f"{file.name}: none of its first {len(lines)} lines has the format {asked}; {_example(lines)}"
            )
        return chosen
    # In a log of statements a line with # is no comment.
    formats = map(logs.get, logs.names())
    counts = {one.name: one.recognise(lines if one.kind == "web" else head) for one in formats}
    best = max(counts, key=lambda name: counts[name])
    if not counts[best] or counts[best] < LEAST * len(lines):
        if any(b"\0" in line for line in lines):
            raise UsageError(f"{file.name} is a binary file, no log")
        raise UsageError(
            f"{file.name}: none of its first {len(lines)} lines has a known format ({', '.join(logs.names())}); {_example(lines)}"
        )
    return logs.get(best)


def _example(lines: Sequence[bytes]) -> str:
    """The beginning of the first line, without what may be secret in it."""
    first = lines[0][:300].decode(errors="replace") if lines else ""
    return f"the first is '{clean(without_secrets(first))[:60]}'"


def _in_order(opened: Sequence[Log]) -> list[Log]:
    """Rotated files are read from the oldest on. A file without a readable time stays where it is."""
    begins = [_begin(log) for log in opened]
    if any(begin is None for begin in begins):
        return list(opened)
    return [
        log for _, _, log in sorted(zip(begins, range(len(opened)), opened, strict=True), key=lambda each: each[:2])
    ]


def _begin(log: Log) -> float | None:
    """When the first readable line was written."""
    items: Any = log.format.read(iter(log.head), log.head, set())
    if log.format.kind == "sql":
        return next((item.at for item in items if not isinstance(item, Ignored) and item.at), None)
    return next((item[0] for item in items if not isinstance(item, str)), None)


def lines_of(log: Log) -> chain[bytes]:
    """Every line of a log."""
    return chain.from_iterable(log.file.blocks())
