"""Opens log files, also compressed ones, and yields their lines, of which none may be longer than a bound. I/O."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from ciphercost.importers.formats import clean
from ciphercost.model import system_error
from ciphercost.model.errors import UsageError

BLOCK = 1 << 16
"""Bytes that are read at once. For larger blocks the allocator asks the kernel for fresh memory each time, which takes longer than reading them."""
LONGEST = 1 << 20
"""Bytes of a line; a longer one counts for nothing, and is never in memory as a whole."""
TOO_LONG = b"\0too long"
"""Stands for such a line."""
Unpacked = gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile
_MAGIC: dict[bytes, Callable[[BinaryIO], Unpacked]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
}
_UNREAD = {b"\x28\xb5\x2f\xfd": "compressed by zstd", b"PK\x03\x04": "a zip archive"}


class LogFile:
    """A log file. It is read once at a time; `cut_off` says afterwards why it ended early."""

    def __init__(self, path: Path) -> None:
        """Raises UsageError if it can't be read or is no text."""
        self.path = path
        self.name = clean(path.name)
        self.cut_off = ""
        """Why its end is missing; empty: it is whole."""
        self._raw: BinaryIO | None = None
        try:
            status = path.stat()
            if not path.is_file():
                raise UsageError(
                    f"{clean(str(path))} is no file; name the log files themselves, e.g. /var/log/nginx/access.log*"
                )
            self.identity = status.st_dev, status.st_ino
            self.size = status.st_size
            with path.open("rb") as file:
                self._start = file.read(8)
        except OSError as error:
            raise UsageError(f"{clean(str(path))}: can't be read: {system_error.words(error)}") from None
        for magic, what in _UNREAD.items():
            if self._start.startswith(magic):
                raise UsageError(
                    f"{clean(str(path))} is {what}; unpack it first (.gz, .bz2 and .xz are read as they are)"
                )

    @property
    def read_bytes(self) -> int:
        """How many of the file's own bytes have been read so far."""
        return self._raw.tell() if self._raw is not None and not self._raw.closed else 0

    def blocks(self) -> Iterator[list[bytes]]:
        """Yield the lines, without their ends, in lists. Sets `cut_off` if a compressed file is damaged."""
        rest = b""
        skipping = False
        for block in self._pieces():
            lines = (rest + block).split(b"\n")
            rest = lines.pop()
            if skipping and lines:
                lines[0], skipping = TOO_LONG, False
            elif skipping:
                rest = b""
            if len(rest) > LONGEST:
                rest, skipping = b"", True
            if lines:
                yield lines
        if rest or skipping:
            yield [TOO_LONG if skipping else rest]

    def _pieces(self) -> Iterator[bytes]:
        with self.path.open("rb") as raw:
            self._raw = raw
            opener = next((each for magic, each in _MAGIC.items() if self._start.startswith(magic)), None)
            read = opener(raw).read1 if opener else raw.read
            try:
                # `read1` returns what is there before it meets damage.
                while piece := read(BLOCK):
                    yield piece
            except EOFError:
                self.cut_off = "the compressed file is cut off; what is before its end was read"
            except (gzip.BadGzipFile, lzma.LZMAError, zlib.error, OSError) as error:
                if isinstance(error, OSError) and error.errno:
                    raise UsageError(
                        f"{clean(str(self.path))}: can't be read: {system_error.words(error, named=True)}"
                    ) from None
                self.cut_off = "the compressed file is damaged; what is before the damage was read"

    def head(self, most: int = 400) -> list[bytes]:
        """The first lines."""
        return next(self.blocks(), [])[:most]
