"""Turns `--csv FILE` into a Program on a table of the user's rows. The file is read twice: first to detect its types,
then for its rows.

It is never held in memory. Only a few randomly drawn rows are kept; the inserts under load take their values from them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from ciphercost.host import file_stamp
from ciphercost.load import script
from ciphercost.load.codec import PLAIN, Codec, Encrypting
from ciphercost.load.program import Program, SecretColumn, Step, Tables
from ciphercost.load.tables import csvfile, dialects
from ciphercost.load.tables.columns import ColumnDetector, names
from ciphercost.load.tables.dialects import KEY, Dialect, Typed
from ciphercost.load.tables.transactions import TABLE, Transactions
from ciphercost.model.errors import RunError, UsageError, nearest

MOST_SAMPLES, MOST_SAMPLED_VALUES = 16, 4096
"""Most rows that inserts and updates take their values from, and most values in them.

The agent gets a statement for each row.
"""
MOST_CHECKED = 100
"""Most columns in the check query."""
MOST_CHECKED_LETTERS = 1000
CLIENTS = 8

DEFAULT_WORKLOAD = "mixed-crud"
WORKLOADS: dict[str, dict[str, int]] = {
    "mixed-crud": {"select": 70, "insert": 10, "update": 10, "delete": 10},
    "point-select": {"select": 1},
    "insert": {"insert": 1},
    "update": {"update": 1},
    "delete": {"insert and delete": 1},
    "search": {"search": 1},
}
"""The workloads that can run on such a table, with their transactions and weights."""
MIXED_WITH_SECRETS = {"select": 60, "search": 10, "insert": 10, "update": 10, "delete": 10}
"""`mixed-crud` on a table with secret columns."""
OPERATIONS = ("insert", "point-select", "search", "update", "delete")
"""Workloads that together tell what encrypted columns cost: one operation each."""
TITLES = {
    "update": ("one row of your own table changed, by its key", "your own rows: changes"),
    "delete": (
        "one row inserted into your own table and deleted again",
        "your own rows: deletions, each with its insert",
    ),
}
"""Title and what it measures, for workloads that exist for the user's rows alone."""
INDEXED_LETTERS = 200
"""Longest secret column with an index, in characters: every server can index what any mechanism stores of it."""
CHECKED_ROWS = 100
"""Rows whose secret values the check query opens. All would take hours with a slow key derivation."""


class Survey(msgspec.Struct, frozen=True):
    """What the first pass over a file found. It does not depend on the server."""

    path: Path
    stamp: tuple[int, ...]
    """The file's identity, size and time. If they change, the survey is out of date."""
    delimiter: str
    titles: tuple[str, ...]
    gauges: tuple[ColumnDetector, ...]
    rows: int
    samples: tuple[tuple[str, ...], ...]
    header: bool = True
    """Whether the file's first line names its columns."""


def survey(path: Path, *, header: bool = True) -> Survey:
    """Read the whole file, once as long as it does not change. Raises UsageError with the faulty line."""
    return _survey(path, _stamp(path), header)


def _stamp(path: Path) -> tuple[int, ...]:
    with csvfile.opened(path):
        return file_stamp.of(path)


@lru_cache(maxsize=8)
def _survey(path: Path, stamp: tuple[int, ...], header: bool) -> Survey:
    delimiter = csvfile.delimiter_of(path)
    numbered_rows = csvfile.rows(path, delimiter, header=header)
    titles = tuple(next(numbered_rows)[1])
    gauges = tuple(ColumnDetector() for _ in titles)
    adders = [gauge.add for gauge in gauges]
    most = max(1, min(MOST_SAMPLES, MOST_SAMPLED_VALUES // len(titles)))
    # Every run on the same file draws the same rows. Nothing secret depends on it.
    draw = random.Random(0).random  # noqa: S311
    samples: list[tuple[str, ...]] = []
    rows = 0
    for _, values in numbered_rows:
        for add, value in zip(adders, values, strict=True):
            add(value)
        rows += 1
        if len(samples) < most:
            samples.append(tuple(values))
        elif (place := int(draw() * rows)) < most:
            samples[place] = tuple(values)
    if not rows:
        raise UsageError(f"--csv {path}: contains no rows, only the header line")
    return Survey(path, stamp, delimiter, titles, gauges, rows, tuple(samples), header)


def program(
    path: Path,
    workload: str,
    dialect_name: str,
    *,
    header: bool = True,
    secret: Sequence[str] = (),
    codec: Codec | None = None,
    beside_client: bool = False,
) -> Program:
    """Return the workload on the file's table, in one server's SQL.

    `header`: whether its first line names the columns. `secret`: titles of the columns that are encrypted in the encrypted arm;
    `codec`: how; None: both arms are plain. `beside_client`: another arm, which this one is compared with, encrypts in the application.
    Raises UsageError: bad file, too large a row, unsuitable workload.
    """
    where = f"--csv {path}"
    if workload not in WORKLOADS:
        raise UsageError(
            f"{where}: workload '{workload}' has its own tables; choose one for your own rows: {nearest(workload, WORKLOADS)}"
        )
    if workload == "search" and not secret:
        raise UsageError(f"{where}: workload search searches for a secret value; name the columns with --secret")
    if dialect_name not in dialects.DIALECTS:
        raise UsageError(f"{where}: this server does not support --csv: {nearest(dialect_name, dialects.DIALECTS)}")
    dialect = dialects.DIALECTS[dialect_name]
    # Check the first row alone, so that a file with too many columns is not read to its end.
    _, titles = next(csvfile.rows(path, header=header))
    dialects.check_width(dialect, len(titles) + (len(secret) if codec and codec.blind else 0), where)
    names(titles, f"{where}, line 1")
    known = survey(path, header=header)
    by_client = beside_client or (isinstance(codec, Encrypting) and codec.client_side)
    plain = _Arm(known, dialect, where, secret, PLAIN, by_client)
    sealed = _Arm(known, dialect, where, secret, codec, by_client) if codec and secret else None
    weights = MIXED_WITH_SECRETS if secret and workload == "mixed-crud" else WORKLOADS[workload]
    scripts_by_name = {name: plain.transactions.of(name) for name in weights}
    if sealed:
        for name, scripts in scripts_by_name.items():
            both = zip(scripts, sealed.transactions.of(name), strict=True)
            scripts_by_name[name] = [script.by_arm(of_plain, of_sealed) for of_plain, of_sealed in both]
    # An insert or update becomes one script per sampled row, and these share its weight. So all weights are multiplied
    # by `unit`.
    unit = max(len(scripts) for scripts in scripts_by_name.values())
    if not all(scripts_by_name.values()):
        raise UsageError(
            f"{where}: no row that was read has a value in {', '.join(secret)}; name other columns with --secret"
        )
    return Program(
        name=workload,
        load=plain.load,
        check=check(dialect, plain.columns, rows_of=by_client),
        transactions=tuple(
            (name, weights[name] * unit // len(scripts), script_)
            for name, scripts in scripts_by_name.items()
            for script_ in scripts
        ),
        read_only=set(weights) <= {"select", "search"},
        per_request=False,
        clients=CLIENTS,
        parameters={"rows": known.rows, "columns": len(plain.columns), "csv": path.name},
        sealed=Tables(sealed.load, check(dialect, sealed.columns, rows_of=by_client), sealed.codec) if sealed else None,
        key=codec.agent_key if codec else None,
        blind_key=codec.agent_blind_key if codec else None,
        values=_values(weights, len(secret)) if secret else {},
        data=TABLE,
        secrets=tuple(
            SecretColumn(
                table=TABLE,
                name=typed.name,
                title=typed.column.title,
                blind=typed.blind_name,
                bits=typed.codec.blind.bits if typed.codec.blind else 0,
                bytes_length=dialect.bytes_length,
                beginning=dialect.beginning,
            )
            for typed in (sealed or plain).columns
            if typed.secret
        ),
    )


def _values(weights: dict[str, int], secrets: int) -> dict[str, float]:
    """The secret values that an operation seals, opens and searches for on average."""
    of_one = {
        "insert": {"sealed": secrets},
        "insert and delete": {"sealed": secrets},
        "update": {"sealed": 1},
        "select": {"opened": secrets},
        "search": {"searched": 1},
    }
    averages: dict[str, float] = {}
    for name, weight in weights.items():
        for kind, count in of_one.get(name, {}).items():
            averages[kind] = averages.get(kind, 0.0) + count * weight / sum(weights.values())
    return averages


class _Arm:
    """The table of one arm: its load and its transactions."""

    def __init__(
        self, known: Survey, dialect: Dialect, where: str, secret: Sequence[str], codec: Codec, by_client: bool
    ) -> None:
        self.codec = codec
        self.columns = dialects.fit(dialect, known.gauges, known.titles, where, secret, codec)
        self.load = Load(known, dialect, self.columns)
        self.transactions = Transactions(dialect, self.columns, known.rows, known.samples, by_client=by_client)


class Load:
    """The statements that create and fill the table, generated from the file in each iteration."""

    def __init__(self, known: Survey, dialect: Dialect, columns: tuple[Typed, ...]) -> None:
        self.known = known
        self.dialect = dialect
        self.columns = columns

    def __iter__(self) -> Iterator[Step]:
        """Yield the statements. Raises RunError if the file changed since its types were detected."""
        known, path = self.known, self.known.path
        self._same()
        created = dialects.create(self.dialect, TABLE, self.columns)
        yield Step(created, created)
        numbered_rows = csvfile.rows(path, known.delimiter, header=known.header)
        next(numbered_rows)
        try:
            for sql, first, last in dialects.inserts(self.dialect, TABLE, self.columns, numbered_rows):
                yield Step(sql, f"{path}, rows that begin in lines {first} to {last}")
        except UsageError as error:
            raise RunError(f"the file changed while ciphercost read it: {error}") from None
        self._same()
        for number, column in enumerate(indexed(self.columns), start=1):
            made = f"CREATE INDEX own_rows_secret_{number} ON {TABLE} ({column})"
            yield Step(made, made)
        for statement in self.dialect.loaded:
            filled = statement.format(table=TABLE, key=KEY, next=known.rows + 1)
            yield Step(filled, filled)

    def _same(self) -> None:
        if _stamp(self.known.path) != self.known.stamp:
            raise RunError(f"--csv {self.known.path}: the file changed while ciphercost read it; run the command again")


def indexed(columns: Sequence[Typed]) -> Iterator[str]:
    """Yield the columns that a search by a secret value would use an index of: the blind index, or else the stored value. Pure."""
    for typed in columns:
        if typed.secret and (typed.blind_name or typed.column.length <= INDEXED_LETTERS):
            yield typed.blind_name or typed.name


def check(dialect: Dialect, columns: Sequence[Typed], *, rows_of: bool = False) -> str:
    """Return a query whose result differs if two such tables differ: row count, keys, and totals for each column. Pure.

    `rows_of`: it returns rows, because the server can't compute with what the application sealed.
    """
    few = f"FROM {TABLE} WHERE {KEY} <= {CHECKED_ROWS}"
    if rows_of:
        listed = [
            typed.sealed.hex(typed.name) if typed.sealed and typed.sealed.client_side else typed.opened
            for typed in columns[:MOST_CHECKED]
        ]
        return f"SELECT (SELECT count(*) FROM {TABLE}), {', '.join([KEY, *listed])} {few} ORDER BY {KEY}"
    asked = [f"count(*), sum({KEY})"]
    for typed in columns[:MOST_CHECKED]:
        column = typed.column
        asked.append(f"count({typed.name})")
        totals = []
        if column.kind == "text":
            totals.append(f"sum({dialect.length}({typed.opened}))")
        if column.kind == "integer":
            totals.append(f"sum({typed.name})")
        if column.kind != "boolean" and column.length <= MOST_CHECKED_LETTERS:
            totals += [f"min({typed.opened})", f"max({typed.opened})"]
        asked += [f"(SELECT {total} {few})" if typed.secret else total for total in totals]
    return f"SELECT {', '.join(asked)} FROM {TABLE}"
