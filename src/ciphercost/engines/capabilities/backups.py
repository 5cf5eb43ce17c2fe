"""Capability: the server's own tools, or a statement of it, make a backup."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ciphercost.engines.capabilities import Capability
from ciphercost.host.installation import Installation
from ciphercost.model.connection import Connection

VACUUM, EXPORT = "vacuum-into", "sqlcipher_export"
"""SQLite's statement, and SQLCipher's."""


class BackupRequest(msgspec.Struct, frozen=True):
    """What to back up, and where to."""

    tool: str
    """One of `BacksUp.backup_tools`."""
    installation: Installation
    connection: Connection
    """How to reach the server, unencrypted, with its password."""
    cluster: Path
    """Directory of the server's data, as `Engine.initialise` made it."""
    target: Path
    """An empty directory for the backup. The tool runs as the user who runs the servers, who owns it."""
    secrets: Path
    """Directory for a file with the password (mode 0600), which the tool reads: no command line has it."""


class Backup(msgspec.Struct, frozen=True):
    """How a backup is made: by a command, or by a statement."""

    command: Sequence[str] = ()
    statement: str = ""
    tool: str = ""
    """What makes it, if that is not the tool of the request."""


class BacksUp(Capability):
    """Makes backups of a running server."""

    missing = "has no backup that ciphercost measures; use postgresql, mysql, mariadb or sqlite"

    backup_tools: tuple[str, ...]
    """What makes a backup, by the word for `--set tool=`; the first is the default."""

    @abstractmethod
    def backup(self, request: BackupRequest) -> Backup:
        """Return how this tool makes a backup of the connection's database, or of all of them. Raises MissingServer if the tool is missing."""
