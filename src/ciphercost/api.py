"""api: what Python callers give -> what the pipeline takes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ciphercost import engines, plan
from ciphercost import spec as specs
from ciphercost.errors import UsageError, nearest
from ciphercost.model import CellSpec, Spec

TAKES = 'a Spec, a target such as "postgresql:tls", a CellSpec, a list of these two, or a FILE.toml'


def spec(given: object, options: Mapping[str, Any]) -> Spec:
    """The spec, checked. Raises UsageError for anything that is none."""
    if isinstance(given, Spec) or (isinstance(given, str | Path) and str(given).endswith(".toml")):
        if options:
            raise UsageError(f"run(…, {next(iter(options))}=…) has no effect beside a whole spec: set it there")
        return ranged(given) if isinstance(given, Spec) else specs.load(Path(str(given)))
    several = [given] if isinstance(given, str | CellSpec) else given
    if not isinstance(several, Iterable) or isinstance(several, bytes | Mapping):
        raise UsageError(f"run takes {TAKES}; not {type(given).__name__}")
    cells = [cell(each) for each in several]
    for name in options:
        if name == "cells" or name not in Spec.__struct_fields__:
            known = [each for each in Spec.__struct_fields__ if each != "cells"]
            raise UsageError(f"run has no option '{name}': {nearest(name, known)}")
    quick = {"sessions": 1} if options.get("mode") == "quick" else {}
    return ranged(Spec(cells, **{"time": plan.seconds(cells), **quick, **options}))


def cell(given: object) -> CellSpec:
    if isinstance(given, CellSpec):
        return given
    if not isinstance(given, str):
        raise UsageError(f"run takes {TAKES}; a list holds {type(given).__name__}")
    engine, version, mechanism = specs.target(given)
    return CellSpec(engine, mechanism, version, workload=engines.get(engine).usual_workload)


def ranged(made: Spec) -> Spec:
    """The spec, checked as a file's would be. Raises UsageError for a value of the wrong type too."""
    try:
        msgspec.convert(msgspec.to_builtins(made), Spec)
    except (msgspec.ValidationError, TypeError) as error:
        raise UsageError(f"the spec: {error}") from None
    return specs.check(made)


def path(given: object) -> Path:
    """A run's directory. Raises UsageError for what is no path."""
    if not isinstance(given, str | Path):
        raise UsageError(f"a run is named by its directory, its id or 'latest'; not by {type(given).__name__}")
    return Path(given)
