"""Capability: the server's own tools load a dump of the user's database into a server that ciphercost starts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from ciphercost.engines.capabilities import Capability
from ciphercost.host import file_position
from ciphercost.host.run_ownership import server_user
from ciphercost.model.constrained_types import CANARY_TABLE

if TYPE_CHECKING:
    from ciphercost.host.installation import Installation
    from ciphercost.host.supervisor import Supervisor
    from ciphercost.model.connection import Connection

LOOK_SECONDS = 0.25
"""Seconds between two looks at how far a tool has read."""
Rows = list[list[str | None]]


class Dump(msgspec.Struct, frozen=True):
    """A dump as its first and last bytes describe it."""

    path: Path
    form: str
    """What wrote it and how, for people: `pg_dump, custom format`."""
    size: int
    """Bytes."""
    version: str = ""
    """Version of the server that it is from, e.g. `18.4`; empty: the dump does not say."""

    @property
    def option(self) -> str:
        """What an error about it begins with."""
        return f"--dump {self.path}"


class DumpColumn(msgspec.Struct, frozen=True):
    """A column of a table of the user's, as the server describes it."""

    name: str
    type: str
    """As the server names it, e.g. `varchar(80)`."""
    text: str
    """SQL for its value as text; empty: it holds bytes, which are no text."""


class Tool(msgspec.Struct, frozen=True):
    """How a tool of the server's ended."""

    status: int
    output: str
    """The end of what it printed. It may hold the user's data, so no message repeats it."""


class DumpTarget(msgspec.Struct, frozen=True):
    """Where a dump is loaded."""

    installation: Installation
    directory: Path
    """The cluster, as `Engine.initialise` made it."""
    supervisor: Supervisor
    work: Path
    """A directory for files of the load (mode 0700), owned by the user who runs the servers; removed afterwards."""
    read: Callable[[int], None]
    """To be called with the bytes of the dump that were read so far."""
    connection: Connection | None = None
    """How to reach the server. None: it does not run (`LoadsDumps.loads_stopped`)."""
    query: Callable[[str], Rows] = lambda _: []
    """Runs a statement on the server. Raises AgentError."""

    def run(
        self,
        command: Sequence[str | Path],
        dump: Dump,
        *,
        stdin: Path | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float,
    ) -> Tool:
        """Run a tool that reads the dump. It may write only to the run's own directories. Raises RunError after `timeout` seconds."""
        process = self.supervisor.spawn(
            command,
            stdin=stdin,
            env=env,
            cwd=self.work,
            user=server_user(),
            writable=[self.work, self.directory],
            connects=True,
        )
        try:
            status = file_position.followed(process, stdin or dump.path, self.read, LOOK_SECONDS, timeout)
            return Tool(status, process.output())
        finally:
            process.stop(timeout=1.0)


class LoadsDumps(Capability):
    """Recognises dumps of its kind and loads them."""

    missing = "loads no dump; use postgresql, mysql, mariadb, firebird or sqlite"

    loads_stopped: bool = False
    """True: a dump is loaded into a cluster whose server does not run, before it encrypts anything."""
    load_settings: Mapping[str, str] = MappingProxyType({})
    """Settings of the server while a dump is loaded, and not later: nothing of the dump in its log, and no waiting for the disk."""

    @abstractmethod
    def dump_of(self, path: Path) -> Dump:
        """Return what the file is. Raises UsageError if it is no complete dump that this server's tools could load."""

    @abstractmethod
    def load_dump(self, dump: Dump, target: DumpTarget) -> list[str]:
        """Load it. Returns sentences about what the dump needs and the server lacked, such as roles.

        Afterwards, statements without a schema's name find the dump's tables. Raises UsageError if the dump is at fault; its message
        has the line, or the object, and none of the user's values. Raises RunError.
        """

    @abstractmethod
    def table_rows(self, query: Callable[[str], Rows]) -> dict[str, int]:
        """Return the number of rows of each of the user's tables, by name."""

    @abstractmethod
    def table_columns(self, query: Callable[[str], Rows], table: str) -> list[DumpColumn]:
        """Return the columns of a table, by a name of `table_rows`, in their order."""

    @abstractmethod
    def read_table(self, query: Callable[[str], Rows], table: str, texts: Sequence[str]) -> Iterator[Rows]:
        """Yield all rows of a table in portions. `texts`: of each column, `DumpColumn.text`. It may write to this copy of the database."""


def is_users(table: str) -> bool:
    """Whether this table is the user's, and not ciphercost's own. Pure."""
    return table.lower() != CANARY_TABLE
