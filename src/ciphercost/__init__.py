"""ciphercost: what encryption costs a database or web server, here, proven, with an interval.

import ciphercost
result = ciphercost.run("postgresql:tls")
result = ciphercost.run(ciphercost.Spec(cells=[ciphercost.CellSpec("postgresql", "tls")]))
again = ciphercost.load("runs/20261121-120000-ab12")
again.to_polars(), ciphercost.slices("runs/20261121-120000-ab12")
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Importing the package `load` for the first time sets `ciphercost.load`: so it comes before the function of that name.
import ciphercost.load  # noqa: F401
from ciphercost.model import version

if TYPE_CHECKING:
    import polars

    from ciphercost.api import Result
    from ciphercost.model.spec import CellSpec, Spec

__version__ = version.VERSION
__all__ = ["CellSpec", "Result", "Spec", "load", "run", "slices"]


def run(
    spec: Spec | CellSpec | str | Path | Iterable[str | CellSpec],
    directory: str | Path | None = None,
    **options: Any,
) -> Result:
    """Run a spec and return its result, also written to `directory` (default ./runs/<id>). Raises ciphercost.errors.CiphercostError.

    `spec`: a Spec; targets as on the command line, `"postgresql:tls"` or a list of them; CellSpecs; or a FILE.toml.
    `options`: fields of Spec for targets and CellSpecs: `ciphercost.run("null:busy", mode="quick", time=5.0)`.
    """
    from ciphercost import api

    return api.run(spec, directory, options)


def load(directory: str | Path) -> Result:
    """The result of a run's directory (or its id, or `latest`), estimated again from its slices. Raises ciphercost.errors.UsageError."""
    from ciphercost import api

    return api.load(directory)


def slices(directory: str | Path) -> polars.DataFrame:
    """Every raw slice of a run as a data frame; see `ciphercost.report.frames.slices`. Raises ciphercost.errors.UsageError."""
    from ciphercost import api

    return api.slices(directory)


def __getattr__(name: str) -> Any:
    # Records and errors are looked up when asked for, so that `ciphercost --help` need not load them.
    if name in ("CellSpec", "Spec"):
        from ciphercost.model import terms

        return getattr(terms, name)
    if name == "errors":
        from ciphercost.model import errors

        return errors
    if name == "Result":
        from ciphercost import api

        return api.Result
    raise AttributeError(f"module 'ciphercost' has no attribute '{name}'")
