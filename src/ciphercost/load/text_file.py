"""Reads a text file that a user named. I/O."""

from __future__ import annotations

from pathlib import Path

from ciphercost.model import bounds
from ciphercost.model.errors import UsageError

_BOMS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def read(path: Path, option: str) -> str:
    """Return a file's text without its byte order mark, with lines that end in `\\n`.

    Raises UsageError if it can't be read, is no UTF-8 text, or holds nothing.
    """
    where = f"{option} {path}"
    try:
        content = bounds.read(path, bounds.STATEMENTS, where)
    except OSError as error:
        raise UsageError(f"{where}: can't read the file: {error.strerror}") from None
    if encoding := _BOMS.get(content[:2]):
        raise UsageError(f"{where}: is {encoding} text; save it as UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"{where}, line {line}: is not UTF-8 text (byte 0x{content[error.start]:02x}); save it as UTF-8, e.g. with "
            f"`iconv -f latin1 -t utf8`"
        ) from None
    if "\0" in text:
        raise UsageError(f"{where}: holds a zero byte, so it is no text")
    if not text.strip():
        raise UsageError(f"{where}: is empty; write statements that end with ;")
    return text.replace("\r\n", "\n").replace("\r", "\n")
