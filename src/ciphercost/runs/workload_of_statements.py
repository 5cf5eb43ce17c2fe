"""Logs of database servers → what was found in them, and the workload that repeats it. I/O."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ciphercost.importers import log_files
from ciphercost.importers.log_files import Log
from ciphercost.importers.statements import workload
from ciphercost.importers.statements.found import Found
from ciphercost.load.workloads import Workload
from ciphercost.model import system_error
from ciphercost.model.errors import UsageError
from ciphercost.model.traffic import Traffic


class _Counted:
    """Lines on their way to a reader."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = lines
        self.count = 0

    def __iter__(self) -> Iterator[bytes]:
        for line in self._lines:
            self.count += 1
            yield line


def read(logs: Sequence[Log], shows: Callable[[int, int], None], *, writes: bool) -> tuple[Traffic, Found]:
    """What logs hold. `shows` is called now and then with the bytes and lines read so far. `writes`: keep what writes.

    Raises UsageError if the logs are of different servers.
    """
    first = logs[0]
    dialect = first.format.dialect(first.head)
    if other := next((log for log in logs if log.format.dialect(log.head) != dialect), None):
        raise UsageError(
            f"{first.file.name} is a log of {workload.SERVERS[dialect]}, and {other.file.name} is none; make a workload of each"
        )
    found = Found(dialect, writes=writes)
    bytes_before = lines_before = 0
    for log in logs:
        file, lines = log.file, _Counted(log_files.lines_of(log))
        before, above = bytes_before, lines_before

        def show(before: int = before, above: int = above, log: Log = log, lines: _Counted = lines) -> None:
            shows(before + log.file.read_bytes, above + lines.count)

        found.read(log.format.read(lines, log.head, found.zones), file.name, show)
        if file.cut_off:
            found.left_out.add(file.cut_off, file.name, lines.count, 0)
        bytes_before += file.size
        lines_before += lines.count
    formats = list(dict.fromkeys(log.format.name for log in logs))
    return found.traffic(formats, len(logs), lines_before), found


def source(logs: Sequence[Log]) -> str:
    """The names of the logs, for people."""
    names = [log.file.name for log in logs]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def comments(found: Traffic, made: Workload, output: Path) -> list[str]:
    """Lines above the workload, for whoever reads its file before it runs."""
    left = sum(each.lines for each in found.left_out)
    logs = f"{found.files:,} log{'s' * (found.files != 1)}"
    return [
        f"A workload made by `ciphercost workload` from {logs}: {found.operations:,} operations of {len(made.shapes):,} kinds.",
        f"{left:,} entries were left out: [[traffic.left_out]] at the end says why.",
        "Each transaction is a sample of one kind; the samples of a kind share the weight that it has in the logs.",
        "",
        *workload.HEAD,
        next_step(made, output),
    ]


def next_step(made: Workload, output: Path) -> str:
    """The command that runs it."""
    name = shlex.quote(str(output))
    return f"to measure it: ciphercost run {made.written_for}:tls --dump YOUR.dump --workload {name}; on a server of yours: --url URL in place of --dump"


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, because it holds values of the logs. Raises UsageError."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, 0o600)  # it may have existed with other rights
            file.write(text)
    except OSError as error:
        raise UsageError(f"can't write {path}: {system_error.words(error, named=True)}") from None
