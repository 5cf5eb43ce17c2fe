"""files: the first and last bytes of a dump, which tell what it is and whether it is whole. I/O."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

from ciphercost.model import system_error
from ciphercost.model.errors import UsageError

AGAIN = "copy it again, or dump again"
HEAD_BYTES, TAIL_BYTES = 16_384, 4_096
PACKED = {
    b"\x1f\x8b": ("gzip", "gunzip -k"),
    b"BZh": ("bzip2", "bunzip2 -k"),
    b"\xfd7zXZ\0": ("xz", "unxz -k"),
    b"\x28\xb5\x2f\xfd": ("zstd", "unzstd"),
    b"PK\x03\x04": ("zip", "unzip"),
}
"""Compressed files: the program, and the command that unpacks one."""
KINDS: tuple[tuple[bytes, str, str], ...] = (
    (b"PGDMP", "pg_dump in custom format", "postgresql"),
    (b"SQLite format 3\0", "a SQLite file", "sqlite"),
)
PG_PLAIN = "-- PostgreSQL database dump"
PG_CLUSTER = "-- PostgreSQL database cluster dump"
MYSQLS = re.compile(r"(?m)^-- (MySQL|MariaDB) dump ")


class Ends:
    """The first and the last bytes of a file, or of a directory's table of contents."""

    def __init__(self, path: Path, contents: str = "") -> None:
        """`contents`: the file that a directory must have to be a dump. Raises UsageError."""
        self.where = f"--dump {path}"
        try:
            if path.is_dir():
                file = path / (contents or "toc.dat")
                if not file.is_file() or not contents:
                    raise UsageError(
                        f"{self.where}: is a directory and not one that pg_dump wrote (it has no {file.name}); name the dump's file"
                        if not file.is_file()
                        else f"{self.where}: is a directory that pg_dump wrote (-Fd); only postgresql loads it"
                    )
                self.size = sum(entry.stat().st_size for entry in path.rglob("*") if entry.is_file())
            else:
                file = path
                if path.exists() and not path.is_file():
                    raise UsageError(f"{self.where}: is no regular file; save the dump to a file, and name that")
                self.size = path.stat().st_size
            with file.open("rb") as opened:
                self.head = opened.read(HEAD_BYTES)
                opened.seek(max(0, file.stat().st_size - TAIL_BYTES))
                self.tail = opened.read()
        except OSError as error:
            raise UsageError(f"{self.where}: can't be read: {system_error.words(error)}") from None
        if not self.size:
            raise UsageError(f"{self.where}: is empty; dump the database again")
        for magic, (program, command) in PACKED.items():
            if self.head.startswith(magic):
                raise UsageError(f"{self.where}: is compressed ({program}); unpack it: {command} {path}")

    @property
    def text(self) -> str:
        """The first bytes as text."""
        return self.head.decode(errors="replace")

    @property
    def is_text(self) -> bool:
        return b"\0" not in self.head


def other_kind(ends: Ends) -> tuple[str, str]:
    """(what another server's dump is, the engines that load it); empty if it is none that is known. Pure."""
    for magic, kind, engine in KINDS:
        if ends.head.startswith(magic):
            return kind, engine
    if ends.head[257:262] == b"ustar" and ends.head.startswith(b"toc.dat"):
        return "pg_dump in tar format", "postgresql"
    if PG_PLAIN in ends.text or PG_CLUSTER in ends.text:
        return "SQL text of pg_dump", "postgresql"
    if match := MYSQLS.search(ends.text):
        return f"SQL text of {match[1]}'s dump program", "mysql or mariadb"
    if is_gbak(ends.head):
        return "a backup of gbak", "firebird"
    return "", ""


def is_gbak(head: bytes) -> bool:
    """Whether a file begins as gbak's do: the record of the backup, then its format, a number of 4 bytes. Pure."""
    return head.startswith(b"\0\2\4") and 0 < int.from_bytes(head[3:7], "little") < 256


def refuse_others(ends: Ends, engine: str) -> None:
    """Raises UsageError for a dump of another server."""
    kind, engines = other_kind(ends)
    if kind and engine not in engines:
        raise UsageError(
            f"{ends.where}: is {kind}, which {engine} can't load; use {engines}, or dump the database of a {engine} server"
        )


def check_tar(path: Path) -> None:
    """Raises UsageError for a tar file that ends too early: pg_restore would wait for the rest forever."""
    try:
        with tarfile.open(path, "r:") as archive:
            members = archive.getmembers()
        end = max((member.offset_data + member.size for member in members), default=0)
        whole = end <= path.stat().st_size
    except (tarfile.TarError, OSError):
        whole = False
    if not whole:
        raise UsageError(f"--dump {path}: the tar file ends too early: it is truncated; {AGAIN}")


def last_line(path: Path) -> int:
    """The number of the file's last line, for messages. Reads all of it."""
    count, last = 0, b"\n"
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            count, last = count + piece.count(b"\n"), piece[-1:]
    return count + (last != b"\n")


def line_at(path: Path, offset: int) -> int:
    """The number of the line at this offset."""
    count, left = 1, offset
    with path.open("rb") as file:
        while left > 0 and (piece := file.read(min(left, 1 << 20))):
            count, left = count + piece.count(b"\n"), left - len(piece)
    return count


def refuse_newer(where: str, theirs: str, ours: str, title: str, advice: str) -> None:
    """Raises UsageError if the dump is from a newer server. `theirs`, `ours`: comparable versions, such as `18` and `15`."""
    numbers = [tuple(int(part) for part in re.findall(r"\d+", version)) for version in (theirs, ours)]
    if numbers[0] > numbers[1]:
        raise UsageError(
            f"{where}: was dumped from {title} {theirs}, which is newer than this server, {ours}; {advice}"
        )
