"""MariaDB 10.5 and later: names, packages and creation of a cluster. `_mysql` has what it shares with MySQL."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from ciphercost.engines import Server, StartRequest
from ciphercost.engines._mysql import backups, spills
from ciphercost.engines._mysql.family import Family, accounts, io_counters_sql, share
from ciphercost.engines._mysql.replication import MariadbReplication
from ciphercost.host import tls_names, versions
from ciphercost.host.installation import Installation
from ciphercost.host.run_ownership import hand_over, own_file, server_user
from ciphercost.model.errors import MissingServer, UsageError

if TYPE_CHECKING:
    from ciphercost.host.pki import Pki
    from ciphercost.host.supervisor import Supervisor

SYSTEM_TABLES = ("system_tables", "performance_tables", "system_tables_data")
"""The server's own scripts that create its system tables, except the help texts.

Before 11 their names begin with `mysql_`.
"""
BEFORE = """\
CREATE DATABASE IF NOT EXISTS mysql;
USE mysql;
SET @auth_root_socket = NULL;
SET @skip_auth_anonymous = 1;
"""
OPENSSL = """\
openssl_conf = conf
[conf]
ssl_conf = ssl
[ssl]
system_default = default
[default]
Groups = {}
"""
ML_KEM_SINCE = (3, 5)
"""Version of OpenSSL."""
WITHOUT_TLS = {"skip-ssl": "1"}
"""Settings of a server that serves no TLS. Since 11.4 a server without a certificate makes one at each start, with an RSA key of 4096 bits:
most of the CPU time that it takes to start.
"""
AFTER = """\
DELETE FROM global_priv WHERE User = 'root' OR User = '';
DELETE FROM proxies_priv;
FLUSH PRIVILEGES;
"""


class Mariadb(Family, MariadbReplication):
    name = "mariadb"
    title = "MariaDB"
    schemes = MappingProxyType({"mariadb": "tls"})
    programs = ("mariadbd", "mysqld")
    suites = MappingProxyType({"10.11": "bookworm", "11.8": "trixie"})
    packages = ("mariadb-server", "mariadb-client-core")
    backup_tools = (backups.MARIADB_DUMP, backups.MARIADB_BACKUP)
    # A temporary table reaches the disk only if the buffer pool has no room for it.
    to_disk = ("SET SESSION tmp_memory_table_size = 0", spills.beyond_the_pool())
    variables = "SELECT LOWER(VARIABLE_NAME), VARIABLE_VALUE FROM information_schema.GLOBAL_VARIABLES"
    tls_witness = (
        "SELECT IF(c.VARIABLE_VALUE = '', 'f', 't'), v.VARIABLE_VALUE, c.VARIABLE_VALUE "
        "FROM information_schema.SESSION_STATUS c JOIN information_schema.SESSION_STATUS v "
        "ON c.VARIABLE_NAME = 'SSL_CIPHER' AND v.VARIABLE_NAME = 'SSL_VERSION'"
    )

    # Its Ssl_sessions_reused is 0 also where the client has resumed a session (tried: 10.11 and 11.8), so there is no `resumed_witness`.
    io_counters = io_counters_sql(
        "information_schema.GLOBAL_STATUS",
        "VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Binlog_bytes_written'",
    )
    statement_logs = (
        "SELECT 'statements that change rows, in its binary log', 'binlog_format = ROW', 'high' "
        "WHERE @@GLOBAL.log_bin AND @@GLOBAL.binlog_format <> 'ROW' "
        "UNION ALL SELECT 'statements that change rows, in its binary log beside the rows', 'binlog_annotate_row_events = OFF', 'high' "
        "WHERE @@GLOBAL.log_bin AND @@GLOBAL.binlog_annotate_row_events "
        "UNION ALL SELECT 'every statement, in its general log', 'general_log = OFF', 'high' WHERE @@GLOBAL.general_log "
        "UNION ALL SELECT 'slow statements, in a log of their own', 'slow_query_log = OFF', 'medium' WHERE @@GLOBAL.slow_query_log"
    )

    def make(
        self,
        base: list[str | Path],
        installation: Installation,
        directory: Path,
        password: str,
        address: str,
        supervisor: Supervisor,
    ) -> None:
        """Do what mariadb-install-db does; that shell script runs only where it was installed."""
        scripts = share(Path(installation.location), "charsets/Index.xml")
        parts = [BEFORE]
        for name in SYSTEM_TABLES:
            files = sorted(scripts.glob(f"m*_{name}.sql")) if scripts else []
            if not files:
                raise MissingServer(
                    f"MariaDB {installation.version} in {installation.location}: no script m…_{name}.sql in "
                    f"{scripts or 'share/mariadb or share/mysql'}. Install the whole server package."
                )
            parts.append(files[0].read_text())
        (directory / "data").mkdir(mode=0o700)
        hand_over(directory / "data")
        # The default of IDENTIFIED BY: two SHA-1 digests, the same in both arms. ed25519 would add a signature to every
        # login, which both arms would pay, and so dilute the cost of a handshake.
        parts += [AFTER, accounts(f"VIA mysql_native_password USING PASSWORD('{password}')", address)]
        script = own_file(directory / "system.sql", "\n".join(parts))
        try:
            supervisor.run([*base, "--bootstrap"], user=server_user(), cwd=directory, stdin=script)
        finally:
            script.unlink()

    def start(self, request: StartRequest) -> Server:
        """Refuse a group unknown to the server's OpenSSL, which would ignore it: the server would start without it."""
        given = dict(request.settings)
        if not any(name.startswith("ssl") for name in given):
            given |= WITHOUT_TLS
        server = super().start(msgspec.structs.replace(request, settings=given))
        configuration = given.get("env:OPENSSL_CONF", "")
        if configuration.endswith("mlkem768.cnf") and versions.version_key(server.library)[:2] < ML_KEM_SINCE:
            server.stop()
            raise UsageError(
                f"mariadb {request.installation.version} runs with {server.library}, which lacks post-quantum groups "
                "(OpenSSL 3.5 is the first to have them). Use mariadb@11.8, or leave group out."
            )
        return server

    def tls_settings(self, pki: Pki, factors: Mapping[str, str]) -> dict[str, str]:
        """Set the group in an OpenSSL configuration, because the server has no setting for it."""
        settings = super().tls_settings(pki, factors)
        if factors["group"]:
            path = pki.directory / f"openssl-{factors['group']}.cnf"
            settings["env:OPENSSL_CONF"] = str(own_file(path, OPENSSL.format(tls_names.GROUPS[factors["group"]])))
        return settings

    def suite_settings(self, suites_12: str, suites_13: str) -> dict[str, str]:
        return {"ssl-cipher": f"{suites_12}:{suites_13}"}


ENGINE = Mariadb()
