"""dump_tables: takes the rows of a table out of the user's dump, with a server that holds it for as long as that takes.

The rows lie in a file of a scratch directory (mode 0600) until the plans that use them are done. If this process is killed, its supervisor
removes it.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from ciphercost.engines import Engine
from ciphercost.engines.capabilities.dumps import DumpColumn, LoadsDumps, Rows
from ciphercost.host import deadlines, file_stamp, supervisor
from ciphercost.load.tables.columns import NULL
from ciphercost.model.errors import AgentError, RunError, UsageError
from ciphercost.model.run_directory import new_id
from ciphercost.model.spec import CellSpec
from ciphercost.plan import dump_rows
from ciphercost.plan.resolve import resolve
from ciphercost.provision import server_pairs
from ciphercost.provision.dump_loading import WORDS, words_of
from ciphercost.provision.experiment_resources import ExperimentResources
from ciphercost.provision.prepared_cell import silent

NO_STATEMENT = "SELECT 1;\n"
"""A script for a cell that nobody measures."""


@contextmanager
def available(say: Callable[[str], None] = silent, show: Callable[[str], None] = silent) -> Iterator[None]:
    """While this lasts, plans may have rows of dumps. Afterwards nothing is left of them.

    `say`: prints a line for people; `show`: replaces the line that tells how far a load is.
    """
    with ExitStack() as stack:
        tables = _Tables(stack, say, show)
        with dump_rows.taken_by(tables.take):
            yield


class _Tables:
    """The tables whose rows were taken so far."""

    def __init__(self, stack: ExitStack, say: Callable[[str], None], show: Callable[[str], None]) -> None:
        self._stack, self._say, self._show = stack, say, show
        self._supervisor: supervisor.Supervisor | None = None
        self._known: dict[tuple[object, ...], dump_rows.Table] = {}

    def take(self, cell: CellSpec, engine: Engine, name: str) -> dump_rows.Table:
        """The rows of a table, taken once. Raises UsageError, RunError."""
        key = (cell.engine, cell.version, cell.bindir, cell.dump, name, file_stamp.of(Path(cell.dump)))
        if key not in self._known:
            self._known[key] = self._taken(cell, engine, name)
        return self._known[key]

    def _taken(self, cell: CellSpec, engine: Engine, name: str) -> dump_rows.Table:
        if self._supervisor is None:
            self._supervisor = self._stack.enter_context(supervisor.Supervisor(new_id()))
        scratch = supervisor.scratch(self._supervisor.run_id, self._supervisor)
        number = len(self._known)
        directory = scratch / f"rows-{number}"
        directory.mkdir(mode=0o700)
        script = directory / "nothing.sql"
        script.write_text(NO_STATEMENT)
        loader = CellSpec(
            cell.engine,
            "none",
            cell.version,
            bindir=cell.bindir,
            dump=cell.dump,
            sql=str(script),
            workload=cell.workload,
        )
        said: set[str] = set()
        with (
            server_pairs.bench(
                resolve(loader),
                self._supervisor,
                scratch,
                directory,
                number,
                ExperimentResources(scratch / "secrets" / f"rows-{number}"),
                say=partial(self._say_once, said),
                show=lambda text: self._show(_without_arm(text)),
            ) as bench,
            bench.shared.session(),
        ):
            table = dump_rows.table_of(name, next(iter(bench.tables.values())), cell.dump)
            pair = server_pairs.start(bench, 1, set(), set())
            connection = pair.connect["plain"].single
            with bench.helper(connection) as agent:
                agent.connect("rows", connection)
                query = partial(agent.query, "rows", timeout=deadlines.load())
                columns = _written(LoadsDumps.of(engine), query, cell.dump, table, directory / "rows.csv", cell.secret)
        return dump_rows.Table(cell.dump, table, directory / "rows.csv", tuple(columns))

    def _say_once(self, said: set[str], text: str) -> None:
        """Say a line of the load."""
        text = _without_arm(text)
        if (words := re.sub(r"[\d.]+", "", text)) not in said:
            said.add(words)
            self._say(text)


def _without_arm(text: str) -> str:
    """A line about a load without the arm: there are none yet. Pure."""
    return re.sub(rf" (?:into|for) (?:{'|'.join(WORDS.values())})", "", text)


def _written(
    engine: LoadsDumps, query: Callable[[str], Rows], dump: str, table: str, file: Path, secret: list[str]
) -> Sequence[DumpColumn]:
    """Write the table's rows to a file. Returns its columns. Raises UsageError, RunError."""
    where = f"--dump {dump}, table {table}"
    try:
        columns = engine.table_columns(query, table)
        dump_rows.Table(dump, table, file, tuple(columns)).titles(secret)  # before all rows are read
        kept = [column for column in columns if column.text]
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", newline="", encoding="utf-8") as opened:
            writer = csv.writer(opened, lineterminator="\n")
            writer.writerow([column.name for column in kept])
            for rows in engine.read_table(query, table, [column.text for column in kept]):
                writer.writerows([NULL if value is None else value for value in row] for row in rows)
    except AgentError as error:
        raise UsageError(
            f"{where}: its rows can't be read as text{words_of(error)}; write them to a file by hand, and give that with --csv FILE --secret"
        ) from None
    except OSError as error:
        raise RunError(f"{where}: its rows can't be written: {error.strerror}") from None
    return columns
