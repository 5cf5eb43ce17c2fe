"""Replication of MySQL and MariaDB by their binary log: a replica that commits wait for (semi-synchronous), what both servers report of its
link, and a full copy.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path

from ciphercost.engines._mysql.backups import MARIADB_DUMP, client_program
from ciphercost.engines.capabilities.replication import (
    Ask,
    CopyRequest,
    FullCopy,
    LinkEnd,
    Replicates,
    ReplicationLink,
)
from ciphercost.host.run_ownership import own_file
from ciphercost.model.errors import AgentError
from ciphercost.model.secret import reveal

LONG_S = 31_000_000
"""Seconds, about a year: how long a link may be silent, and a commit may wait for the replica before it goes on without."""
FILE = 1 << 40
"""More than the bytes of one file of the binary log, so that a file's number and a place in it make one number that only grows."""
SETTLE_S = 10.0
"""Seconds in which a server must count its replica as one that it waits for."""


class BinaryLogReplication(Replicates):
    """By file and position of the binary log. A subclass has the words of its server."""

    link_word = "ciphercost"  # the user's name, which the login begins with

    role: tuple[str, str]
    """How the server calls the two ends: `MASTER`, `SLAVE`."""
    change: str
    """The statement that names the primary."""
    log_status: str
    """The statement that shows how far the binary log is."""

    def _words(self) -> tuple[str, str]:
        """`Master`, `Slave`, as the columns of status tables have them."""
        source, replica = self.role
        return source.capitalize(), replica.capitalize()

    def replication_settings(self, number: int) -> dict[str, str]:
        _, replica = self.role
        return {
            "server-id": str(number),
            "log-bin": "binlog",
            "relay-log": "relay",
            f"skip-{replica.lower()}-start": "ON",
            f"{replica.lower()}-net-timeout": str(LONG_S),
            "net-write-timeout": str(LONG_S),
            "net-read-timeout": str(LONG_S),
            **self.waiting_settings(),
        }

    @abstractmethod
    def waiting_settings(self) -> dict[str, str]:
        """Return the settings by which a primary can wait for a replica, and never goes on without."""

    def make_replica(self, directory: Path) -> None:
        """Let it have an identifier of its own."""
        (directory / "data" / "auto.cnf").unlink(missing_ok=True)

    def join(self, primary: Ask, replica: Ask, link: ReplicationLink) -> None:
        source, follower = self.role
        if self._status(replica):
            replica(f"STOP {follower}")
            at = self._place(self._status(replica))
        else:
            found = primary.row(self.log_status)
            at = found["File"], int(found["Position"])
        to = link.to
        fields = {
            "HOST": f"'{link.host}'",
            "PORT": link.port,
            "USER": f"'{to.user}'",
            "PASSWORD": f"'{reveal(to.password)}'",
            "LOG_FILE": f"'{at[0]}'",
            "LOG_POS": at[1],
            "CONNECT_RETRY": 1,
            "SSL": int(bool(link.ca)),
            "SSL_CA": f"'{link.ca}'",
            "SSL_VERIFY_SERVER_CERT": int(bool(link.ca)),
        }
        words = [f"{source}_{name}={value}" for name, value in fields.items()]
        replica(f"{self.change} {', '.join([*words, *self.more_fields])}")
        replica(f"START {follower}")

    more_fields: tuple[str, ...] = ()
    """Further fields of `change`."""

    def joined(self, primary: Ask, replica: Ask) -> str:  # noqa: ARG002
        status = self._status(replica)
        _, follower = self._words()
        if status.get(f"{follower}_IO_Running") == status.get(f"{follower}_SQL_Running") == "Yes":
            return ""
        return next(filter(None, (status.get("Last_IO_Error"), status.get("Last_SQL_Error"))), "it is not connected")

    def synchronous(self, primary: Ask, replica: Ask, *, on: bool) -> None:  # noqa: ARG002
        source = self.role[0].lower()
        primary(f"SET GLOBAL rpl_semi_sync_{source}_enabled = {'ON' if on else 'OFF'}")
        deadline = time.monotonic() + SETTLE_S
        while on and not self._waits(primary):
            if time.monotonic() > deadline:
                raise AgentError("the primary does not wait for its replica (semi-synchronous replication is off)")
            time.sleep(0.01)

    def _waits(self, primary: Ask) -> bool:
        source = self.role[0].lower()
        known = {
            str(name).lower(): str(value)
            for name, value in primary(f"SHOW GLOBAL STATUS LIKE 'rpl_semi_sync_{source}_%'")
        }
        clients = known.get(f"rpl_semi_sync_{source}_clients", "0")
        return known.get(f"rpl_semi_sync_{source}_status") == "ON" and clients != "0"

    def position(self, primary: Ask) -> int:
        found = primary.row(self.log_status)
        return _number(found["File"], int(found["Position"]))

    def applied(self, replica: Ask) -> int:
        return _number(*self._place(self._status(replica)))

    def replica_end(self, replica: Ask) -> LinkEnd:
        source, follower = self._words()
        status = self._status(replica)
        allowed, verified = (status.get(f"{source}_SSL_{name}", "") for name in ("Allowed", "Verify_Server_Cert"))
        running = status.get(f"{follower}_IO_Running", "No")
        words = f"{source}_SSL_Allowed: {allowed}, {source}_SSL_Verify_Server_Cert: {verified}, {follower}_IO_Running: {running}"
        return LinkEnd((allowed, verified) == ("Yes", "Yes") if running == "Yes" else None, words)

    def _status(self, replica: Ask) -> Mapping[str, str]:
        return replica.row(f"SHOW {self.role[1]} STATUS")

    def _place(self, status: Mapping[str, str]) -> tuple[str, int]:
        """The file and the position that the replica has applied."""
        source, _ = self._words()
        return status.get(f"Relay_{source}_Log_File", ""), int(status.get(f"Exec_{source}_Log_Pos") or 0)


class MariadbReplication(BinaryLogReplication):
    role = ("MASTER", "SLAVE")
    change = "CHANGE MASTER TO"
    log_status = "SHOW MASTER STATUS"
    more_fields = ("MASTER_USE_GTID=no",)
    copied_by = MARIADB_DUMP
    link_settings = ("MASTER_SSL=0", "MASTER_SSL=1")

    def waiting_settings(self) -> dict[str, str]:
        return {
            "rpl-semi-sync-slave-enabled": "ON",
            "rpl-semi-sync-master-timeout": str(LONG_S),
            "rpl-semi-sync-master-wait-no-slave": "ON",
        }

    def accepted(self, primary: Ask) -> int:
        return int(primary("SHOW GLOBAL STATUS LIKE 'Ssl_finished_accepts'")[0][1] or 0)

    def primary_end(self, primary: Ask, accepted: int) -> LinkEnd:
        """The server does not show how another session is encrypted, so count: nobody else connects by TLS."""
        dumps = primary("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'")
        if accepted < 0 or dumps[0][0] == "0":
            return LinkEnd(None, f"{dumps[0][0]} replicas are connected")
        more = self.accepted(primary) - accepted
        return LinkEnd(more > 0, f"a replica is connected, Ssl_finished_accepts rose by {more} as it connected")

    def full_copy(self, request: CopyRequest) -> FullCopy:
        to, link = request.link.to, request.link
        options = own_file(request.secrets / "copy.cnf", f"[client]\npassword={reveal(to.password)}\n")
        tls = [f"--ssl-ca={link.ca}", "--ssl-verify-server-cert"] if link.ca else ["--skip-ssl"]
        return FullCopy(
            [
                str(client_program(request.installation, MARIADB_DUMP)),
                f"--defaults-file={options}",
                f"--host={link.host}",
                f"--port={link.port}",
                f"--user={to.user}",
                *tls,
                "--single-transaction",
                f"--result-file={request.target / 'dump.sql'}",
                to.database or "",
            ]
        )


class MysqlReplication(BinaryLogReplication):
    role = ("SOURCE", "REPLICA")
    change = "CHANGE REPLICATION SOURCE TO"
    log_status = "SHOW BINARY LOG STATUS"
    more_fields = ("GET_SOURCE_PUBLIC_KEY=1", "SOURCE_AUTO_POSITION=0")
    copied_by = "the clone plugin"
    link_settings = ("SOURCE_SSL=0", "SOURCE_SSL=1")

    def waiting_settings(self) -> dict[str, str]:
        return {
            "plugin-load-add": "semisync_source.so;semisync_replica.so;mysql_clone.so",
            "rpl-semi-sync-replica-enabled": "ON",
            "rpl-semi-sync-source-timeout": str(LONG_S),
        }

    def primary_end(self, primary: Ask, accepted: int) -> LinkEnd:  # noqa: ARG002
        rows = primary(
            "SELECT t.CONNECTION_TYPE, v.VARIABLE_VALUE, c.VARIABLE_VALUE FROM performance_schema.threads t "
            "LEFT JOIN performance_schema.status_by_thread v ON v.THREAD_ID = t.THREAD_ID AND v.VARIABLE_NAME = 'Ssl_version' "
            "LEFT JOIN performance_schema.status_by_thread c ON c.THREAD_ID = t.THREAD_ID AND c.VARIABLE_NAME = 'Ssl_cipher' "
            "WHERE t.PROCESSLIST_COMMAND LIKE 'Binlog Dump%' ORDER BY t.THREAD_ID DESC"
        )
        if not rows:
            return LinkEnd(None, "no replica is connected")
        kind, version, cipher = (str(value or "") for value in rows[0])
        words = " ".join(filter(None, (f"CONNECTION_TYPE of its dump thread: {kind}", version, cipher)))
        return LinkEnd(all(row[0] == "SSL/TLS" for row in rows), words, version, cipher)

    def full_copy(self, request: CopyRequest) -> FullCopy:
        """The copy goes to another directory, so that the replica goes on."""
        link, to = request.link, request.link.to
        tls = "REQUIRE SSL" if link.ca else "REQUIRE NO SSL"
        return FullCopy(
            statements=[
                f"SET GLOBAL clone_valid_donor_list = '{link.host}:{link.port}'",
                f"SET GLOBAL clone_ssl_ca = '{link.ca}'",
                (
                    f"CLONE INSTANCE FROM '{to.user}'@'{link.host}':{link.port} IDENTIFIED BY '{reveal(to.password)}' "
                    f"DATA DIRECTORY = '{request.target / 'clone'}' {tls}"
                ),
            ]
        )


def _number(file: str, position: int) -> int:
    """`binlog.000003` and a position in it as one number that only grows; 0: nothing is known."""
    number = file.rpartition(".")[2]
    return int(number) * FILE + position if number.isdecimal() else 0
