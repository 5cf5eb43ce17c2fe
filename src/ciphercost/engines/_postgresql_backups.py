"""How PostgreSQL's own tools make a backup of a server that ciphercost started. Not an engine."""

from __future__ import annotations

from pathlib import Path

from ciphercost.engines.capabilities.backups import Backup, BackupRequest
from ciphercost.host.run_ownership import own_file
from ciphercost.model.errors import MissingServer
from ciphercost.model.secret import reveal

DUMP, BASE = "pg_dump", "pg_basebackup"
TOOLS = (DUMP, BASE)
"""`BacksUp.backup_tools`."""


def backup(request: BackupRequest) -> Backup:
    """The tool's command line, with its usual options: a plain SQL file, or a copy of all files with the log that it needs."""
    program = Path(request.installation.location) / request.tool
    if not program.exists():
        raise MissingServer(
            f"tool={request.tool}: PostgreSQL {request.installation.version} in {request.installation.location} has no {request.tool}; "
            "name a complete installation with --bindir, or fetch one: ciphercost install postgresql --from debian"
        )
    to = request.connection
    passwords = own_file(request.secrets / "backup.pgpass", f"*:*:*:{to.user}:{reveal(to.password)}\n")
    reached = f"host={to.host} port={to.port} user={to.user} dbname={to.database} passfile={passwords} sslmode=disable"
    if request.tool == BASE:
        # fast: by default it waits for a checkpoint that the server spreads over minutes.
        return Backup([str(program), f"--dbname={reached}", f"--pgdata={request.target / 'base'}", "--checkpoint=fast"])
    return Backup([str(program), f"--dbname={reached}", f"--file={request.target / 'dump.sql'}"])
