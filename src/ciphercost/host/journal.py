"""journal: what a run is about to make outside its own process, written before it exists, so that `ciphercost clean` finds it.

Each run has one journal, `journal` in its scratch directory, with a line of JSON per entry. What survives a power cut (a
directory) is on disk before it is made; everything else ends with the machine. A schema on your own server outlives the
run's scratch, so it has a note of its own, a file in `schemas` beside the runs.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import msgspec

from ciphercost.model import owned
from ciphercost.model.own_tls import OwnTls

FILE = "journal"
NOTES = "schemas"
Kind = Literal[
    "process",
    "idle setting",
    "mount",
    "loop device",
    "network namespace",
    "network device",
    "control group",
    "directory",
]
LASTING: tuple[Kind, ...] = ("directory",)
"""What is still there after a power cut."""


class Entry(msgspec.Struct, frozen=True):
    """One thing that a run was about to make."""

    kind: Kind
    what: str
    """Program, path or name; of an idle setting `cpu3=0`: the CPU and its original value; of a loop device its image."""
    within: int = 0
    """Of a directory: the inode of the one that contains it; 0: unknown."""

    @classmethod
    def directory(cls, path: Path) -> Entry:
        """The entry of a directory that is about to be made."""
        within = 0
        with contextlib.suppress(OSError):
            within = path.parent.stat().st_ino
        return cls("directory", str(path), within)

    def hidden(self) -> bool:
        """Whether a directory may exist although it can't be seen: its file system is not mounted, or is locked."""
        parent = Path(self.what).parent
        try:
            if self.within and parent.stat().st_ino != self.within:
                return True
            os.close(os.open(parent, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        except OSError as error:
            # The kernel shows the names of a locked directory only in their encrypted form.
            return error.errno == errno.ENOKEY or (error.errno == errno.ENOENT and bool(self.within))
        return False


def add(journal: Path, entry: Entry) -> None:
    """Append an entry. When this returns, a lasting one is on disk. Raises OSError."""
    lasting = entry.kind in LASTING
    owned.add_line(journal, msgspec.json.encode(entry).decode(), on_disk=lasting)
    if lasting:  # the run's scratch directory, too
        owned.to_disk(journal.parent.parent)


def read(text: str) -> Iterator[Entry]:
    """The entries of a journal. A line that a power cut has torn is left out: what it announces was never made. Pure."""
    # Names may contain characters that `splitlines` takes for ends of lines.
    for line in text.split("\n"):
        with contextlib.suppress(msgspec.DecodeError):
            yield msgspec.json.decode(line, type=Entry)


# ── schemas on your own server ────────────────────────────────────────────────────────────────────────────────────────


class Note(msgspec.Struct, frozen=True):
    """A schema that a run was about to create on your server."""

    schema: str
    run: str
    owner: str
    """The controller, as `marks.identity` names it."""
    engine: str
    host: str
    port: int
    user: str = ""
    database: str = ""
    name: str = ""
    """The server's name, which its certificate has; empty: `host` is what the user wrote."""
    encryption: tuple[tuple[str, str], ...] | None = None
    """Fields of the agent's `connect` with which the run's own connection was encrypted; empty: it was not; None: unknown."""
    ca: str = ""
    """The authority that the run was given; empty: none."""
    query: str = ""
    """What a URL must ask so that a connection is encrypted like the run's."""
    cert: str = ""
    """File of the client certificate that the run was given."""
    key: str = ""
    server_name: str = ""
    socket: str = ""
    """The server's Unix-domain socket, if the run's own connection went there."""

    @property
    def own_tls(self) -> OwnTls:
        """What the run was given beside the URL. Pure."""
        return OwnTls(self.ca, self.cert, self.key, self.server_name)

    @property
    def url(self) -> str:
        """The server's URL, without a password. Pure."""
        named = self.name or self.host
        host = f"[{named}]" if ":" in named else named
        user = f"{quote(self.user, safe='')}@" if self.user else ""
        query = "&".join(filter(None, (self.query, f"socket={quote(self.socket)}" if self.socket else "")))
        return f"{self.engine}://{user}{host}:{self.port}/{quote(self.database)}" + (f"?{query}" if query else "")

    @property
    def command(self) -> str:
        """The whole command that drops the schema, as a shell takes it. Pure."""
        return shlex.join(
            [
                "ciphercost",
                "clean",
                "--url",
                self.url,
                *(word for pair in self.own_tls.options.items() for word in pair),
            ]
        )

    def is_on(self, engine: str, host: str, port: int) -> bool:
        """Whether the schema is on this server. Pure."""
        return (self.engine, self.host, self.port) == (engine, host, port)

    @property
    def file(self) -> str:
        """Name of the note's file."""
        return f"{self.schema}-{hashlib.sha256(self.url.encode()).hexdigest()[:8]}.json"


def keep(base: Path, note: Note) -> None:
    """Write a note below the base directory of all scratch. When this returns, it is on disk. Raises OSError,
    owned.Distrusted.
    """
    with owned.opened(base) as within:
        with contextlib.suppress(FileExistsError):
            os.mkdir(NOTES, 0o700, dir_fd=within)
            os.fsync(within)
        os.close(owned.open_directory(NOTES, within))
    owned.add_line(base / NOTES / note.file, msgspec.json.encode(note).decode(), on_disk=True)


def drop(base: Path, note: Note) -> None:
    """Remove a note: its schema is gone. Raises OSError."""
    (base / NOTES / note.file).unlink(missing_ok=True)


def notes(within: int) -> Iterator[Note]:
    """All notes in the open base directory of all scratch. Files that others could have written are left out."""
    try:
        directory = owned.open_directory(NOTES, within)
    except (OSError, owned.Distrusted):
        return
    try:
        for name in sorted(os.listdir(directory)):  # noqa: PTH208 - of a descriptor
            with contextlib.suppress(OSError, owned.Distrusted, msgspec.DecodeError, IndexError):
                note = msgspec.json.decode(owned.read(name, directory).split("\n")[0], type=Note)
                if note.file == name and printable(note):
                    yield note
    finally:
        os.close(directory)


def printable(note: Note) -> bool:
    """Whether all texts of a note can be shown on a terminal. Pure."""
    return all(str(value).isprintable() for value in msgspec.structs.astuple(note))
