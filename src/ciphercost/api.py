"""The Python API behind `import ciphercost`: run, load, slices, and Result with its data frame and notebook view."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ciphercost import engines
from ciphercost.load import tables, units
from ciphercost.model import result as results
from ciphercost.model import run_directory
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import schedule, specs, targets, toml
from ciphercost.plan.planned import Plan
from ciphercost.provision import dump_tables
from ciphercost.report import cell_ids, frames, notebook
from ciphercost.report.formats import md
from ciphercost.runs import conclude, pipeline

if TYPE_CHECKING:
    import pandas
    import polars

OF_SPEC = [name for name in Spec.__struct_fields__ if name != "cells"]
OF_CELLS = [name for name in CellSpec.__struct_fields__ if name not in ("engine", "mechanism", "version")]
"""Options of `run`: fields of the spec, and fields of each cell that a target doesn't set."""
TAKES = 'a Spec, a target such as "postgresql:tls", a CellSpec, a list of these two, or a FILE.toml'


class Cell(results.Cell, frozen=True):
    """One cell of a result: the fields of result.json, shown as one line."""

    @classmethod
    def of(cls, cell: results.Cell) -> Cell:
        return cls(**{name: getattr(cell, name) for name in results.Cell.__struct_fields__})

    def __repr__(self) -> str:
        return notebook.cell_line(self)


class Result(results.Result, frozen=True):
    """A run's result, as `run` and `load` return it: the fields of result.json, its cells, data frames and a notebook view.

    `result[0]` and `result["postgresql:tls"]` are cells, `for cell in result` has all of them, and `len(result)` counts them.
    """

    @classmethod
    def of(cls, result: results.Result) -> Result:
        known = {name: getattr(result, name) for name in results.Result.__struct_fields__}
        return cls(**known | {"cells": [Cell.of(cell) for cell in result.cells]})

    def __repr__(self) -> str:
        return notebook.line(self)

    def __len__(self) -> int:
        return len(self.cells)

    def __iter__(self) -> Iterator[Cell]:
        return (cell if isinstance(cell, Cell) else Cell.of(cell) for cell in self.cells)

    def __getitem__(self, key: str | int) -> Cell:
        """A cell by its number or by words that only it has.

        `"postgresql:tls"` is enough if the run has one such cell. With several, add what tells them apart:
        `"postgresql:tls connect"`, `"postgresql@17:tls"`, `"postgresql:tls cipher=chacha20"`. `names` lists the full names.
        Raises UnknownCell, a KeyError that lists the cells, if no cell fits, or more than one.
        """
        if not isinstance(key, str | int) or isinstance(key, bool):
            raise UsageError(f"a cell is given by its number or its words; got {type(key).__name__}")
        number = cell_ids.at(self, key) if isinstance(key, int) else cell_ids.find(self, key)
        return list(self)[number]

    def __contains__(self, key: object) -> bool:
        return bool(cell_ids.matching(self, key)) if isinstance(key, str) else key in self.cells

    def names(self) -> list[str]:
        """The full name of each cell, unique in this run and the same in every run of the same request."""
        return cell_ids.ids(self)

    def to_polars(self) -> polars.DataFrame:
        """One row for each cell and metric; see `frames.cells`. For raw slices use `ciphercost.slices(directory)`.

        Raises UsageError if polars is not installed.
        """
        return frames.cells(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The same rows and columns for pandas. It doesn't need polars. Raises UsageError if pandas is not installed."""
        return frames.cells_of_pandas(self)

    def _repr_html_(self) -> str:
        return notebook.html(self)

    def _repr_markdown_(self) -> str:
        return md.render(self)


def run(given: object, directory: str | Path | None, options: Mapping[str, Any]) -> Result:
    """See `ciphercost.run`."""
    with dump_tables.available():
        return Result.of(pipeline.run_in(plan(given, options), path(directory) if directory else None)[0])


def load(directory: str | Path) -> Result:
    """See `ciphercost.load`."""
    return Result.of(conclude.result_of(run_directory.find(str(path(directory)))))


def slices(directory: str | Path) -> polars.DataFrame:
    """See `ciphercost.slices`."""
    return frames.slices(path(directory))


def plan(given: object, options: Mapping[str, Any]) -> Plan:
    """Plan a run from the argument of `run`. Raises UsageError for anything else."""
    if isinstance(given, Spec) or (isinstance(given, str | Path) and str(given).endswith(".toml")):
        if options:
            raise UsageError(f"run(…, {next(iter(options))}=…) has no effect with a whole spec; set it in the spec")
        return ranged(given) if isinstance(given, Spec) else toml.plan(Path(str(given)))
    several = [given] if isinstance(given, str | CellSpec) else given
    if not isinstance(several, Iterable) or isinstance(several, bytes | Mapping):
        raise UsageError(f"run takes {TAKES}; got {type(given).__name__}")
    for name in options:
        if name not in OF_SPEC + OF_CELLS:
            raise UsageError(f"run has no option '{name}'; {nearest(name, OF_SPEC + OF_CELLS)}")
    of_cells = {name: value for name, value in options.items() if name in OF_CELLS}
    cells = [msgspec.structs.replace(cell(target, of_cells), **of_cells) for target in several]
    of_spec = {name: _parsed(name, value) for name, value in options.items() if name in OF_SPEC}
    quick = {"sessions": 1} if options.get("mode") == "quick" else {}
    return ranged(Spec(cells, **{"time": schedule.seconds(cells), **quick, **of_spec}))


def _parsed(name: str, value: Any) -> Any:
    """Parse text as a spec file does: time="90s", precision="1%"."""
    if isinstance(value, str) and name == "time":
        return units.duration(value, name)
    if isinstance(value, str) and name in ("precision", "margin"):
        return units.share(value, name)
    return value


def cell(given: object, options: Mapping[str, Any]) -> CellSpec:
    """The cell of a target or a CellSpec. `options`: those that will replace its fields."""
    if isinstance(given, CellSpec):
        return given
    if not isinstance(given, str):
        raise UsageError(f"run takes {TAKES}; the list contains {type(given).__name__}")
    engine, version, mechanism = targets.target(given)
    own_rows = options.get("csv") or (options.get("dump") and options.get("secret"))
    usual = tables.DEFAULT_WORKLOAD if own_rows else engines.get(engine).usual_workload
    return CellSpec(engine, mechanism, version, workload=usual)


def ranged(spec: Spec) -> Plan:
    """The plan of a spec, with the same checks as a spec file. Raises UsageError, also for a value of a wrong type."""
    try:
        msgspec.convert(msgspec.to_builtins(spec), Spec)
    except (msgspec.ValidationError, TypeError) as error:
        raise UsageError(f"the spec: {error}") from None
    return specs.plan(spec)


def path(given: object) -> Path:
    """The path of a run. Raises UsageError if it is neither text nor a Path."""
    if not isinstance(given, str | Path):
        raise UsageError(f"a run is given as its directory, its id or 'latest'; got {type(given).__name__}")
    return Path(given)
