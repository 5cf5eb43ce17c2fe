"""bounds: how much ciphercost reads of whatever a user names, and the one way to read a file within such a bound.

Whoever wrote a file need not be trusted, and a pipe or a device has no size: without a bound, reading takes all memory or never ends.
LIMITS.md states this table.
"""

from __future__ import annotations

import io
import os
import select
import stat
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from ciphercost.model import system_error
from ciphercost.model.errors import UsageError

MIB = 1 << 20


class Bound(msgspec.Struct, frozen=True):
    """The most bytes of one kind of input."""

    what: str
    """As LIMITS.md and errors name it."""
    most: int
    advice: str
    """What to do with a larger one."""

    @property
    def size(self) -> str:
        return f"{self.most // MIB:,} MiB"


SPEC = Bound("a spec (FILE.toml)", 4 * MIB, "split it into several runs")
STATEMENTS = Bound("a file of statements or requests (--sql)", 16 * MIB, "load rows with --csv")
BODY = Bound("the body of a request, in a file", 8 * MIB, "send less in each request")
HEADERS = Bound("a file of headers (--header @FILE)", MIB, "name a file with one header a line")
OPTIONS = Bound("an option, service or password file of a client", MIB, "name the file that the client reads")
CERTIFICATES = Bound(
    "a file of certificates or revocation lists", 16 * MIB, "name the file of the server's authority alone"
)
DRIVER = Bound("a text file in a JDBC driver's jar", MIB, "name the jar that the driver's maker publishes")
RECORD = Bound("a JSON file of a run (result.json, plan.json …), or a result by itself", 64 * MIB, "split the run")
RECORD_LINE = Bound(
    "a line of a run's record (slices.jsonl …)", 16 * MIB, "it is damaged; restore the file from a copy"
)
PACKED = Bound(
    "a packed run (.tar.xz, .tar.gz, .zip), as it is", 256 * MIB, "unpack it yourself and name the directory"
)
UNPACKED = Bound(
    "a packed run, unpacked, with all that is skipped", 1024 * MIB, "unpack it yourself and name the directory"
)
IMPORTED_LOG = Bound(
    "a log of pgbench (-l) for `import`, which is read in little memory", 65_536 * MIB, "import a part of it"
)
IMPORTED = Bound("a table or another tool's output for `import`", 128 * MIB, "import its summary, or a part of it")
SPREADSHEET = Bound(
    "a spreadsheet for `import`, also unpacked", 64 * MIB, "save the table as CSV, or import a part of it"
)
IMPORTED_JSON = Bound("a JSON file for `import`", 64 * MIB, "import its summary, or a part of it")

ALL = (
    SPEC, STATEMENTS, BODY, HEADERS, OPTIONS, CERTIFICATES, DRIVER, RECORD, RECORD_LINE, PACKED, UNPACKED, IMPORTED_LOG, IMPORTED,
    SPREADSHEET, IMPORTED_JSON,
)  # fmt: skip

TABLE_ROWS = 500_000
"""Most rows of a table for `import`, which are all in memory: about 800 bytes each."""
ARCHIVE_MEMBERS = 1000
"""Most files and directories in a packed run."""
ARCHIVE_HEADER = MIB
"""Most bytes of what an archive says about itself or a member, beside the name and the content."""
ARCHIVE_MEMORY = 256 * MIB
"""Most memory that unpacking `.xz` may need, which the archive decides."""
SILENCE_SECONDS = 30.0
"""How long a pipe or a terminal may be silent while it is read."""
PIECE = 1 << 16


def too_large(where: str, bound: Bound, size: int | None = None) -> UsageError:
    """The error for an input beyond its bound. `size`: in bytes; None: unknown, since reading stopped at the bound."""
    has = f"has {size:,} bytes" if size is not None else f"has more than {bound.most:,} bytes"
    return UsageError(f"{where}: {has}, and {bound.what} may have {bound.most:,} ({bound.size}); {bound.advice}")


def read(path: Path, bound: Bound, where: str = "") -> bytes:
    """Return the bytes of a file, pipe or device. `where`: how messages name it. [default: its path]

    Raises UsageError if it is beyond its bound or stays silent, OSError if it can't be read.
    """
    where = where or str(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # an ordinary open waits for a pipe's writer
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise UsageError(f"{where}: is a directory; name a file")
        if stat.S_ISREG(status.st_mode):
            if status.st_size > bound.most:
                raise too_large(where, bound, status.st_size)
            pieces = iter(lambda: os.read(descriptor, PIECE), b"")
        else:
            pieces = _arriving(descriptor, where)
        content = io.BytesIO()
        for piece in pieces:
            content.write(piece)
            if content.tell() > bound.most:  # a file may grow, and a file of /proc has no size
                raise too_large(where, bound)
    finally:
        os.close(descriptor)
    return content.getvalue()


def _arriving(descriptor: int, where: str) -> Iterator[bytes]:
    """The pieces that a pipe or device gives. Raises UsageError if none comes for too long."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    begun, until = False, time.monotonic() + SILENCE_SECONDS
    while True:
        ready = poll.poll(1e3 * min(1.0, SILENCE_SECONDS))
        piece = b""
        if ready:
            try:
                piece = os.read(descriptor, PIECE)
            except BlockingIOError:
                ready = []
        if piece:
            begun, until = True, time.monotonic() + SILENCE_SECONDS
            yield piece
        elif ready and (begun or not ready[0][1] & select.POLLIN or not stat.S_ISFIFO(os.fstat(descriptor).st_mode)):
            return
        elif time.monotonic() > until:
            raise UsageError(
                f"{where}: nothing came from this pipe or device for {SILENCE_SECONDS:g} s; save its content to a file, and name that"
            )


def text(path: Path, bound: Bound, where: str = "") -> str:
    """Return the text of a file, with U+FFFD for what is no UTF-8. Raises UsageError, OSError."""
    return read(path, bound, where).decode(errors="replace")


def readable(path: Path, bound: Bound, where: str = "") -> bytes:
    """Return the bytes of a file. Raises UsageError, also if it can't be read."""
    where = where or str(path)
    try:
        return read(path, bound, where)
    except OSError as error:
        raise UsageError(f"{where}: can't be read: {system_error.words(error, named=True)}") from None


def lines(file: IO[bytes], bound: Bound, where: str) -> Iterator[bytes]:
    """The lines of an open file, with their ends. Raises UsageError for a line beyond the bound."""
    number = 0
    while line := file.readline(bound.most + 1):
        number += 1
        if len(line) > bound.most:
            raise too_large(f"{where}, line {number}", bound)
        yield line


def member(archive: zipfile.ZipFile, name: str, bound: Bound, where: str) -> bytes:
    """Return the content of a member of a zip archive. Raises UsageError if it is beyond its bound."""
    with archive.open(name) as file:
        content = file.read(bound.most + 1)
    if len(content) > bound.most:
        raise too_large(f"{where}, {name}", bound)
    return content
