"""script_parts: what a script consists of: variables, statements, and the steps between them. Pure."""

from __future__ import annotations

import re

import msgspec

from ciphercost.load import sql_text
from ciphercost.load.request_message import Request
from ciphercost.load.sql_text import Token
from ciphercost.model.errors import UsageError

SEAL = "/*ciphercost:seal*/"
"""Marks the following variable: the agent is to seal it."""
OPEN = "/*ciphercost:open*/"
"""Marks the following column, an item of a SELECT list: the agent is to open it."""
SEALED = ".sealed"
"""Suffix of the name of a variable that contains another's value, sealed."""
BLIND = "/*ciphercost:blind"
"""Begins a mark of the following variable: the agent is to compute its entry in a blind index of so many bits, as in `…:blind64*/`."""

CLIENT_ID, RANDOM_SEED, DEFAULT_SEED = "client_id", "random_seed", "default_seed"
"""Variables that every script has: the number of the connection, the run's seed, and what hashes begin from."""
AUTOMATIC = ".automatic"
"""Suffix of the name of such a variable in a script that sets it to something else."""


def blind_name(name: str) -> str:
    """The name of the variable that holds another's entry in a blind index."""
    return f"{name}.blind"


class Variable(Request, frozen=True, tag="variable"):
    """A variable that the agent draws once per operation, and the message that names it."""

    name: str
    kind: str
    low: int | None = None
    high: int | None = None
    skew: float | None = None
    length: int | None = None
    value: str | None = None
    of: str | None = None
    """The variable whose value this one contains, sealed or as an entry of a blind index."""
    bits: int | None = None
    """Of an entry of a blind index: how many bits of the HMAC it has."""


class Statement(msgspec.Struct, frozen=True):
    sql: str
    parameters: tuple[str, ...]
    arm: str = ""
    """The only arm that runs it; empty: both arms."""
    open: bool = False
    """The agent opens sealed values in its rows."""
    headers: str = ""
    """Of a request: its own headers, one a line."""
    body: str | None = None
    """Of a request: its body as it is in a file. None: it is in the text, or there is none."""
    into: str | None = None
    r"""The prefix of the variables that get the columns of its row (`\gset`). None: none do."""
    every: bool = False
    r"""The last row counts, and there may be none (`\aset`)."""
    keep: str = ""
    """The variable whose value a row's opened value must have: the agent ignores the other rows. Empty: all count."""


KV = "kv"
"""The dialect of a key-value store's commands."""
_READING_COMMANDS = re.compile(
    r"(?:BITCOUNT|DBSIZE|ECHO|EXISTS|GET|GETBIT|GETRANGE|GETS|HEXISTS|HGET|HGETALL|HKEYS|HLEN|HMGET|"
    r"HSTRLEN|HVALS|LINDEX|LLEN|LPOS|LRANGE|MGET|PING|PTTL|SCARD|SDIFF|SINTER|SISMEMBER|SMEMBERS|"
    r"SMISMEMBER|STRLEN|SUNION|TTL|TYPE|VERSION|XLEN|XRANGE|ZCARD|ZCOUNT|ZRANGE|ZRANK|ZSCORE)\b",
    re.IGNORECASE,
)
"""Commands of key-value stores that change nothing."""


class FlowStep(msgspec.Struct, frozen=True):
    """What a script does between its statements, if it decides while it runs."""

    do: str
    """`set`, `if`, `elif`, `else`, `endif`, `sleep`, `startpipeline`, `syncpipeline` or `endpipeline`."""
    variable: str = ""
    """Of `set`."""
    expression: str = ""
    """In prefix form (`pgbench.expression.printed`); of `sleep` in microseconds."""


class Script(msgspec.Struct, frozen=True):
    variables: tuple[Variable, ...]
    statements: tuple[Statement, ...]
    dialect: str = ""
    """Whose SQL it is; empty: what all servers have in common."""
    flow: tuple[Statement | FlowStep, ...] = ()
    """Its statements among the steps between them, if it decides while it runs. Empty: its variables are drawn first, and then its
    statements run one after the other."""

    @property
    def decides(self) -> bool:
        """Whether its operations may run different statements."""
        return any(isinstance(item, FlowStep) and item.do == "if" for item in self.flow)

    @property
    def has_pipelines(self) -> bool:
        """Whether it sends statements without waiting for results."""
        return any(isinstance(item, FlowStep) and item.do == "startpipeline" for item in self.flow)

    @property
    def computes(self) -> bool:
        """Whether the agent must know steps and computed variables, beyond those that it draws."""
        return bool(self.flow) or any(variable.kind == "client" for variable in self.variables)

    @property
    def read_only(self) -> bool:
        """Whether every statement only reads, judging by its words."""
        if self.dialect == KV:
            return all(_READING_COMMANDS.match(statement.sql) is not None for statement in self.statements)
        return all(_reads(statement.sql, self.dialect) for statement in self.statements)


_READS = re.compile(r"\s*\(?\s*(select|values|table|show|with|get|head|clear\s+(get|head)|think)\b", re.IGNORECASE)
_WRITES = re.compile(r"\b(insert|update|delete|merge|into)\b", re.IGNORECASE)


def _reads(sql: str, dialect: str) -> bool:
    # A function that the statement calls may write, which no word of it shows.
    try:
        tokens = [
            token for token in sql_text.tokens(sql, dialect, "statement") if token.kind not in ("comment", "string")
        ]
    except UsageError:  # a command or a request, whose quotes are its own
        tokens = [Token("code", sql)]
    text = "".join(token.text for token in tokens)
    return _READS.match(text) is not None and not _WRITES.search(text)
