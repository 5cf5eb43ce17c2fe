"""The transactions on a table of the user's rows, in the SQL of one arm. Pure.

They are written with `:id` and `:v1`, `:v2` … for the variables, and with the marks of what the application does itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ciphercost.load.script_parts import BLIND, OPEN, SEAL, SEALED, Script, Statement, Variable, blind_name
from ciphercost.load.tables import dialects
from ciphercost.load.tables.dialects import KEY, Dialect, Typed

TABLE = "own_rows"
Row = Sequence[str]
_VARIABLE = re.compile(
    rf"(?P<mark>{re.escape(SEAL)}|{re.escape(BLIND)}(?P<bits>[0-9]+)\*/)?(?<!:):(?P<name>id|v[0-9]+)\b"
)
_NUMBERS = ("integer", "bigint", "decimal", "double")


class Transactions:
    """The transactions on the table in one arm, built from its columns and some of its rows."""

    def __init__(
        self,
        dialect: Dialect,
        columns: tuple[Typed, ...],
        rows: int,
        samples: Sequence[Row],
        *,
        by_client: bool = False,
    ) -> None:
        """`rows`: of the table; `samples`: those that inserts, updates and searches take their values from; `by_client`: the
        application encrypts in the encrypted arm, so that a search returns the values too.
        """
        self.by_client = by_client
        self.dialect = dialect
        self.columns = columns
        self.rows = rows
        self.samples = samples
        self.secret = [place for place, typed in enumerate(columns) if typed.secret]
        """Places of the secret columns."""

    def of(self, name: str) -> list[Script]:
        """Return the scripts of a transaction: one, or one for each of some rows."""
        match name:
            case "select":
                every = ", ".join(column.selected for column in self.columns)
                return [self._script([f"SELECT {every} FROM {TABLE} WHERE {KEY} = :id"], [self._id])]
            case "delete":
                return [self._script([self._delete], [])]
            case "insert":
                return [self._insert(row) for row in self.samples]
            case "insert and delete":
                return [self._insert(row, self._delete) for row in self.samples]
            case "search":
                return [self._search(row, place) for row, place in self._secret_values]
            case _:
                if self.secret:
                    return [self._replace(row, place) for row, place in self._secret_values]
                return [self._update(row) for row in self.samples]

    @property
    def _id(self) -> Variable:
        return Variable("id", "uniform", low=1, high=self.rows)

    @property
    def _delete(self) -> str:
        return self.dialect.delete.format(table=TABLE, key=KEY, rows=self.rows)

    @property
    def _secret_values(self) -> list[tuple[Row, int]]:
        """Pairs of a sampled row and the place of a secret column in which it has a value: every such column in turn."""
        pairs: list[tuple[Row, int]] = []
        for number in range(max(len(self.samples), len(self.secret))):
            place = self.secret[number % len(self.secret)]
            with_value = [row for row in self.samples if dialects.plain(self.columns[place].column, row[place])]
            if with_value:
                pairs.append((with_value[number // len(self.secret) % len(with_value)], place))
        return pairs

    def _insert(self, row: Row, *then: str) -> Script:
        variables: list[Variable] = []
        values: list[str] = []
        for typed, text in zip(self.columns, row, strict=True):
            word, variable = self._value(typed, text, f"v{len(variables) + 1}")
            variables += [variable] if variable else []
            values += typed.written(word) if variable else [word] * len(typed.names)
        into = ", ".join(name for column in self.columns for name in column.names)
        return self._script([f"INSERT INTO {TABLE} ({into}) VALUES ({', '.join(values)})", *then], variables)

    def _update(self, row: Row) -> Script:
        at = next((n for n, typed in enumerate(self.columns) if typed.column.kind in _NUMBERS), 0)
        word, variable = self._value(self.columns[at], row[at], "v1")
        sql = f"UPDATE {TABLE} SET {self.columns[at].name} = {word} WHERE {KEY} = :id"
        return self._script([sql], [self._id, *([variable] if variable else [])])

    def _replace(self, row: Row, place: int) -> Script:
        """A secret value becomes a random text of the same length, so that no value becomes more frequent than it was."""
        typed = self.columns[place]
        length = len(dialects.plain(typed.column, row[place]) or "x")
        written = zip(typed.names, typed.written(":v1"), strict=True)
        changes = ", ".join(f"{name} = {value}" for name, value in written)
        sql = f"UPDATE {TABLE} SET {changes} WHERE {KEY} = :id"
        return self._script([sql], [self._id, Variable("v1", "text", length=length)])

    def _search(self, row: Row, place: int) -> Script:
        """Return the keys of the rows that have this value."""
        typed = self.columns[place]
        text = dialects.plain(typed.column, row[place])
        listed = f"{KEY}, {typed.selected}" if self.by_client else KEY
        sql = f"SELECT {listed} FROM {TABLE}{self._condition(typed)}"
        return self._script([sql], [Variable("v1", "constant", value=text)])

    def _condition(self, typed: Typed) -> str:
        """The rows that have the value `:v1`. If only the application can tell, all that may have it."""
        codec, length, blind = typed.sealed, typed.column.length, typed.codec.blind
        if codec is None:
            return f" WHERE {typed.name} = :v1"
        found = [f"{typed.blind_name} = {codec.once.format(blind.of(':v1', length))}"] if blind else []
        if codec.alike and not blind:
            found.append(codec.match(typed.name, ":v1", length))
        elif not codec.client_side:
            # An entry of a blind index may stand for several texts.
            found.append(f"{typed.opened} = :v1{self.dialect.exact}")
        return f" WHERE {' AND '.join(found)}" if found else ""

    def _value(self, typed: Typed, value: str, name: str) -> tuple[str, Variable | None]:
        """Return (a word of SQL, None), or a variable and its mark: its value goes over the network, like an application's
        values.
        """
        text = dialects.plain(typed.column, value)
        if text is None or typed.column.kind == "boolean":
            return text or "NULL", None
        return f":{name}", Variable(name, "constant", value=text)

    def _script(self, statements: Sequence[str], variables: Sequence[Variable]) -> Script:
        declared = {variable.name: variable for variable in variables}
        finished = [self._statement(sql, declared) for sql in statements]
        return Script(tuple(declared.values()), tuple(finished))

    def _statement(self, sql: str, declared: dict[str, Variable]) -> Statement:
        """The statement with `$1`, `$2` … for its variables; adds those that hold another one's sealed value to `declared`."""
        order: list[str] = []

        def place(match: re.Match[str]) -> str:
            name = match["name"]
            if match["bits"]:
                of, name = name, blind_name(name)
                declared.setdefault(name, Variable(name, "blind", of=of, bits=int(match["bits"])))
            elif match["mark"]:
                of, name = name, name + SEALED
                declared.setdefault(name, Variable(name, "sealed", of=of))
            if name not in order:
                order.append(name)
            return f"${order.index(name) + 1}"

        opens = OPEN in sql
        sql = _VARIABLE.sub(place, sql).replace(OPEN, "")
        # The application keeps those rows of a search that have the value.
        keep = "v1" if opens and "v1" in declared else ""
        return Statement(sql, tuple(order), open=opens, keep=keep)
