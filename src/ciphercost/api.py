"""The Python API behind `import ciphercost`: run, load, slices, and Result with its data frame and notebook view."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ciphercost import engines
from ciphercost.model import result as results
from ciphercost.model import run_directory
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import schedule, specs, targets, toml
from ciphercost.report import frames, notebook
from ciphercost.report.formats import md
from ciphercost.runs import conclude, pipeline

if TYPE_CHECKING:
    import polars

TAKES = 'a Spec, a target such as "postgresql:tls", a CellSpec, a list of these two, or a FILE.toml'


class Result(results.Result, frozen=True):
    """A run's result, as `run` and `load` return it: the fields of result.json, a data frame and a notebook view."""

    @classmethod
    def of(cls, result: results.Result) -> Result:
        return cls(**{name: getattr(result, name) for name in results.Result.__struct_fields__})

    def __repr__(self) -> str:
        return notebook.line(self)

    def to_polars(self) -> polars.DataFrame:
        """One row for each cell and metric; see `frames.cells`. For raw slices use `ciphercost.slices(directory)`."""
        return frames.cells(self)

    def _repr_html_(self) -> str:
        return notebook.html(self)

    def _repr_markdown_(self) -> str:
        return md.render(self)


def run(given: object, directory: str | Path | None, options: Mapping[str, Any]) -> Result:
    """See `ciphercost.run`."""
    return Result.of(pipeline.run(spec(given, options), path(directory) if directory else None))


def load(directory: str | Path) -> Result:
    """See `ciphercost.load`."""
    return Result.of(conclude.result_of(run_directory.find(str(path(directory)))))


def slices(directory: str | Path) -> polars.DataFrame:
    """See `ciphercost.slices`."""
    return frames.slices(path(directory))


def spec(given: object, options: Mapping[str, Any]) -> Spec:
    """Make a checked spec from the argument of `run`. Raises UsageError for anything else."""
    if isinstance(given, Spec) or (isinstance(given, str | Path) and str(given).endswith(".toml")):
        if options:
            raise UsageError(f"run(…, {next(iter(options))}=…) has no effect with a whole spec; set it in the spec")
        return ranged(given) if isinstance(given, Spec) else toml.load(Path(str(given)))
    several = [given] if isinstance(given, str | CellSpec) else given
    if not isinstance(several, Iterable) or isinstance(several, bytes | Mapping):
        raise UsageError(f"run takes {TAKES}; got {type(given).__name__}")
    cells = [cell(each) for each in several]
    for name in options:
        if name == "cells" or name not in Spec.__struct_fields__:
            known = [each for each in Spec.__struct_fields__ if each != "cells"]
            raise UsageError(f"run has no option '{name}'; {nearest(name, known)}")
    quick = {"sessions": 1} if options.get("mode") == "quick" else {}
    return ranged(Spec(cells, **{"time": schedule.seconds(cells), **quick, **options}))


def cell(given: object) -> CellSpec:
    if isinstance(given, CellSpec):
        return given
    if not isinstance(given, str):
        raise UsageError(f"run takes {TAKES}; the list contains {type(given).__name__}")
    engine, version, mechanism = targets.target(given)
    return CellSpec(engine, mechanism, version, workload=engines.get(engine).usual_workload)


def ranged(made: Spec) -> Spec:
    """The spec, with the same checks as a spec file. Raises UsageError, also for a value of a wrong type."""
    try:
        msgspec.convert(msgspec.to_builtins(made), Spec)
    except (msgspec.ValidationError, TypeError) as error:
        raise UsageError(f"the spec: {error}") from None
    return specs.check(made)


def path(given: object) -> Path:
    """The path of a run. Raises UsageError if it is neither text nor a Path."""
    if not isinstance(given, str | Path):
        raise UsageError(f"a run is given as its directory, its id or 'latest'; got {type(given).__name__}")
    return Path(given)
