"""Turns `--csv FILE` into a Program on a table of the user's rows. The file is read twice: first to detect its types,
then for its rows.

It is never held in memory. Only a few randomly drawn rows are kept; the inserts under load take their values from them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

from ciphercost.load.program import Program, Step
from ciphercost.load.script import Script, Statement, Variable
from ciphercost.load.tables import csvfile, dialects
from ciphercost.load.tables.columns import ColumnDetector, names
from ciphercost.load.tables.dialects import KEY, Dialect, Typed
from ciphercost.model.errors import RunError, UsageError, nearest

TABLE = "own_rows"
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
}
"""The workloads that can run on such a table, with their transactions and weights."""


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
        status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@lru_cache(maxsize=8)
def _survey(path: Path, stamp: tuple[int, ...], header: bool) -> Survey:
    delimiter = csvfile.delimiter_of(path)
    found = csvfile.rows(path, delimiter, header=header)
    titles = tuple(next(found)[1])
    gauges = tuple(ColumnDetector() for _ in titles)
    adders = [gauge.add for gauge in gauges]
    most = max(1, min(MOST_SAMPLES, MOST_SAMPLED_VALUES // len(titles)))
    # Every run on the same file draws the same rows. Nothing secret depends on it.
    draw = random.Random(0).random  # noqa: S311
    samples: list[tuple[str, ...]] = []
    rows = 0
    for _, values in found:
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


def program(path: Path, workload: str, dialect_name: str, *, header: bool = True) -> Program:
    """Return the workload on the file's table, in one server's SQL. `header`: whether its first line names the columns.

    Raises UsageError: bad file, too large a row, unsuitable workload.
    """
    where = f"--csv {path}"
    if workload not in WORKLOADS:
        raise UsageError(
            f"{where}: workload '{workload}' has its own tables; choose one for --csv: {nearest(workload, WORKLOADS)}"
        )
    if dialect_name not in dialects.DIALECTS:
        raise UsageError(f"{where}: this server does not support --csv: {nearest(dialect_name, dialects.DIALECTS)}")
    dialect = dialects.DIALECTS[dialect_name]
    # Check the first row alone, so that a file with too many columns is not read to its end.
    _, titles = next(csvfile.rows(path, header=header))
    dialects.check_width(dialect, len(titles), where)
    names(titles, f"{where}, line 1")
    known = survey(path, header=header)
    columns = dialects.fit(dialect, known.gauges, known.titles, where)
    made = Scripts(dialect, columns, known)
    weights = WORKLOADS[workload]
    each_script = {name: made.of(name) for name in weights}
    # An insert or update becomes one script per sampled row, and these share its weight. So all weights are multiplied
    # by `unit`.
    unit = max(len(scripts) for scripts in each_script.values())
    return Program(
        name=workload,
        load=Load(known, dialect, columns),
        check=check(dialect, columns),
        transactions=tuple(
            (name, weights[name] * unit // len(scripts), script)
            for name, scripts in each_script.items()
            for script in scripts
        ),
        read_only=set(weights) == {"select"},
        per_request=False,
        clients=CLIENTS,
        parameters={"rows": known.rows, "columns": len(columns), "csv": path.name},
    )


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
        found = csvfile.rows(path, known.delimiter, header=known.header)
        next(found)
        try:
            for sql, first, last in dialects.inserts(self.dialect, TABLE, self.columns, found):
                yield Step(sql, f"{path}, rows that begin in lines {first} to {last}")
        except UsageError as error:
            raise RunError(f"the file changed while ciphercost read it: {error}") from None
        self._same()
        for statement in self.dialect.loaded:
            filled = statement.format(table=TABLE, key=KEY, next=known.rows + 1)
            yield Step(filled, filled)

    def _same(self) -> None:
        if _stamp(self.known.path) != self.known.stamp:
            raise RunError(f"--csv {self.known.path}: the file changed while ciphercost read it; run the command again")


class Scripts:
    """The transactions on the table, built from its columns and the sampled rows. Pure."""

    def __init__(self, dialect: Dialect, columns: tuple[Typed, ...], known: Survey) -> None:
        self.dialect = dialect
        self.columns = columns
        self.known = known

    def of(self, name: str) -> list[Script]:
        """Return the scripts of a transaction: one, or one per sampled row."""
        if name == "select":
            every = ", ".join(each.name for each in self.columns)
            return [Script((self._id,), (Statement(f"SELECT {every} FROM {TABLE} WHERE {KEY} = $1", ("id",)),))]
        if name == "delete":
            sql = self.dialect.delete.format(table=TABLE, key=KEY, rows=self.known.rows)
            return [Script((), (Statement(sql, ()),))]
        return [self._insert(row) if name == "insert" else self._update(row) for row in self.known.samples]

    @property
    def _id(self) -> Variable:
        return Variable("id", "uniform", low=1, high=self.known.rows)

    def _insert(self, row: tuple[str, ...]) -> Script:
        written = [self._value(each, value) for each, value in zip(self.columns, row, strict=True)]
        variables = tuple(variable for _, variable in written if variable)
        places: Mapping[str, int] = {variable.name: n for n, variable in enumerate(variables, start=1)}
        values = [f"${places[variable.name]}" if variable else word for word, variable in written]
        into = ", ".join(each.name for each in self.columns)
        sql = f"INSERT INTO {TABLE} ({into}) VALUES ({', '.join(values)})"
        return Script(variables, (Statement(sql, tuple(places)),))

    def _update(self, row: tuple[str, ...]) -> Script:
        numbers = ("integer", "bigint", "decimal", "double")
        at = next((n for n, each in enumerate(self.columns) if each.column.kind in numbers), 0)
        word, variable = self._value(self.columns[at], row[at])
        sql = f"UPDATE {TABLE} SET {self.columns[at].name} = {'$1' if variable else word} WHERE {KEY} = "
        if variable is None:
            return Script((self._id,), (Statement(f"{sql}$1", ("id",)),))
        return Script((self._id, variable), (Statement(f"{sql}$2", (variable.name, "id")),))

    def _value(self, typed: Typed, value: str) -> tuple[str, Variable | None]:
        """Return (a word of SQL, None), or ("", a variable): its value goes over the network, like an application's
        values.
        """
        text = dialects.plain(typed.column, value)
        if text is None or typed.column.kind == "boolean":
            return text or "NULL", None
        return "", Variable(typed.name, "constant", value=text)


def check(dialect: Dialect, columns: tuple[Typed, ...]) -> str:
    """Return a query whose result differs if two such tables differ: row count, keys, and totals for each column. Pure."""
    asked = [f"count(*), sum({KEY})"]
    for each in columns[:MOST_CHECKED]:
        column = each.column
        asked.append(f"count({each.name})")
        if column.kind == "text":
            asked.append(f"sum({dialect.length}({each.name}))")
        if column.kind == "integer":
            asked.append(f"sum({each.name})")
        if column.kind != "boolean" and column.length <= MOST_CHECKED_LETTERS:
            asked.append(f"min({each.name}), max({each.name})")
    return f"SELECT {', '.join(asked)} FROM {TABLE}"
