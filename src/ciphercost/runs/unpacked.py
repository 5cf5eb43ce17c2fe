"""unpacked: what a packed archive gives, piece by piece, within bounds of size and memory."""

from __future__ import annotations

import bz2
import io
import lzma
import struct
import zlib
from pathlib import Path
from typing import Any

from ciphercost.model import bounds
from ciphercost.model.bounds import Bound
from ciphercost.model.errors import UsageError

PIECE = 1 << 16
BEGINS = {b"\x1f\x8b": "gz", b"\xfd7zXZ\0": "xz", b"BZh": "bz2"}
END_OF_ZIP = b"PK\5\6"
END_SIZE, MOST_COMMENT = 22, 65_535
"""Bytes of the record at the end of a zip archive, and of the comment that may follow it."""


class Unpacked(io.RawIOBase):
    """The unpacked bytes of a file, for tarfile, which reads on and never back."""

    def __init__(self, path: Path, unpacked: Bound) -> None:
        """Raises OSError."""
        self._path = path
        self._bound = unpacked
        self._file = path.open("rb")
        begin = self._file.read(6)
        self._file.seek(0)
        self._kind = next((kind for mark, kind in BEGINS.items() if begin.startswith(mark)), "")
        self._machine = self._new()
        self._waiting = b""
        """Bytes of the file that the machine has not taken."""
        self._ready = bytearray()
        self._at = 0
        self._ended = False

    def _new(self) -> Any:
        if self._kind == "gz":
            return zlib.decompressobj(wbits=31)
        if self._kind == "xz":
            return lzma.LZMADecompressor(memlimit=bounds.ARCHIVE_MEMORY)
        return bz2.BZ2Decompressor() if self._kind == "bz2" else None

    def close(self) -> None:
        self._file.close()
        super().close()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go on to a place. Raises OSError if it is behind."""
        if whence != io.SEEK_SET or offset < self._at:
            raise OSError("an archive is read in one go")
        while self._at < offset and self._take(min(PIECE, offset - self._at)):
            pass
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Read so many bytes, or up to the end. Raises UsageError for more than any header has."""
        if not 0 <= size <= bounds.ARCHIVE_HEADER:
            raise UsageError(
                f"{self._path}: a header in this archive has {size:,} bytes, and at most {bounds.ARCHIVE_HEADER:,} are read; "
                "it is no packed run"
            )
        content = bytearray()
        while len(content) < size and (piece := self._take(size - len(content))):
            content += piece
        return bytes(content)

    def _take(self, most: int) -> bytes:
        """Some bytes; none at the end."""
        while not self._ready and not self._ended:
            self._ready += self._more()
        piece = bytes(self._ready[:most])
        del self._ready[:most]
        self._at += len(piece)
        if (
            self._at > self._bound.most + bounds.ARCHIVE_MEMBERS * bounds.ARCHIVE_HEADER
        ):  # headers count beside the content
            raise bounds.too_large(str(self._path), self._bound)
        return piece

    def _more(self) -> bytes:
        """Unpack at most a piece. Raises OSError, EOFError, lzma.LZMAError, zlib.error."""
        if not self._waiting:
            self._waiting = self._file.read(PIECE)
        if self._machine is None:
            piece, self._waiting = self._waiting, b""
            self._ended = not piece
            return piece
        if self._machine.eof:  # another part may follow
            self._waiting = self._machine.unused_data + self._waiting
            if not self._waiting.strip(b"\0"):
                self._ended = True
                return b""
            self._machine = self._new()
        if self._kind == "gz":
            piece = self._machine.decompress(self._waiting, PIECE)
            self._waiting = self._machine.unconsumed_tail
            hungry = not self._waiting
        else:
            piece = self._machine.decompress(self._waiting, max_length=PIECE)
            self._waiting = b""
            hungry = self._machine.eof or self._machine.needs_input
        if hungry and not self._machine.eof and not piece:
            self._waiting = self._file.read(PIECE)
            if not self._waiting:
                raise EOFError("it is cut off")
        return bytes(piece)


def check_directory(path: Path) -> None:
    """Check the directory of a zip archive before it is read into memory. Raises UsageError, OSError."""
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - END_SIZE - MOST_COMMENT))
        end = file.read()
    at = end.rfind(END_OF_ZIP)
    if at < 0 or len(end) - at < END_SIZE:
        return  # no zip archive, as its reader will say
    count, length = struct.unpack("<HL", end[at + 10 : at + 16])
    if count > bounds.ARCHIVE_MEMBERS:
        raise UsageError(f"{path}: holds more than {bounds.ARCHIVE_MEMBERS} files, so it is no packed run")
    if length > bounds.ARCHIVE_HEADER:
        raise UsageError(
            f"{path}: its list of files has {length:,} bytes, and at most {bounds.ARCHIVE_HEADER:,} are read; it is no packed run"
        )
