"""MySQL 8.0 and later: names, packages and creation of a cluster. `_mysql` has what it shares with MariaDB."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ciphercost.engines._mysql import backups
from ciphercost.engines._mysql.family import Family, accounts, io_counters_sql
from ciphercost.engines._mysql.replication import MysqlReplication
from ciphercost.host.installation import Installation
from ciphercost.host.run_ownership import own_file, server_user
from ciphercost.model.errors import UsageError

if TYPE_CHECKING:
    from ciphercost.host.supervisor import Supervisor

GROUPS = ("p256", "p384")
"""The server hard-codes these groups and accepts no others, not even from OpenSSL's configuration."""
WANT_A_KEY = (
    "innodb-redo-log-encrypt",
    "innodb-undo-log-encrypt",
    "binlog-encryption",
    "default-table-encryption",
)
"""Settings that need a keyring. They can't be on while a cluster is created: the keyring is configured in the data
directory, which must be empty then."""


class Mysql(Family, MysqlReplication):
    name = "mysql"
    title = "MySQL"
    schemes = MappingProxyType({"mysql": "tls"})
    programs = ("mysqld",)
    hopeless = "CORRUPT LOG RECORD FOUND"  # logged without its key, thousands of times a second, forever
    suites = MappingProxyType({"9.7": "sid"})
    packages = ("mysql-server-core", "mysql-client-core")
    no_post_quantum_keys = "mysql's server (tried: 9.7, with OpenSSL 3.6) answers no handshake with one"
    backup_tools = (backups.MYSQLDUMP,)
    caches_logins = True  # caching_sha2_password: without TLS the first login after a start is an RSA exchange
    own_settings = MappingProxyType({"mysqlx": "OFF", "secure-file-priv": "NULL"})
    temporary = (*Family.temporary, "data/#innodb_temp/*")
    # An idle server flushes its whole buffer pool to disk.
    to_disk = ("SET SESSION big_tables = ON", "SELECT SLEEP(3)")
    variables = "SELECT LOWER(VARIABLE_NAME), VARIABLE_VALUE FROM performance_schema.global_variables"
    tls_witness = (
        "SELECT IF(c.VARIABLE_VALUE = '', 'f', 't'), v.VARIABLE_VALUE, c.VARIABLE_VALUE "
        "FROM performance_schema.session_status c JOIN performance_schema.session_status v "
        "ON c.VARIABLE_NAME = 'Ssl_cipher' AND v.VARIABLE_NAME = 'Ssl_version'"
    )

    resumed_witness = "SELECT IF(VARIABLE_VALUE = '1', 't', 'f') FROM performance_schema.session_status WHERE VARIABLE_NAME = 'Ssl_sessions_reused'"
    io_counters = io_counters_sql(
        "performance_schema.global_status",
        "SUM_NUMBER_OF_BYTES_WRITE FROM performance_schema.file_summary_by_event_name WHERE EVENT_NAME = 'wait/io/file/sql/binlog'",
    )
    statement_logs = (
        "SELECT 'statements that change rows, in its binary log', 'binlog_format = ROW', 'high' "
        "WHERE @@GLOBAL.log_bin AND @@GLOBAL.binlog_format <> 'ROW' "
        "UNION ALL SELECT 'statements that change rows, in its binary log beside the rows', 'binlog_rows_query_log_events = OFF', 'high' "
        "WHERE @@GLOBAL.log_bin AND @@GLOBAL.binlog_rows_query_log_events "
        "UNION ALL SELECT 'every statement, in its general log', 'general_log = OFF', 'high' WHERE @@GLOBAL.general_log "
        "UNION ALL SELECT 'slow statements, in a log of their own', 'slow_query_log = OFF', 'medium' WHERE @@GLOBAL.slow_query_log"
    )

    def check_factors(self, mechanism: str, factors: Mapping[str, str], version: str) -> None:  # noqa: ARG002
        group = factors.get("group", "") if mechanism == "tls" else ""
        if group and group not in GROUPS:
            raise UsageError(
                f"mysql can't use the group {group}: its server offers only {' and '.join(GROUPS)}. "
                "Use one of them, or leave group out."
            )

    def initialise(
        self,
        installation: Installation,
        directory: Path,
        supervisor: Supervisor,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        given = {name: value for name, value in (settings or {}).items() if name not in WANT_A_KEY}
        super().initialise(installation, directory, supervisor, given)

    def make(
        self,
        base: list[str | Path],
        installation: Installation,  # noqa: ARG002
        directory: Path,
        password: str,
        address: str,
        supervisor: Supervisor,
    ) -> None:
        # caching_sha2_password is the default since 8.0; mysql_native_password is gone since 9.0.
        ours = accounts(f"WITH caching_sha2_password BY '{password}'", address)
        script = own_file(directory / "accounts.sql", f"{ours}ALTER USER root@localhost ACCOUNT LOCK;\n")
        try:
            supervisor.run([*base, "--initialize-insecure", f"--init-file={script}"], user=server_user(), cwd=directory)
        finally:
            script.unlink()

    tls_cbc = False  # its built-in list of suites has no CBC, and it refuses every suite that is not on the list

    def suite_settings(self, suites_12: str, suites_13: str) -> dict[str, str]:
        return {"ssl-cipher": suites_12, "tls-ciphersuites": suites_13}


ENGINE = Mysql()
