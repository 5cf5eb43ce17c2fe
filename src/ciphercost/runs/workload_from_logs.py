"""`ciphercost workload`: read logs, find their traffic, and make a workload of it. I/O."""

from __future__ import annotations

import gc
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ciphercost.importers import log_files, web_workload
from ciphercost.importers.connection_lengths import KEEP_ALIVE
from ciphercost.importers.log_files import Log
from ciphercost.importers.statements import workload
from ciphercost.importers.statements.found import Found
from ciphercost.importers.web_traffic import WebTraffic
from ciphercost.load import workload_file
from ciphercost.load.workloads import Workload
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import WORKLOAD_FILE
from ciphercost.model.traffic import Traffic
from ciphercost.runs import workload_of_statements


class Asked(NamedTuple):
    """What the user asks of it."""

    format: str = ""
    """The logs' format; empty: their content shows it."""
    keep_paths: bool = False
    writes: bool = False
    speed: float = 1.0
    """Arrivals come so many times as fast as they were logged."""
    keep_alive: int = KEEP_ALIVE
    """Seconds after which an idle connection counts as closed, where the log does not tell."""


class Read(NamedTuple):
    """How far the logs are read."""

    bytes: int
    of: int
    """Bytes of all files, as they are on disk."""
    lines: int


def read(
    files: Sequence[Path], asked: Asked, shows: Callable[[Read], None] = lambda _: None
) -> tuple[Traffic, Workload]:
    """Read logs of one kind. `shows` is called now and then.

    Returns what was found and the workload that repeats it. Raises UsageError if a file has no known format, or no line of them is an operation.
    """
    logs = log_files.found(files, asked.format)
    if logs[0].format.kind == "sql":
        found, statements = _statements(logs, asked, shows)
        source = workload_of_statements.source(logs)
        return found, workload.of(statements, found, source, speed=asked.speed)
    return _web(logs, asked, shows)


def traffic(files: Sequence[Path], asked: Asked, shows: Callable[[Read], None] = lambda _: None) -> Traffic:
    """The traffic of logs, or of one workload file that was made from logs. Raises UsageError."""
    if len(files) == 1 and files[0].suffix == WORKLOAD_FILE:
        found = workload_file.read(files[0]).traffic
        if found is None:
            raise UsageError(
                f"{files[0]}: was not made from logs, so it does not say how often its operations come; name a log"
            )
        return found
    logs = log_files.found(files, asked.format)
    if logs[0].format.kind == "sql":
        # What is sent counts, whether it can be repeated or not.
        found, statements = _statements(logs, asked._replace(writes=True), shows)
        if not statements.statements:
            raise UsageError(f"{workload_of_statements.source(logs)}: {workload.NO_STATEMENT}")
        return found
    found = _count(logs, asked, shows).traffic()
    if not found.operations:
        raise UsageError(
            f"{logs[0].file.name}: none of the {found.lines:,} lines is a request; `ciphercost workload` lists the reasons"
        )
    return found


def _web(logs: Sequence[Log], asked: Asked, shows: Callable[[Read], None]) -> tuple[Traffic, Workload]:
    if asked.writes:
        raise UsageError(
            "--writes is for logs of databases; requests that write are never sent to a site of yours, and always to ciphercost's own"
        )
    counted = _count(logs, asked, shows)
    found = counted.traffic()
    if asked.keep_paths:
        workload, notes = web_workload.by_paths(found, counted.paths, speed=asked.speed)
    else:
        workload, notes = web_workload.of(found, speed=asked.speed)
    found.notes += notes
    return found, workload


def _count(logs: Sequence[Log], asked: Asked, shows: Callable[[Read], None]) -> WebTraffic:
    """Every line of web servers' logs, counted."""
    counted = WebTraffic(asked.keep_alive, keep_paths=asked.keep_paths)
    whole, before = sum(log.file.size for log in logs), 0
    for log in logs:
        done, file = before, log.file
        with _without_searching_garbage():
            counted.add(
                file.name,
                log.format.name,
                log.format.read(log_files.lines_of(log), log.head, counted.zones),
                lambda lines, done=done, file=file: shows(Read(done + file.read_bytes, whole, lines)),  # type: ignore[misc]
            )
        if file.cut_off:
            counted.left_out.add(file.cut_off, file.name, counted.lines, 0)
        before += file.size
    return counted


def _statements(logs: Sequence[Log], asked: Asked, shows: Callable[[Read], None]) -> tuple[Traffic, Found]:
    if asked.keep_paths:
        raise UsageError("--keep-paths is for logs of web servers; statements of a database always keep their values")
    whole = sum(log.file.size for log in logs)
    with _without_searching_garbage():
        return workload_of_statements.read(
            logs, lambda bytes_, lines: shows(Read(bytes_, whole, lines)), writes=asked.writes
        )


@contextmanager
def _without_searching_garbage() -> Iterator[None]:
    """What is made of lines refers to nothing in circles, and searching for such takes a tenth of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def comments(found: Traffic, made: Workload, output: Path) -> list[str]:
    """Lines above the workload, for whoever reads its file before it runs."""
    if made.written_for:
        return workload_of_statements.comments(found, made, output)
    per_connection = found.connections.per_connection
    lines = [
        f"A workload made by `ciphercost workload` from {found.files:,} log{'s' * (found.files != 1)}: {found.operations:,} of {found.lines:,} lines.",
        "Each transaction is a class of operations with its weight. The numbers are all that is kept of the logs"
        + ("." if made.documents else ", and the paths below."),
        "",
        next_step(made, output),
    ]
    if made.lengths:
        lines.insert(
            2,
            f"lengths: [operations, connections] that carried so many; {per_connection:.3g} on average ({found.connections.basis}).",
        )
    return lines


def next_step(made: Workload, output: Path) -> str:
    """The command that runs it."""
    if made.written_for:
        return workload_of_statements.next_step(made, output)
    name = shlex.quote(str(output))
    target = "nginx:tls" if made.documents else "url:tls --url http://YOUR.SITE --url https://YOUR.SITE"
    arrivals = (
        f"as the requests came in the busiest hour ({made.rate:g}/s)"
        if made.arrived
        else f"at the logged rate of {made.rate:g}/s"
    )
    return f"to measure it: ciphercost run {target} --workload {name}; {arrivals}: add --regime latency"
