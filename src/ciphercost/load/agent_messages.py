"""agent_messages: the messages between the controller and an agent, one type each, and what an answer's texts hold (PROTOCOL.md).

`connect` and its answer are in `model/connection.py`, a variable in `script.py`, a slice's answer in `model/slices.py`. A field without a default is always
sent, one with its default never. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Literal, NamedTuple

import msgspec

from ciphercost.host import deadlines
from ciphercost.load import script_parts
from ciphercost.load.pgbench.expression import with_prefix
from ciphercost.load.program import Program
from ciphercost.load.request_message import Request
from ciphercost.model.connection import Connection, Pool
from ciphercost.model.secret import Secret, encoded
from ciphercost.model.spec import Draw, QueryMode

COPY_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
"""What COPY's escape letters stand for."""
MARGIN = 30.0
"""Seconds that an agent gets beyond a request's own deadline, so that it can report that the server missed it."""


class Reply(NamedTuple):
    """What a server answered to one query."""

    columns: tuple[str, ...]
    rows: list[list[str | None]]
    """As texts; None: NULL."""


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Hello(Request, frozen=True, tag="hello"):
    protocol: int


class Begin(Request, frozen=True, tag="program"):
    """A new, empty program."""

    name: str
    mode: QueryMode = "prepared"
    tries: int = 0
    """How often an operation may be tried if it fails for a conflict with others; 0: once."""
    draw: Draw = "random"


class Cipher(Request, frozen=True, tag="cipher"):
    """The cipher and key that seal the program's values."""

    name: str
    key: Secret
    blind: Secret | None = None
    """The key of the blind index; None: there is none."""


class Transaction(Request, frozen=True, tag="transaction"):
    name: str
    weight: int


class Statement(Request, frozen=True, tag="statement"):
    transaction: str
    sql: str
    parameters: str
    """Names, separated by spaces."""
    arm: str | None = None
    """The only arm that runs it. None: both."""
    open: bool = False
    headers: str = ""
    body: str | None = None
    into: str | None = None
    every: bool = False
    keep: str = ""
    """The variable whose value an opened value must have for its row to count; empty: all rows count."""


class Step(Request, frozen=True, tag="step"):
    """What a transaction does between its statements."""

    transaction: str
    do: str
    arm: str | None = None
    variable: str | None = None
    expression: str | None = None


class Query(Request, frozen=True, tag="query"):
    arm: str
    sql: str
    timeout: float
    all: bool = False
    """Whether it runs on every connection of the arm."""


class Slice(Request, frozen=True, kw_only=True, tag="slice"):
    arm: str
    seconds: float
    discard: float
    seed: int
    rate: float = 0.0
    operations: int = 0
    arrivals: Literal["even", "random"] = "even"
    gaps_us: str | None = None
    """Microseconds between the times at which operations of an open loop are due. Only the Rust agent takes them."""
    timeout: float


class Floor(Request, frozen=True, tag="floor"):
    cipher: str
    bytes: int
    unit: int
    mac: str = ""


class Disconnect(Request, frozen=True, tag="disconnect"):
    arm: str


Message = Request | Pool


def line(message: Message) -> bytes:
    """The line that an agent reads, with the secrets of the message.

    msgspec leaves out a default only if it is the very object, and a message that another process has sent holds equal ones.
    """
    equal = {name: usual for name, usual in _defaults(type(message)) if getattr(message, name) == usual}
    message = msgspec.structs.replace(message, **equal)
    return msgspec.json.encode(message, enc_hook=encoded) + b"\n"


@cache
def _defaults(kind: type[Message]) -> list[tuple[str, object]]:
    return [
        (field.name, field.default) for field in msgspec.structs.fields(kind) if field.default is not msgspec.NODEFAULT
    ]


def connection_of(line: bytes) -> Connection:
    """The `connect` of an agent's line. Raises msgspec.DecodeError."""
    return msgspec.json.decode(line, type=Connection, dec_hook=lambda _, text: Secret(text))


def connect_message(arm: str, pool: Pool) -> Pool:
    """The message that opens an arm's connections."""
    timeout = deadlines.login() if pool.timeout is None else pool.timeout
    return msgspec.structs.replace(pool, arm=arm, timeout=timeout)


def connect_seconds(pool: Pool) -> float:
    """Seconds until an agent must have answered it."""
    return deadlines.connections(pool.connections) + MARGIN


def query_message(arm: str, sql: str, *, everywhere: bool = False, timeout: float | None = None) -> Query:
    """`timeout`: seconds until the whole answer has arrived; None: a witness's."""
    return Query(arm, sql, deadlines.query() if timeout is None else timeout, everywhere)


def program_messages(program: Program) -> Iterator[Request]:
    """The messages that tell an agent a program."""
    yield Begin(program.name, program.mode, program.tries, program.draw)
    if program.key:
        yield Cipher("aes256-gcm", program.key, program.blind_key)
    for number, (_, weight, script) in enumerate(program.transactions):
        # Two transactions may use the same variable name, so each transaction gets its own prefix.
        prefix = f"t{number}."
        for variable in script.variables:
            of = prefix + variable.of if variable.of else None
            yield msgspec.structs.replace(variable, name=prefix + variable.name, of=of)
        yield Transaction(f"t{number}", weight)
        for item in script.flow or script.statements:
            yield _message(item, f"t{number}", prefix)


def _message(item: script_parts.Statement | script_parts.FlowStep, transaction: str, prefix: str) -> Request:
    """A statement or a step. `prefix`: precedes the names of the transaction's variables."""
    if isinstance(item, script_parts.FlowStep):
        return Step(
            transaction=transaction,
            do=item.do,
            variable=prefix + item.variable if item.variable else None,
            expression=with_prefix(item.expression, prefix) if item.expression else None,
        )
    return Statement(
        transaction=transaction,
        sql=item.sql,
        parameters=" ".join(prefix + name for name in item.parameters),
        arm=item.arm or None,
        open=item.open,
        headers=item.headers,
        body=item.body,
        into=None if item.into is None else prefix + item.into,
        every=item.every,
        keep=prefix + item.keep if item.keep else "",
    )


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Answer(msgspec.Struct, frozen=True, tag_field="type"):
    """An agent's answer."""


class Ok(Answer, frozen=True, tag="ok"):
    pass


class Failed(Answer, frozen=True, tag="error"):
    code: str = "agent"
    text: str = ""


class HelloAnswer(Answer, frozen=True, tag="hello"):
    protocol: int = 0
    agent: str = ""
    version: str = ""
    drivers: str = ""
    tls_library: str = ""
    aes: bool = False
    """Whether its OpenSSL uses the CPU's AES instructions."""


class Rows(Answer, frozen=True, tag="rows"):
    rows: int
    columns: str
    text: str


class FloorAnswer(Answer, frozen=True, tag="floor"):
    ns_per_byte_seal: float
    ns_per_byte_open: float
    cipher: str = ""
    bytes: int = 0
    library: str = ""


def reply_of(answer: Rows) -> Reply:
    """The columns and rows of an answer to `query`."""
    return Reply(tuple(answer.columns.split("\t")) if answer.columns else (), rows_of(answer))


def rows_of(answer: Rows) -> list[list[str | None]]:
    """The rows of an answer to `query`."""
    if not answer.rows:
        return []
    return [[_unescape(value) for value in row.split("\t")] for row in answer.text.split("\n")]


def _unescape(value: str) -> str | None:
    if value == "\\N":
        return None
    if "\\" not in value:
        return value
    return re.sub(r"\\(.)", lambda match: COPY_LETTERS.get(match[1], match[1]), value, flags=re.DOTALL)
