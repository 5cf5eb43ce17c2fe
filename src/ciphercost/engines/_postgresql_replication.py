"""Streaming replication of PostgreSQL: a standby, what both servers report of its link, and a base backup. Not an engine."""

from __future__ import annotations

import time
from pathlib import Path

from ciphercost.engines.capabilities.replication import (
    Ask,
    CopyRequest,
    FullCopy,
    LinkEnd,
    Replicates,
    ReplicationLink,
)
from ciphercost.host.run_ownership import own_file
from ciphercost.model.errors import AgentError, MissingServer
from ciphercost.model.secret import reveal

NAME = "ciphercost_replica"
BASE = "pg_basebackup"
RELOAD_S = 10.0
"""Seconds that a server may take to read its configuration again."""
WAITS = ("on", "remote_write", "remote_apply")
"""Values of synchronous_commit with which a commit waits for the standby."""
SENDER = (
    "SELECT s.ssl, s.version, s.cipher, r.state FROM pg_stat_replication r JOIN pg_stat_ssl s USING (pid) "
    f"WHERE r.application_name = '{NAME}'"
)
SETTING = "SHOW primary_conninfo"
RECEIVER = "SELECT status, conninfo FROM pg_stat_wal_receiver"
WRITTEN = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"
REPLAYED = "SELECT coalesce(pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0'), 0)"


class PostgresqlReplication(Replicates):
    """By a standby that streams the log."""

    copied_by = BASE
    link_word = "START_REPLICATION"
    link_settings = ("sslmode=disable", "sslmode=verify-full")

    def replication_settings(self, number: int) -> dict[str, str]:  # noqa: ARG002 - both servers have the same
        """Keep the log that a stopped standby needs, and let a stopped link live."""
        return {"wal_keep_size": "4GB", "wal_sender_timeout": "0", "wal_receiver_timeout": "0"}

    def make_replica(self, directory: Path) -> None:
        own_file(directory / "standby.signal", "")

    def join(self, primary: Ask, replica: Ask, link: ReplicationLink) -> None:  # noqa: ARG002
        """The password is in a file, so that no setting has it. The receiver ends when its setting changes, and another one begins."""
        _reloaded(replica, "primary_conninfo", f"{_reached(link, link.directory)} application_name={NAME}")

    def joined(self, primary: Ask, replica: Ask) -> str:
        if [str(row[3]) for row in primary(SENDER)] != ["streaming"]:
            return "the primary streams to no standby"
        rows, wanted = replica(RECEIVER), _words(str(replica(SETTING)[0][0]))
        if [str(row[0]) for row in rows] != ["streaming"]:
            return "the standby receives no stream"
        if _words(str(rows[0][1])).get("port") != wanted.get("port"):
            return "the standby still receives another stream"
        return ""

    def synchronous(self, primary: Ask, replica: Ask, *, on: bool) -> None:  # noqa: ARG002
        _reloaded(primary, "synchronous_standby_names", NAME if on else "")
        if on and (setting := str(primary("SHOW synchronous_commit")[0][0])) not in WAITS:
            raise AgentError(
                f"synchronous_commit={setting}: commits would not wait for the replica; use {' or '.join(WAITS)}, or remove the setting"
            )

    def position(self, primary: Ask) -> int:
        return _number(primary(WRITTEN))

    def applied(self, replica: Ask) -> int:
        return _number(replica(REPLAYED))

    def primary_end(self, primary: Ask, accepted: int) -> LinkEnd:  # noqa: ARG002
        rows = primary(SENDER)
        if len(rows) != 1:
            return LinkEnd(None, f"pg_stat_replication has {len(rows)} rows of {NAME}")
        ssl, version, cipher, _ = rows[0]
        if ssl == "t":
            return LinkEnd(True, f"pg_stat_ssl of the sender: {version} {cipher}", str(version), str(cipher))
        return LinkEnd(False, "pg_stat_ssl of the sender: no encryption")

    def replica_end(self, replica: Ask) -> LinkEnd:
        rows = replica(RECEIVER)
        mode = _words(str(rows[0][1])).get("sslmode", "") if rows else ""
        if not mode:
            return LinkEnd(None, "pg_stat_wal_receiver shows no connection")
        return LinkEnd(mode == "verify-full", f"pg_stat_wal_receiver: sslmode={mode}")

    def full_copy(self, request: CopyRequest) -> FullCopy:
        program = Path(request.installation.location) / BASE
        if not program.exists():
            raise MissingServer(
                f"PostgreSQL {request.installation.version} in {request.installation.location} has no {BASE}; name a complete installation "
                "with --bindir, or fetch one: ciphercost install postgresql --from debian"
            )
        # fast: by default it waits for a checkpoint that the server spreads over minutes.
        reached = f"--dbname={_reached(request.link, request.secrets)}"
        return FullCopy(
            [str(program), reached, f"--pgdata={request.target / 'base'}", "--checkpoint=fast", "--no-sync"]
        )


def _reached(link: ReplicationLink, directory: Path) -> str:
    """The connection string of a link. Writes the file with its password to `directory`."""
    to = link.to
    passwords = own_file(directory / "replication.pgpass", f"*:*:*:{to.user}:{reveal(to.password)}\n")
    tls = f"sslmode=verify-full sslrootcert={link.ca}" if link.ca else "sslmode=disable"
    # libpq would try Kerberos where it finds a ticket, and a certificate where it finds one in the home directory.
    return f"host={link.host} port={link.port} user={to.user} passfile={passwords} {tls} gssencmode=disable sslcert={directory / 'none'}"


def _words(conninfo: str) -> dict[str, str]:
    """The words of a connection string."""
    return dict(word.partition("=")[::2] for word in conninfo.split())


def _reloaded(ask: Ask, setting: str, value: str) -> None:
    """Change a setting of a server that runs, and wait until it has read it. Raises AgentError."""
    quoted = value.replace("'", "''")
    ask(f"ALTER SYSTEM SET {setting} = '{quoted}'")
    ask("SELECT pg_reload_conf()")
    deadline = time.monotonic() + RELOAD_S
    while ask(f"SHOW {setting}") != [[value]]:
        if time.monotonic() > deadline:
            raise AgentError(f"the server has not changed {setting} in {RELOAD_S:g} s; remove --setting {setting}")
        time.sleep(0.01)


def _number(rows: list[list[str | None]]) -> int:
    return int(float(rows[0][0] or 0))
