"""PyMySQL, which is pure Python. It sends statements as texts with their values. Each connection blocks in its own thread."""

from __future__ import annotations

import contextlib
import socket
from importlib import metadata
from typing import Any

import pymysql

from ciphercost_agent_python import names, sql
from ciphercost_agent_python.drivers import _mysql
from ciphercost_agent_python.link import Seen, seen_by
from ciphercost_agent_python.sql_link import Fetched, Prepared, SqlLink


class PymysqlLink(SqlLink):
    mysql = True

    async def connect(self) -> Any:
        asked = self.settings
        asked.refuse_open_password()
        names.resolve(asked.host, asked.address)
        words = _mysql.words(asked)
        if not asked.dsn:
            words |= {"ssl": asked.context()} if asked.encrypts else {"ssl_disabled": True}
        return pymysql.connect(
            **{
                "charset": "utf8mb4",
                "autocommit": True,
                "connect_timeout": max(1, int(asked.seconds)),
                **words,
                "local_infile": False,
            }
        )

    async def disconnect(self, connection: Any) -> None:
        connection._force_close()

    async def ready(self, prepared: Prepared) -> None:
        """PyMySQL prepares nothing."""

    async def execute(self, prepared: Prepared, values: list[Any]) -> Fetched:
        with self.connection.cursor() as cursor:
            cursor.execute(prepared.sql, values if prepared.declared.parameters else None)
            rows = cursor.fetchall()
            return [column[0] for column in cursor.description or ()], rows

    async def control(self, kind: str) -> None:
        {sql.BEGIN: self.connection.begin, sql.COMMIT: self.connection.commit, sql.ROLLBACK: self.connection.rollback}[
            kind
        ]()

    async def fetch(self, text: str) -> Fetched | None:
        with self.connection.cursor() as cursor:
            cursor.execute(text)
            return ([column[0] for column in cursor.description], cursor.fetchall()) if cursor.description else None

    def in_transaction(self) -> bool:
        return True  # a rollback outside of a transaction does nothing

    def is_lost(self, error: BaseException) -> bool:
        number = error.args[0] if isinstance(error, pymysql.MySQLError) and error.args else 0
        closed = self.connection is not None and not self.connection.open
        return closed or number in _mysql.LOST or isinstance(error, pymysql.InterfaceError)

    def code(self, error: BaseException) -> str:
        """The server's number; PyMySQL passes on no SQLSTATE. Its own numbers are from 2000 to 2999."""
        number = error.args[0] if isinstance(error, pymysql.MySQLError) and error.args else 0
        return str(number) if isinstance(number, int) and (1000 <= number < 2000 or number >= 3000) else ""

    def tls(self) -> Seen | None:
        return seen_by(self.connection._sock)

    def versions(self) -> tuple[str, str]:
        return (
            self.connection.get_server_info(),
            f"PyMySQL {metadata.version('PyMySQL')}",
        )  # `__version__` is that of the driver that it replaces

    def abort(self) -> None:
        with contextlib.suppress(Exception):
            self.connection._sock.shutdown(socket.SHUT_RDWR)


LINK = PymysqlLink
