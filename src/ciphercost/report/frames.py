"""Results and raw slices as data frames of polars or pandas, for notebooks and Parquet.

polars is an extra (`pip install 'ciphercost[frames]'`): its 180 MB equal everything else together, and only Parquet reports need it.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import msgspec

from ciphercost.model import run_directory
from ciphercost.model.errors import UsageError
from ciphercost.model.facts import RunFacts
from ciphercost.model.pair import place
from ciphercost.model.result import Result
from ciphercost.model.slices import AgentSlice, Counters, SliceRecord
from ciphercost.report.figures import COLUMNS, figures

if TYPE_CHECKING:
    import pandas
    import polars

AT_ONCE = 5_000
"""Slices held as Python objects at a time."""
HEAD = ("run", "engine", "mechanism", "workload", "variant")
"""Columns from the slice's cell, before the slice's own fields."""
NESTED = ("agent", "counters")


def need() -> types.ModuleType:
    """The polars module. Raises UsageError if it is not installed."""
    try:
        import polars
    except ImportError:
        raise UsageError("data frames and Parquet need polars; run: pip install 'ciphercost[frames]'") from None
    return polars


def cells(result: Result) -> polars.DataFrame:
    """A row per cell and metric. A cell without a figure has one row with its `reason`.

    Shape (figures, 34): `figures.COLUMNS` defines the columns. `ratio`, `low` and `high` are encrypted / plain with its 95 %
    interval; `plain` and `encrypted` are levels in `unit` (operations/s, µs, ms, B, MB, s).
    """
    pl = need()
    kinds = {str: pl.String, int: pl.Int64, float: pl.Float64}
    schema = {name: kinds[kind] for name, (kind, _) in COLUMNS.items()}
    frame: polars.DataFrame = pl.DataFrame(figures(result), schema=schema)
    return frame


def cells_of_pandas(result: Result) -> pandas.DataFrame:
    """The same as a pandas data frame. It needs neither polars nor pyarrow. Raises UsageError if pandas is not installed."""
    try:
        import pandas as pd
    except ImportError:
        raise UsageError("to_pandas needs pandas; run: pip install pandas") from None
    kinds = {str: "string", int: "Int64", float: "float64"}
    frame = pd.DataFrame(figures(result), columns=list(COLUMNS))
    return frame.astype({name: kinds[kind] for name, (kind, _) in COLUMNS.items()})


def slices(directory: str | Path) -> polars.DataFrame:
    """A row per slice of load of a run, in the order of the record, including discarded and failed slices.

    Shape (slices, 5 + fields): the cell's run, engine, mechanism, workload and variant; then the slice's own fields, those of the
    agent's answer and those of the counters, under their names in FORMAT.md: `seconds`, `length` and `started` in seconds, `_ns` in
    nanoseconds, `_ms` in milliseconds, `_bytes` in bytes, shares of the host from 0 to 1. Null: no answer of the agent, or
    no counters. `done`: operations, with the shares of those cut at the edges. Counted slices have position > 0 and phase `capacity` or
    `latency`, in blocks of four good slices. Raises UsageError if there is no such run, or its record is damaged.
    """
    pl = need()
    path = run_directory.find(str(directory))
    facts = run_directory.read_facts(path)
    schema = {name: _kind(pl, kind) for name, kind in _columns().items()}
    rows = _rows(facts, run_directory.read_slices(path))
    parts = [
        pl.DataFrame(chunk, schema=schema, orient="row")
        for chunk in iter(lambda: list(itertools.islice(rows, AT_ONCE)), [])
    ]
    frame: polars.DataFrame = pl.concat(parts) if parts else pl.DataFrame(schema=schema)
    return frame


def _columns() -> dict[str, Any]:
    """Every column and its type. The agent's arm is left out, because the slice has it."""
    of_slice = {name: kind for name, kind in get_type_hints(SliceRecord).items() if name not in NESTED}
    agent, counters = get_type_hints(AgentSlice), get_type_hints(Counters)
    agent.pop("arm")
    return dict.fromkeys(HEAD, str) | of_slice | agent | {"done": float} | counters


def _kind(pl: Any, kind: Any) -> Any:
    if kind == list[str]:
        return pl.List(pl.String)
    literal = bool(get_args(kind))
    return pl.String if literal else {bool: pl.Boolean, int: pl.Int64, float: pl.Float64, str: pl.String}[kind]


def _rows(facts: RunFacts, records: Iterator[SliceRecord]) -> Iterator[tuple[Any, ...]]:
    heads = [
        (facts.id, cell.spec.engine, cell.spec.mechanism, cell.workload or cell.spec.workload, cell.spec.variant)
        for cell in facts.cells
    ]
    of_slice = [name for name in SliceRecord.__struct_fields__ if name not in NESTED]
    of_agent = [name for name in AgentSlice.__struct_fields__ if name != "arm"]
    for record in records:
        agent, counters = record.agent, record.counters
        if pair := facts.cells[record.cell].pair:
            record = msgspec.structs.replace(record, arm=place(pair, record.arm))
        yield (
            *heads[record.cell],
            *(getattr(record, name) for name in of_slice),
            *((getattr(agent, name) if agent else None) for name in (*of_agent, "done")),
            *((getattr(counters, name) if counters else None) for name in Counters.__struct_fields__),
        )
