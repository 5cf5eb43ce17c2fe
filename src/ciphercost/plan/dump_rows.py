"""The rows of one table of the user's dump (`--dump FILE --secret TABLE.COLUMN`), which are measured as the rows of `--csv` are.

A plan needs to know them, and only a server can read a dump. So whoever makes plans lets a layer above take the rows out of it (`taken_by`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ciphercost.engines import Engine
from ciphercost.engines.capabilities.dumps import DumpColumn
from ciphercost.load.program import Program
from ciphercost.mechanisms import Mechanism
from ciphercost.mechanisms._column import Columns
from ciphercost.model.errors import CiphercostError, UsageError, nearest
from ciphercost.model.spec import CellSpec
from ciphercost.plan import dump_checks

PUBLIC = "public."
"""PostgreSQL's usual schema, which need not be written."""
APART = "foreign keys, triggers, views and indexes of the dump take no part"


class Table(msgspec.Struct, frozen=True):
    """The rows of a table of the dump, in a file."""

    dump: str
    name: str
    file: Path
    columns: tuple[DumpColumn, ...]
    """All of its columns; those without text are not in the file."""

    @property
    def where(self) -> str:
        """What messages about it begin with."""
        return f"--dump {self.dump}, table {self.name}"

    @property
    def left_out(self) -> list[DumpColumn]:
        return [column for column in self.columns if not column.text]

    def titles(self, secret: list[str]) -> list[str]:
        """The columns that `--secret` names. Raises UsageError."""
        known = [column.name for column in self.columns]
        chosen = []
        for written in secret:
            _, name = parts(written)
            fits = [title for title in known if title == name] or [
                title for title in known if title.lower() == name.lower()
            ]
            if len(fits) != 1:
                raise UsageError(f"{self.where}: no column is named '{name}', as --secret asks: {nearest(name, known)}")
            if missing := [column for column in self.left_out if column.name == fits[0]]:
                raise UsageError(
                    f"{self.where}: column {name} is {missing[0].type}, whose values are no text, and only text is encrypted; name another column"
                )
            if fits[0] in chosen:
                raise UsageError(f"--secret {','.join(secret)}: '{written}' is listed twice; list it once")
            chosen += fits
        return chosen

    def as_csv(self, cell: CellSpec) -> CellSpec:
        """The cell with the file in place of the dump. Raises UsageError."""
        return msgspec.structs.replace(cell, csv=str(self.file), dump="", secret=self.titles(cell.secret))

    def as_dump(self, cell: CellSpec, written: CellSpec) -> CellSpec:
        """A cell of `as_csv` as the user wrote it."""
        return msgspec.structs.replace(cell, csv="", dump=written.dump, secret=written.secret)

    def named(self, program: Program) -> Program:
        """The program with the names of dump and table instead of the file's."""
        rest = {name: value for name, value in program.parameters.items() if name != "csv"}
        return msgspec.structs.replace(program, parameters=rest | {"dump": Path(self.dump).name, "table": self.name})

    @contextmanager
    def worded(self) -> Iterator[None]:
        """Errors about the file become errors about the table."""
        try:
            yield
        except CiphercostError as error:
            if str(self.file) not in str(error):
                raise
            raise type(error)(
                str(error).replace(f"--csv {self.file}", self.where).replace(str(self.file), self.where)
            ) from None


def parts(written: str) -> tuple[str, str]:
    """(table, column) of `shop.customers.ssn`. Raises UsageError."""
    table, dot, column = written.rpartition(".")
    if not (table and dot and column):
        raise UsageError(
            f"--secret {written}: with --dump, write the table too: TABLE.COLUMN, e.g. --secret customers.{column or 'ssn'}"
        )
    return table, column


def check(cell: CellSpec, engine: Engine, mechanism: Mechanism) -> str:
    """The table whose rows are asked for. Raises UsageError for what does not go with them. Reads the dump's first and last bytes."""
    option = f"--secret {','.join(cell.secret)}"
    if cell.own_script or cell.workload_file:
        script = "--sql" if cell.sql else "--builtin" if cell.builtin else "--workload"
        raise UsageError(
            f"{option} and {script}: your statements use the dump's tables as they are, and {option} takes the rows of one and encrypts its "
            f"columns; remove --secret, or remove {script}"
        )
    if not isinstance(mechanism, Columns):
        raise UsageError(
            f"{option}: {cell.mechanism} does not encrypt columns; use a mechanism that does (`ciphercost list mechanisms`), or remove --secret and "
            "give your statements with --sql"
        )
    if cell.rows:
        raise UsageError("--rows does not work with --dump, which loads all rows of the table; remove --rows")
    if cell.no_header:
        raise UsageError("--no-header describes the file of --csv; remove --no-header")
    dump_checks.check_data(cell, engine)
    mechanism.check(
        {factor.name: cell.factors[factor.name] for factor in mechanism.factors if factor.name in cell.factors}
    )
    mechanism.fits(engine, mechanism.check({}))
    tables = list({table.removeprefix(PUBLIC).lower(): table for table, _ in map(parts, cell.secret)}.values())
    if len(tables) > 1:
        raise UsageError(
            f"{option}: the columns of one run are of one table, and these are of {' and '.join(tables)}; make a run for each"
        )
    return tables[0]


def table_of(name: str, rows: dict[str, int], dump: str) -> str:
    """The full name of a table that `--secret` names; `rows`: of each table. Raises UsageError."""
    where = f"--dump {dump}"
    spellings = {name, name.removeprefix(PUBLIC)}
    fits = [known for known in rows if known in spellings]
    fits = fits or [known for known in rows if known.lower() in {spelling.lower() for spelling in spellings}]
    fits = fits or [known for known in rows if known.lower().endswith(f".{name.lower()}")]
    if not fits:
        raise UsageError(f"{where}: no table is named '{name}', as --secret asks: {nearest(name, rows)}")
    if len(fits) > 1:
        raise UsageError(f"{where}: '{name}' may be {' or '.join(fits)}; write --secret {fits[0]}.COLUMN")
    if not rows[fits[0]]:
        raise UsageError(f"{where}: table {fits[0]} has no rows, so nothing could be measured; name another table")
    return fits[0]


Take = Callable[[CellSpec, Engine, str], Table]
"""Takes the rows of a table that a cell names out of its dump. Raises CiphercostError."""
_take: list[Take] = []


@contextmanager
def taken_by(take: Take) -> Iterator[None]:
    """While this lasts, plans may have rows of dumps."""
    _take.append(take)
    try:
        yield
    finally:
        _take.remove(take)


def taken(cell: CellSpec, engine: Engine, name: str) -> Table:
    """The rows of the table that `check` has found. Raises UsageError."""
    if not _take:
        raise UsageError(
            f"--dump {cell.dump} with --secret: only `run`, `resume` and ciphercost.run take rows out of a dump; use one of them"
        )
    return _take[-1](cell, engine, name)
