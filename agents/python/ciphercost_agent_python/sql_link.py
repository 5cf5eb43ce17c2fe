"""A connection of a driver: how it runs operations and queries, whatever the driver."""

from __future__ import annotations

import contextlib
import marshal
import re
import ssl
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from ciphercost_agent_python import clock, sql
from ciphercost_agent_python.failure import Failure, statement
from ciphercost_agent_python.link import Link, Rows, Seen
from ciphercost_agent_python.program import Statement
from ciphercost_agent_python.script import END, SLEEP, Operation, Script
from ciphercost_agent_python.settings import Settings

QUERY_LIMIT = 16 << 20
NOT_SERIALIZED = ("40001", "40P01")
"""SQLSTATEs of operations that may succeed if they are begun again: a serialization failure, a deadlock."""
TRUE = ("t", "true", "1", "yes", "on")
HIDDEN = "[password]"
SHORTEST_SECRET = 4
Fetched = tuple[Sequence[str], Sequence[Sequence[Any]]]
"""The columns' names and the rows of a result."""


class Prepared:
    """A statement of a script as one connection runs it. A driver's own class runs it with values."""

    def __init__(self, script: Script, number: int, marked: sql.Marked) -> None:
        self.declared: Statement = script.statements[number]
        self.kind = sql.kind(self.declared.sql)
        self.sql = marked.sql
        self.variables = tuple(self.declared.parameters[at] for at in marked.order)
        self._script = script
        self.targets: list[tuple[int, int]] | None = None
        """(column, variable) of the values that go to variables. None: not known yet."""

    def targets_of(self, columns: Sequence[str]) -> list[tuple[int, int]]:
        if self.targets is None:
            assert self.declared.into is not None
            found = [self._script.variable_for(self.declared.into.prefix, name) for name in columns]
            self.targets = [(column, variable) for column, variable in enumerate(found) if variable >= 0]
        return self.targets


class SqlLink(Link):
    """One connection of a driver."""

    mysql = False
    mark: Callable[[int], str] = staticmethod(lambda _: "%s")
    percent = True
    """Whether the driver reads `%` in a statement."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.settings = settings
        self.connection: Any = None
        self.seen = Seen(False)
        self._script: Script | None = None
        self._ready: list[Prepared] = []
        self._setup = sql.split(settings.setup, mysql=self.mysql)

    # ── what a driver does ────────────────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    async def connect(self) -> Any:
        """Open a connection, as the settings ask."""

    @abstractmethod
    async def disconnect(self, connection: Any) -> None:
        """End it, without waiting for the server."""

    @abstractmethod
    async def ready(self, prepared: Prepared) -> None:
        """Prepare a statement once, if the driver does so."""

    async def drop(self, prepared: Prepared) -> None:
        """Forget a prepared statement."""

    @abstractmethod
    async def execute(self, prepared: Prepared, values: list[Any]) -> Fetched:
        """Run a statement with these values and read its rows."""

    @abstractmethod
    async def control(self, kind: str) -> None:
        """Begin or end a transaction."""

    @abstractmethod
    async def fetch(self, text: str) -> Fetched | None:
        """Run one statement without parameters. None: it returns no rows."""

    @abstractmethod
    def in_transaction(self) -> bool: ...

    @abstractmethod
    def is_lost(self, error: BaseException) -> bool: ...

    @abstractmethod
    def code(self, error: BaseException) -> str:
        """The server's own code; empty: it has none."""

    def tls(self) -> Seen | None:
        """What the driver itself says of its session, as far as it can: empty texts are what it can't."""
        return None

    @abstractmethod
    def versions(self) -> tuple[str, str]:
        """(the server's version, the driver's and that of the library below it)."""

    # ── the connection ────────────────────────────────────────────────────────────────────────────────────────────────

    def failure(self, error: BaseException, otherwise: str, before: str = "") -> Failure:
        """The reason of a driver's exception, in one line, without the connection's passwords."""
        parts: list[str] = []
        tls = False
        cause: BaseException | None = error
        while cause is not None and len(parts) < 8:
            said = " ".join(str(cause).split())
            tls = tls or _is_tls(cause, said)
            if said and not any(said in part for part in parts):
                parts.append(said)
            cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
        text = " ← ".join(parts) or type(error).__name__
        for secret in {self.settings.password} - {""}:
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, HIDDEN)
        text = re.sub(r"(//[^/@:\s]*:)[^/@\s]+@", rf"\1{HIDDEN}@", text)
        lost = self.is_lost(error)
        code = self.code(error) or ("tls" if tls else "connect" if lost else otherwise)
        return Failure(code, before + text[:900], lost)

    async def login(self) -> Any:
        """A connection that has run `setup`. Raises Failure."""
        try:
            connection = await self.connect()
        except Failure:
            raise
        except Exception as error:
            # A driver raises these for words of its string that it does not know; an error of TLS is an OSError too.
            words = isinstance(error, TypeError | ValueError | AttributeError) and not isinstance(error, OSError)
            failure = self.failure(error, "driver" if self.settings.dsn and words else "connect")
            raise Failure(failure.code, str(failure)) from None
        self.connection = connection
        try:
            for text in self._setup:
                await self.fetch(text)
        except Exception as error:
            failure = self.failure(error, "statement", "setup: ")
            await self._leave()
            raise Failure(failure.code, str(failure)) from None
        return connection

    async def open(self) -> Seen:
        """Log in, and find out how the session is encrypted. Raises Failure."""
        await self.login()
        await self.witness()
        return self.seen

    async def witness(self) -> None:
        """Ask the driver, and where it can't say, the server."""
        own, row = self.tls(), None
        if self.settings.witness:
            try:
                found = await self.fetch(self.settings.witness)
            except Exception as error:
                raise self.failure(error, "statement", "witness: ") from None
            if found is None or len(found[1]) != 1 or len(found[0]) != 3:
                raise statement("witness: must return one row: encrypted, protocol, cipher")
            encrypted, *names = (as_text(value) or "" for value in found[1][0])
            row = Seen(encrypted.strip().lower() in TRUE, *names)
        if own is None:
            self.seen = row or Seen(False)
            return
        if row is not None and row.encrypted != own.encrypted:
            said = {True: "encrypted", False: "not encrypted"}
            raise Failure(
                "tls",
                f"the driver has a session that is {said[own.encrypted]}, the server one that is {said[row.encrypted]}",
            )
        if own.encrypted and row is not None:
            own = Seen(True, own.protocol or row.protocol, own.cipher or row.cipher)
        self.seen = own

    async def _leave(self) -> None:
        """End the connection of one operation, or this link's."""
        connection, self.connection = self.connection, None
        await self._drop_all()
        if connection is not None:
            with contextlib.suppress(Exception):
                await self.disconnect(connection)

    async def close(self) -> None:
        await self._leave()

    # ── slices ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def prepare(self, script: Script, *, open_loop: bool) -> None:  # noqa: ARG002
        if script.mode != "prepared":
            raise statement(f"{self.settings.driver}: no statements travel in mode {script.mode}")
        if script.has_pipelines:
            raise statement(f"{self.settings.driver}: no pipelines here")
        if not self.settings.per_request:
            await self.witness()
        if not script.runs_as(self._script):
            self._script = None
            await self._forget()
            self._ready = [
                self.statement(
                    script,
                    number,
                    sql.marked(each.sql, len(each.parameters), self.mark, mysql=self.mysql, percent=self.percent),
                )
                for number, each in enumerate(script.statements)
            ]
            if not self.settings.per_request:
                try:
                    for prepared in self._ready:
                        if prepared.kind == sql.OTHER:
                            await self.ready(prepared)
                except Exception as error:
                    await self._forget()
                    raise error if isinstance(error, Failure) else self.failure(error, "statement") from None
        self._script = script

    def statement(self, script: Script, number: int, marked: sql.Marked) -> Prepared:
        return Prepared(script, number, marked)

    async def _drop_all(self) -> None:
        for prepared in self._ready:
            with contextlib.suppress(Exception):
                await self.drop(prepared)

    async def _forget(self) -> None:
        await self._drop_all()
        self._ready = []

    async def run(self, operation: Operation) -> None:
        self.outcome.clear()
        try:
            if self.settings.per_request:
                await self.login()
                self.connects += 1
            while True:
                try:
                    await self._steps(operation)
                    return
                except Exception as error:
                    if not self._may_try_again(error):
                        raise
                self.outcome.restart()
                await self._roll_back()
                operation.draw_again()
        except Failure as failure:
            await self._failed(failure)
        except Exception as error:
            await self._failed(self.failure(error, "statement"))
        finally:
            if self.settings.per_request:
                await self._leave()

    async def _steps(self, operation: Operation) -> None:
        while (number := operation.advance()) != END:
            if number == SLEEP:
                ns = operation.sleep_us * 1000
                self.outcome.thought_ns += ns
                self.awake_ns = clock.now() + ns
                await self.pause(self.awake_ns)
                continue
            prepared = self._ready[number]
            if prepared.kind != sql.OTHER:
                await self.control(prepared.kind)
                continue
            columns, rows = await self.execute(prepared, [operation.parameter(each) for each in prepared.variables])
            if rows:
                self.outcome.rows += len(rows)
                self.outcome.checksum += sum(map(hashed, rows))
            if prepared.declared.into is not None:
                self._into(prepared, columns, rows, operation)

    def _into(
        self, prepared: Prepared, columns: Sequence[str], rows: Sequence[Sequence[Any]], operation: Operation
    ) -> None:
        assert prepared.declared.into is not None
        if not prepared.declared.into.every and len(rows) != 1:
            raise statement(f"\\gset: expected one row, got {len(rows)}")
        for row in rows[-1:]:
            for column, variable in prepared.targets_of(columns):
                operation.values[variable] = as_text(row[column])

    def _may_try_again(self, error: Exception) -> bool:
        assert self._script is not None
        state = "" if isinstance(error, Failure) else self.code(error)
        again = any(state == each or state.endswith(f"({each})") for each in NOT_SERIALIZED)
        return again and self.outcome.retries + 1 < self._script.tries

    async def _failed(self, failure: Failure) -> None:
        """The operation has failed. A lost connection fails the slice, unless each operation has its own."""
        self.outcome.rows = self.outcome.checksum = 0
        self.outcome.error = failure
        if self.settings.per_request:
            return
        if failure.lost:
            raise failure
        await self._roll_back()

    async def _roll_back(self) -> None:
        try:
            if self.connection is not None and self.in_transaction():
                await self.control(sql.ROLLBACK)
        except Exception as error:
            failure = self.failure(error, "connect")
            raise Failure(failure.code, str(failure), lost=True) from None

    # ── queries ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def query(self, text: str) -> Rows:
        own = self.connection is None
        answer: Fetched = ((), ())
        try:
            if own:
                await self.login()
            for each in sql.split(text, mysql=self.mysql):
                if (kind := sql.kind(each)) != sql.OTHER:
                    await self.control(kind)
                elif (found := await self.fetch(each)) is not None:
                    answer = found
        except Failure:
            raise
        except Exception as error:
            failure = self.failure(error, "statement")
            if not failure.lost:
                await self._roll_back()
            raise failure from None
        finally:
            if own:
                await self._leave()
        return _rows(*answer)


def _rows(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Rows:
    lines = []
    size = 0
    for row in rows:
        lines.append("\t".join(map(_escaped, row)))
        size += len(lines[-1])
        if size > QUERY_LIMIT:
            raise statement("the result exceeds 16 MiB")
    return Rows(len(lines), "\t".join(columns), "\n".join(lines))


def _escaped(value: Any) -> str:
    """A value's text as in `COPY`."""
    text = as_text(value)
    if text is None:
        return "\\N"
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def as_text(value: Any) -> str | None:
    """A value of a row as a text. None: NULL."""
    match value:
        case None:
            return None
        case bool():
            return "t" if value else "f"
        case bytes() | bytearray() | memoryview():
            return bytes(value).decode(errors="replace")
        case float():
            return repr(value).removesuffix(".0")
    return str(value)


def hashed(row: Sequence[Any]) -> int:
    """The hash of a row's values, the same in every process whose hashes have no seed of their own."""
    try:
        return hash(marshal.dumps(tuple(row), 2))
    except ValueError:  # values that are no numbers, texts or bytes
        return hash(repr(tuple(row)))


def _is_tls(error: BaseException, text: str) -> bool:
    """Whether a failure is one of TLS, by its class or, where a library has only texts, by its text."""
    if isinstance(error, ssl.SSLError):
        return True
    return bool(re.search(r"\bSSL\b|\bTLS\b|certificate", text, re.IGNORECASE)) and not re.search(
        r"SSL off|no encryption\b", text
    )
