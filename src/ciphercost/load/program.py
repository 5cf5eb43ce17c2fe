"""What the agent is given: an arm's statements and their weights, and the statements that fill the arm's tables."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from ciphercost.load import script
from ciphercost.load.codec import PLAIN, Codec
from ciphercost.load.script_parts import AUTOMATIC, DEFAULT_SEED, RANDOM_SEED, Script, Variable
from ciphercost.model.secret import Secret
from ciphercost.model.slices import Arrivals
from ciphercost.model.spec import Draw, QueryMode
from ciphercost.model.traffic import Arrived, Bin

BATCH = 100_000
"""Rows per statement of a load. One transaction of 5,000,000 rows would fill some servers' logs and memory."""
_BATCHED = re.compile(r":first\b")
_EACH = re.compile(r":row\b")
THINK = "THINK "
"""How a wait begins that stands among the statements of a script."""
TOGETHER = 256 * 1024
"""Characters of statements for one row each that are sent together, unless a single one is longer."""


def default_seed(seed: int) -> int:
    """What hashes and permutations begin from where a script names no seed: a number of 64 bits, the same in both arms."""
    return int.from_bytes(hashlib.sha256(f"default_seed {seed}".encode()).digest()[:8], "big", signed=True)


class Step(NamedTuple):
    """One statement of a load, and its name for error messages: the statement itself, or lines of a file."""

    sql: str
    where: str


class Load:
    """The statements of a load, generated again in each iteration. Of millions of rows, only one batch is in memory."""

    def __init__(
        self, text: str, parameters: Mapping[str, int | str], where: str, more: Callable[[], Iterable[str]] = tuple
    ) -> None:
        """`more`: generates the statements that follow those of `text`. Raises UsageError for an unknown parameter."""
        self._parts = [part for piece in text.split(";\n") if (part := piece.strip())]
        self._parameters = parameters
        self._where = where
        self._more = more
        for part in self._parts:
            self._fill(part, 1)

    def __iter__(self) -> Iterator[Step]:
        for part in self._parts:
            if _EACH.search(part):
                yield from self._row_by_row(part)
                continue
            rows = int(self._parameters.get("rows", 0)) if _BATCHED.search(part) else 1
            for first in range(1, rows + 1, BATCH):
                sql = self._fill(part, first)
                yield Step(sql, sql)
        for sql in self._more():
            yield Step(sql, sql)

    def _row_by_row(self, part: str) -> Iterator[Step]:
        """A statement for each row, as many together as TOGETHER allows."""
        rows = int(self._parameters.get("rows", 0))
        held: list[str] = []
        length = 0
        for row in range(1, rows + 1):
            held.append(self._fill(part, row))
            length += len(held[-1])
            if length > TOGETHER or row == rows:
                yield Step(";\n".join(held), held[0])
                held, length = [], 0

    def _fill(self, part: str, first: int) -> str:
        last = min(first + BATCH - 1, int(self._parameters.get("rows", 0)))
        known: dict[str, int | str] = dict(self._parameters)
        if _BATCHED.search(part):
            known |= {"first": first, "last": last}
        if _EACH.search(part):
            known |= {"row": first, "filler": "x" * int(self._parameters.get("size", 0))}
        return script.fill(part, known, self._where)


class Tables(msgspec.Struct, frozen=True):
    """How to fill and read an arm's tables."""

    load: Iterable[Step]
    """Can be iterated more than once; may be too long to hold in memory."""
    check: str
    codec: Codec = PLAIN
    """Reads the rows of `check` where the application itself opens them."""

    def read(self, rows: list[list[str | None]]) -> list[list[str | None]]:
        """Return the check's rows as texts. Raises AgentError if a sealed value does not open."""
        return [[self.codec.read(value) for value in row] for row in rows]


class SecretColumn(msgspec.Struct, frozen=True):
    """A secret column of a table of the user's rows, for questions to the server about what it stores."""

    table: str
    name: str
    """In SQL."""
    title: str
    """In the user's data."""
    blind: str
    """The column with its blind index; empty: there is none."""
    bits: int
    """Of the entries of the blind index."""
    bytes_length: str
    """SQL for the number of bytes of a stored value, which stands for {}."""
    beginning: str
    """The same for its first bytes."""


class Program(msgspec.Struct, frozen=True):
    """A workload prepared for one server, with all parameters filled in."""

    name: str
    load: Iterable[Step]
    """Can be iterated more than once; may be too long to hold in memory."""
    check: str
    transactions: tuple[tuple[str, int, Script], ...]
    read_only: bool
    per_request: bool
    clients: int
    parameters: dict[str, int | str]
    operation: str = ""
    """The operator's task of which one slice is one execution; empty: a slice is many operations."""
    replication: Mapping[str, str] = {}
    """Statements for what is measured of a replica; empty: the cell has none."""
    backlog: tuple[tuple[str, int, Script], ...] = ()
    """The same changes as those of its transactions, which wait for no replica."""
    sealed: Tables | None = None
    """The encrypted arm's tables, if its statements encrypt its secrets; None: both arms have the same tables."""
    documents: dict[str, int] = {}
    """For a web server: path -> size in bytes."""
    key: Secret | None = None
    """The agent's key for sealing and opening, in hexadecimal digits. Only the agent gets it; no record contains it."""
    blind_key: Secret | None = None
    """The agent's key for a blind index, in the same form."""
    arrivals: Arrivals = "even"
    """When requests of an open loop are due."""
    arrived: Arrived | None = None
    """How they came, if they are due as they came in a log."""
    think_s: float = 0.0
    """Average think time of an operation in an open loop, in seconds."""
    values: dict[str, float] = {}
    """Secret values that an operation seals, opens and searches for on average: `sealed`, `opened`, `searched`. Empty: unknown."""
    creates: bool = True
    """Whether `load` has statements. False: it runs on whatever the server already has, such as your own tables."""
    mode: QueryMode = "prepared"
    """How its statements travel."""
    tries: int = 0
    """How often an operation may be tried that fails for a conflict with others; 0: once."""
    asks_scale: bool = False
    """The scale of pgbench's tables on the user's server must be found before it runs; until then it is taken for 1."""
    data: str = ""
    """Name of its data, if it shares them with other workloads; empty: they are the workload's own."""
    secrets: tuple[SecretColumn, ...] = ()
    """The user's own secret columns."""
    draw: Draw = "random"
    """How transactions are drawn; `even`: both arms' slices hold each as often as its weight says."""
    lengths: tuple[Bin, ...] = ()
    """For a web server: how many requests a connection carries, and how many connections do. Empty: connections stay open."""
    rate: float = 0.0
    """Open loop: operations per second in the log that it was made from. 0: none."""
    holds_values: bool = False
    """Its statements hold values of the user's that no record may have, so errors are shown without what they quote."""
    large: tuple[tuple[str, int, Script], ...] = ()
    """A transaction with one large response, for memory per connection. Empty: there is none."""
    loop: bool = False
    """Count what an operation costs server and network (statements, bytes, round trips), with any client."""

    @property
    def statements(self) -> float:
        """Statements, requests or commands of an operation on average, in the plain arm. 0: a loop or a branch decides, so they must be
        counted.
        """
        if any(
            agent_script.decides or any(variable.kind == "each" for variable in agent_script.variables)
            for _, _, agent_script in self.transactions
        ):
            return 0.0
        sent = sum(
            weight
            * sum(
                statement.arm != "encrypted" and not statement.sql.startswith(THINK)
                for statement in agent_script.statements
            )
            for _, weight, agent_script in self.transactions
        )
        return sent / max(1, sum(weight for _, weight, _ in self.transactions))

    def with_backlog(self) -> Program:
        """The program whose operations wait for no replica."""
        return msgspec.structs.replace(self, transactions=self.backlog)

    def with_large(self) -> Program | None:
        """The program whose operation is the one large response. None: it has none."""
        return msgspec.structs.replace(self, transactions=self.large) if self.large else None

    def seeded(self, seed: int) -> Program:
        """The program with the variables that depend on the run's seed."""

        def filled(variable: Variable) -> Variable:
            value = seeds.get(variable.name.removesuffix(AUTOMATIC)) if variable.value == "" else None
            return variable if value is None else msgspec.structs.replace(variable, value=str(value))

        seeds = {RANDOM_SEED: seed, DEFAULT_SEED: default_seed(seed)}

        transactions = tuple(
            (
                name,
                weight,
                msgspec.structs.replace(agent_script, variables=tuple(map(filled, agent_script.variables))),
            )
            for name, weight, agent_script in self.transactions
        )
        return msgspec.structs.replace(self, transactions=transactions)

    def beside(self, reference: Program) -> Program:
        """Return the program whose plain arm does what the encrypted arm of `reference` does: the same workload, sealed otherwise."""
        assert reference.sealed is not None
        transactions = tuple(
            (name, weight, script.by_arm(script.of_arm(other, "encrypted"), script.of_arm(this_script, "encrypted")))
            for (name, weight, this_script), (_, _, other) in zip(
                self.transactions, reference.transactions, strict=True
            )
        )
        tables = reference.sealed
        return msgspec.structs.replace(self, load=tables.load, check=tables.check, transactions=transactions)

    def tables(self, arm: str) -> Tables:
        """Return what fills and reads this arm's tables."""
        return self.sealed if self.sealed and arm == "encrypted" else Tables(self.load, self.check)
