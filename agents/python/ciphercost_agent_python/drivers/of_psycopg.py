"""psycopg 3, over libpq. Each connection blocks in its own thread."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Any

import psycopg

from ciphercost_agent_python import scalar, sql
from ciphercost_agent_python.failure import Failure, statement
from ciphercost_agent_python.link import Seen
from ciphercost_agent_python.script import Script
from ciphercost_agent_python.settings import VERSIONS
from ciphercost_agent_python.sql_link import Fetched, Prepared, SqlLink

NO_FILE = "/nonexistent/ciphercost"
"""In place of the files that libpq would find in the home directory."""
PLAIN_METHODS = "scram-sha-256,md5,none"
"""Login methods that do not send the password itself."""


class PsycopgLink(SqlLink):
    async def connect(self) -> Any:
        connection = psycopg.connect(
            self._conninfo(), autocommit=True, prepare_threshold=0 if self.settings.prepares else 5
        )
        connection.adapters.register_dumper(float, _FloatDumper)
        connection.adapters.register_dumper(bool, _BoolDumper)
        return connection

    def _conninfo(self) -> str:
        """The connection string: an application's own, or these settings by libpq's words."""
        asked = self.settings
        try:
            words: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(asked.dsn)
        except psycopg.ProgrammingError as error:
            raise Failure("driver", str(error)) from None
        words |= {} if asked.dsn else {"dbname": asked.database}
        given = {
            "host": asked.host,
            "port": asked.port or "",
            "user": asked.user,
            "password": asked.password,
            "hostaddr": asked.address,
        }
        words |= {name: value for name, value in given.items() if value}
        if asked.dsn:
            if asked.database:
                words["dbname"] = asked.database
            return psycopg.conninfo.make_conninfo("", **words)
        words |= {
            "gssencmode": "disable",
            "sslmode": "disable" if asked.tls == "off" else asked.tls,
            "passfile": NO_FILE,
        }
        if asked.search_path:
            words["options"] = f"-c search_path={asked.search_path}".replace("\\", "\\\\").replace(", ", ",")
        if not asked.encrypts:
            if not asked.near:
                words["require_auth"] = PLAIN_METHODS
            return psycopg.conninfo.make_conninfo("", **words)
        words["sslrootcert"] = asked.tls_ca or (NO_FILE if asked.tls == "require" else "system")
        words |= {"sslcert": asked.identity, "sslkey": asked.identity} if asked.identity else {"sslcertmode": "disable"}
        for word, version in (("ssl_min_protocol_version", asked.tls_min), ("ssl_max_protocol_version", asked.tls_max)):
            if version:
                words[word] = VERSIONS[version]
        if asked.tls_at_once:
            words["sslnegotiation"] = "direct"
        if asked.channel_binding:
            words["channel_binding"] = asked.channel_binding
        return psycopg.conninfo.make_conninfo("", **words)

    async def disconnect(self, connection: Any) -> None:
        connection.close()

    def statement(self, script: Script, number: int, marked: sql.Marked) -> Prepared:
        prepared = super().statement(script, number, marked)
        prepared.sql = marked.sql.encode()  # type: ignore[assignment]  # psycopg takes bytes as they are
        return prepared

    async def ready(self, prepared: Prepared) -> None:
        """psycopg prepares a statement when it first runs; here an error of it shows before the load."""
        if self.settings.prepares:
            name = b"ciphercost_check"
            text = prepared.declared.sql.encode()
            result = self.connection.pgconn.prepare(name, text)
            if result.status != psycopg.pq.ExecStatus.COMMAND_OK:
                raise Failure(_state(result), result.error_message.decode(errors="replace"))
            self.connection.execute("DEALLOCATE ciphercost_check")

    async def execute(self, prepared: Prepared, values: list[Any]) -> Fetched:
        cursor = self.connection.execute(prepared.sql, values if prepared.declared.parameters else None)
        if cursor.description is None:
            return (), ()
        names = [column.name for column in cursor.description] if prepared.declared.into is not None else ()
        return names, cursor.fetchall()

    async def control(self, kind: str) -> None:
        self.connection.execute({sql.BEGIN: b"BEGIN", sql.COMMIT: b"COMMIT", sql.ROLLBACK: b"ROLLBACK"}[kind])

    async def fetch(self, text: str) -> Fetched | None:
        """By libpq itself, whose values are the server's texts."""
        result = self.connection.pgconn.exec_(text.encode())
        if result.status in (psycopg.pq.ExecStatus.FATAL_ERROR, psycopg.pq.ExecStatus.BAD_RESPONSE):
            lost = self.connection.pgconn.status != psycopg.pq.ConnStatus.OK
            raise Failure(
                _state(result) or "statement",
                result.error_message.decode(errors="replace").removeprefix("ERROR:").strip(),
                lost,
            )
        if result.status in (
            psycopg.pq.ExecStatus.COPY_IN,
            psycopg.pq.ExecStatus.COPY_OUT,
            psycopg.pq.ExecStatus.COPY_BOTH,
        ):
            raise statement("COPY is not a query")
        if not result.nfields:
            return None
        names = [(result.fname(column) or b"").decode() for column in range(result.nfields)]
        rows = [
            [
                None if (value := result.get_value(row, column)) is None else value.decode(errors="replace")
                for column in range(result.nfields)
            ]
            for row in range(result.ntuples)
        ]
        return names, rows

    def in_transaction(self) -> bool:
        return bool(self.connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE)

    def is_lost(self, error: BaseException) -> bool:
        return (self.connection is not None and self.connection.closed) or self.code(error).startswith("08")

    def code(self, error: BaseException) -> str:
        return getattr(error, "sqlstate", None) or (error.code if isinstance(error, Failure) else "")

    def tls(self) -> Seen:
        """psycopg says whether the session is encrypted, not with what."""
        return Seen(bool(self.connection.pgconn.ssl_in_use))

    def versions(self) -> tuple[str, str]:
        server = (self.connection.info.parameter_status("server_version") or "").partition(" ")[0]
        number = psycopg.pq.version()
        return (
            server,
            f"psycopg {psycopg.__version__} ({psycopg.pq.__impl__}), libpq {number // 10000}.{number % 10000}",
        )

    def abort(self) -> None:
        with contextlib.suppress(Exception):
            socket.socket(fileno=os.dup(self.connection.pgconn.socket)).shutdown(socket.SHUT_RDWR)


class _FloatDumper(psycopg.types.numeric.FloatDumper):
    """Without a type, so that the server uses the column's, as pgbench sends numbers."""

    oid = 0

    def dump(self, obj: float) -> bytes:
        return scalar.text(obj).encode()


class _BoolDumper(psycopg.types.bool.BoolDumper):
    oid = 0

    def dump(self, obj: bool) -> bytes:
        return b"true" if obj else b"false"


def _state(result: Any) -> str:
    return (result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"").decode()


LINK = PsycopgLink
