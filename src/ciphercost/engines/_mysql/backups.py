"""How the tools of MySQL and MariaDB make a backup of a server that ciphercost started."""

from __future__ import annotations

from pathlib import Path

from ciphercost.engines.capabilities.backups import BacksUp, Backup, BackupRequest
from ciphercost.host import tools, versions
from ciphercost.host.installation import Installation
from ciphercost.host.run_ownership import own_file
from ciphercost.model.errors import MissingServer
from ciphercost.model.secret import reveal

MYSQLDUMP, MARIADB_DUMP, MARIADB_BACKUP = "mysqldump", "mariadb-dump", "mariadb-backup"
SUITES: dict[tuple[int, ...], str] = {(10, 11): "bookworm", (11, 8): "trixie"}
"""Debian suites by the version of MariaDB whose mariadb-backup they have: it must be the server's."""
CLEAR = {MYSQLDUMP: ("--ssl-mode=DISABLED", "--get-server-public-key")}
"""What keeps the tool's connection unencrypted in both arms."""


class MysqlBackups(BacksUp):
    """By the tools of either server."""

    def backup(self, request: BackupRequest) -> Backup:
        """The tool's command line. A dump is consistent and locks nothing (`--single-transaction`)."""
        to = request.connection
        options = own_file(request.secrets / "backup.cnf", f"[client]\npassword={reveal(to.password)}\n")
        place = (
            f"--host={to.host}",
            f"--port={to.port}",
            f"--user={to.user}",
            *CLEAR.get(request.tool, ("--skip-ssl",)),
        )
        begin = (str(client_program(request.installation, request.tool)), f"--defaults-file={options}")
        if request.tool == MARIADB_BACKUP:
            data = (f"--datadir={request.cluster / 'data'}", f"--target-dir={request.target / 'backup'}")
            return Backup([*begin, "--backup", *place, *data])
        return Backup(
            [*begin, *place, "--single-transaction", f"--result-file={request.target / 'dump.sql'}", to.database or ""]
        )


def client_program(installation: Installation, tool: str) -> Path:
    """The tool of this server: beside it, or in the directory of clients beside that. mariadb-backup is fetched if it is missing."""
    bindir = Path(installation.location)
    for place in (bindir, bindir.parent / "bin"):
        if (program := place / tool).exists():
            return program
    version = installation.version
    if tool == MARIADB_BACKUP and (suite := SUITES.get(versions.version_key(version)[:2])):
        return tools.together(tools.mariadb_backup(suite), tool) / tool
    raise MissingServer(
        f"{tool}: the server {version} in {bindir} does not have it; install the package of its client programs, or "
        "use another tool"
    )
