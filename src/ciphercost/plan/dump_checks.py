"""Checks of a cell with the user's dump (`--dump`), before anything starts."""

from __future__ import annotations

from pathlib import Path

from ciphercost.engines import Engine
from ciphercost.engines.capabilities.dumps import Dump, LoadsDumps
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec


def check(cell: CellSpec, engine: Engine) -> None:
    """Raises UsageError for a dump that the cell can't load, or that nothing would use. Reads its first and last bytes."""
    if not cell.dump:
        return
    check_data(cell, engine)
    if not cell.own_script and not cell.workload_file:
        raise UsageError(
            f"--dump {cell.dump}: needs your statements on its tables; write --workload FILE.toml, which `ciphercost workload` makes of your "
            "logs, or --sql FILE, whose lines are in pgbench's script language, e.g. "
            "'\\set id random(1, 1000)' and 'SELECT * FROM orders WHERE id = :id;'; or encrypt columns of one table: --secret TABLE.COLUMN"
        )


def check_data(cell: CellSpec, engine: Engine) -> None:
    """Raises UsageError for a dump that the engine can't load. Reads its first and last bytes."""
    where = f"--dump {cell.dump}"
    if cell.url:
        raise UsageError(
            f"{where}: ciphercost loads a dump into servers that it starts, and no data into yours; remove --url, or remove --dump and "
            "measure your own tables there with --sql"
        )
    if cell.csv:
        raise UsageError(f"{where} and --csv {cell.csv} are both the data; remove one of them")
    if engine.language != "sql":
        raise UsageError(f"{where}: {cell.engine} has no tables to load it into; remove --dump")
    of(cell, engine)


def of(cell: CellSpec, engine: Engine) -> Dump:
    """The cell's dump. Raises UsageError."""
    if not isinstance(engine, LoadsDumps):
        raise UsageError(f"--dump {cell.dump}: {LoadsDumps.refusal(engine)}")
    return engine.dump_of(Path(cell.dump))
