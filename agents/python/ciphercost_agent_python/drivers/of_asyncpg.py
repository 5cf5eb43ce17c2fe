"""asyncpg. All connections are coroutines of one event loop."""

from __future__ import annotations

import contextlib
import datetime
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import asyncpg

from ciphercost_agent_python import names, scalar, sql
from ciphercost_agent_python.link import Seen, seen_by
from ciphercost_agent_python.sql_link import Fetched, Prepared, SqlLink


def _text(value: Any) -> str:
    if isinstance(value, float):
        return scalar.text(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


CONVERTED: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("int2", "int4", "int8", "oid"), int),
    **dict.fromkeys(("float4", "float8"), float),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "char", "unknown", "json", "jsonb", "xml"), _text),
    "numeric": lambda value: Decimal(_text(value)),
    "bool": lambda value: _text(value).lower() in ("t", "true", "1", "yes", "on"),
    "bytea": lambda value: _text(value).encode(),
    "uuid": lambda value: uuid.UUID(_text(value)),
    "date": lambda value: datetime.date.fromisoformat(_text(value)),
    **dict.fromkeys(("timestamp", "timestamptz"), lambda value: datetime.datetime.fromisoformat(_text(value))),
    **dict.fromkeys(("time", "timetz"), lambda value: datetime.time.fromisoformat(_text(value))),
}
"""By a parameter's type in PostgreSQL: the value that asyncpg takes for it. asyncpg converts none by itself."""


class AsyncpgLink(SqlLink):
    waits = True
    mark = staticmethod(lambda number: f"${number}")
    percent = False

    async def connect(self) -> Any:
        asked = self.settings
        asked.refuse_open_password()
        names.resolve(asked.host, asked.address)
        words: dict[str, Any] = {"timeout": asked.seconds, **asked.given}
        if asked.dsn:
            return await asyncpg.connect(asked.dsn, **words)
        words["ssl"] = asked.context() if asked.encrypts else False
        if asked.search_path:
            words["server_settings"] = {"search_path": asked.search_path}
        return await asyncpg.connect(**words)

    async def disconnect(self, connection: Any) -> None:
        connection.terminate()

    async def ready(self, prepared: Prepared) -> None:
        statement = await self.connection.prepare(prepared.sql)
        prepared.statement = statement  # type: ignore[attr-defined]
        kinds = [kind.name for kind in statement.get_parameters()]
        prepared.convert = [CONVERTED.get(kind) for kind in kinds]  # type: ignore[attr-defined]

    async def drop(self, prepared: Prepared) -> None:
        prepared.statement = None  # type: ignore[attr-defined]

    async def execute(self, prepared: Prepared, values: list[Any]) -> Fetched:
        if getattr(prepared, "statement", None) is None:
            await self.ready(prepared)
        statement: Any = prepared.statement  # type: ignore[attr-defined]
        given: list[Any] = []
        for convert, value in zip(prepared.convert, self._once(prepared, values), strict=True):  # type: ignore[attr-defined]
            given.append(value if value is None or convert is None else convert(value))
        rows = await statement.fetch(*given)
        if prepared.declared.into is None:
            return (), rows
        return [attribute.name for attribute in statement.get_attributes()], rows

    def _once(self, prepared: Prepared, values: list[Any]) -> list[Any]:
        """The values by the numbers of their marks: asyncpg's are the server's own, and one may stand twice."""
        by_variable = dict(zip(prepared.variables, values, strict=True))
        return [by_variable[variable] for variable in prepared.declared.parameters if variable in by_variable]

    async def control(self, kind: str) -> None:
        await self.connection.execute({sql.BEGIN: "BEGIN", sql.COMMIT: "COMMIT", sql.ROLLBACK: "ROLLBACK"}[kind])

    async def fetch(self, text: str) -> Fetched | None:
        statement = await self.connection.prepare(text, name="")
        columns = statement.get_attributes()
        rows = await statement.fetch()
        return ([column.name for column in columns], rows) if columns else None

    def in_transaction(self) -> bool:
        return bool(self.connection.is_in_transaction())

    def is_lost(self, error: BaseException) -> bool:
        closed = self.connection is not None and self.connection.is_closed()
        return closed or isinstance(error, OSError | EOFError) or self.code(error).startswith("08")

    def code(self, error: BaseException) -> str:
        return getattr(error, "sqlstate", None) or ""

    def tls(self) -> Seen | None:
        transport = getattr(self.connection, "_transport", None)
        if transport is None:
            return None
        return seen_by(transport.get_extra_info("ssl_object"))

    def versions(self) -> tuple[str, str]:
        version = self.connection.get_settings().server_version.partition(" ")[0]
        return version, f"asyncpg {asyncpg.__version__}"

    def abort(self) -> None:
        """Called in another thread."""
        connection = self.connection
        if connection is not None:
            with contextlib.suppress(Exception):
                connection._loop.call_soon_threadsafe(connection.terminate)


LINK = AsyncpgLink
