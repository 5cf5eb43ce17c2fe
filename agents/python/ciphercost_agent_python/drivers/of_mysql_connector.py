"""MySQL Connector/Python: by its extension in C if that can be loaded, as it is by default. Each connection blocks in its own thread."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import mysql.connector
from mysql.connector import errors

from ciphercost_agent_python import names, sql
from ciphercost_agent_python.drivers import _mysql
from ciphercost_agent_python.failure import Failure
from ciphercost_agent_python.link import Seen, seen_by
from ciphercost_agent_python.settings import VERSIONS
from ciphercost_agent_python.sql_link import Fetched, Prepared, SqlLink

UNSUPPORTED = 1295
"""The server can't prepare the statement."""


class ConnectorLink(SqlLink):
    mysql = True

    async def connect(self) -> Any:
        asked = self.settings
        asked.refuse_open_password()
        names.resolve(asked.host, asked.address)
        words = _mysql.words(asked)
        if asked.address and asked.address != words.get("host") and not words.get("use_pure"):
            words["use_pure"] = True  # the extension resolves names by itself
        if not asked.dsn:
            words |= self._tls() if asked.encrypts else {"ssl_disabled": True}
        return mysql.connector.connect(
            **{
                "charset": "utf8mb4",
                "autocommit": True,
                "connection_timeout": max(1, int(asked.seconds)),
                **words,
                "allow_local_infile": False,
            }
        )

    def _tls(self) -> dict[str, Any]:
        """The settings of TLS by the driver's own words."""
        asked = self.settings
        words: dict[str, Any] = {
            "ssl_disabled": False,
            "ssl_verify_cert": asked.tls != "require",
            "ssl_verify_identity": asked.tls == "verify-full",
        }
        if asked.tls_ca:
            words["ssl_ca"] = asked.tls_ca
        elif asked.tls != "require":
            raise Failure(
                "driver", "MySQL Connector/Python verifies a server only with a file of authorities: give --ca FILE"
            )
        if asked.identity:
            words |= {"ssl_cert": asked.identity, "ssl_key": asked.identity}
        if asked.tls_min or asked.tls_max:
            low, high = asked.tls_min or "1.2", asked.tls_max or "1.3"
            words["tls_versions"] = [VERSIONS[version] for version in ("1.2", "1.3") if low <= version <= high]
        if asked.tls_ciphers:
            words["tls_ciphersuites"] = asked.tls_ciphers.split(":")
        return words

    async def disconnect(self, connection: Any) -> None:
        connection.close()

    async def ready(self, prepared: Prepared) -> None:
        """A cursor for each statement: to make one is a round trip, since the driver pings the server first."""
        prepared.cursor = self.connection.cursor(prepared=self.settings.prepares)  # type: ignore[attr-defined]

    async def drop(self, prepared: Prepared) -> None:
        cursor, prepared.cursor = getattr(prepared, "cursor", None), None  # type: ignore[attr-defined]
        if cursor is not None:
            cursor.close()

    async def execute(self, prepared: Prepared, values: list[Any]) -> Fetched:
        if getattr(prepared, "cursor", None) is None:
            await self.ready(prepared)
        try:
            return self._run(prepared.cursor, prepared.sql, values)  # type: ignore[attr-defined]
        except errors.Error as error:
            if error.errno != UNSUPPORTED:
                raise
        await self.drop(prepared)
        prepared.cursor = self.connection.cursor()  # type: ignore[attr-defined]
        return self._run(prepared.cursor, prepared.sql, values)  # type: ignore[attr-defined]

    def _run(self, cursor: Any, text: str, values: list[Any]) -> Fetched:
        cursor.execute(text, tuple(values))
        rows = cursor.fetchall() if cursor.description else ()
        return cursor.column_names or (), rows

    async def control(self, kind: str) -> None:
        {
            sql.BEGIN: self.connection.start_transaction,
            sql.COMMIT: self.connection.commit,
            sql.ROLLBACK: self.connection.rollback,
        }[kind]()

    async def fetch(self, text: str) -> Fetched | None:
        with self.connection.cursor() as cursor:
            cursor.execute(text)
            return (cursor.column_names, cursor.fetchall()) if cursor.description else None

    def in_transaction(self) -> bool:
        return bool(self.connection.in_transaction)

    def is_lost(self, error: BaseException) -> bool:
        return isinstance(error, errors.Error) and (
            error.errno in _mysql.LOST or "Connection not available" in str(error)
        )

    def code(self, error: BaseException) -> str:
        if not isinstance(error, errors.Error) or not (error.errno or 0) >= 1000 or 2000 <= error.errno < 3000:
            return ""
        return f"{error.errno} ({error.sqlstate})" if error.sqlstate else str(error.errno)

    def tls(self) -> Seen | None:
        extension = getattr(self.connection, "_cmysql", None)
        if extension is not None:
            cipher = extension.get_ssl_cipher()
            return Seen(bool(cipher), "", cipher or "")
        return seen_by(getattr(getattr(self.connection, "_socket", None), "sock", None))

    def versions(self) -> tuple[str, str]:
        how = "C" if getattr(self.connection, "_cmysql", None) is not None else "pure Python"
        return str(self.connection.server_info), f"MySQL Connector/Python {mysql.connector.__version__} ({how})"

    def abort(self) -> None:
        """The extension has no way to end a connection from another thread: whoever waits for it is left behind."""
        threading.Thread(target=self._shut, daemon=True).start()

    def _shut(self) -> None:
        with contextlib.suppress(Exception):
            self.connection.shutdown()


LINK = ConnectorLink
