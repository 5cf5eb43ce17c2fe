"""Measure what encryption costs a database or web server on this machine, with proof and an interval.

import ciphercost
result = ciphercost.run("postgresql:tls")
result["postgresql:tls"], result[0]
result = ciphercost.run(ciphercost.Spec(cells=[ciphercost.CellSpec("postgresql", "tls")]))
again = ciphercost.load("runs/20261121-120000-ab12")
again.to_polars(), ciphercost.slices("runs/20261121-120000-ab12")
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

# The first import of the package `load` sets `ciphercost.load`, so it must come before the function of that name.
import ciphercost.load  # noqa: F401
from ciphercost.model import version

if TYPE_CHECKING:
    import polars

    from ciphercost.api import Cell, Result
    from ciphercost.model.spec import CellSpec, Spec

__version__ = version.VERSION
__all__ = ["Cell", "CellSpec", "Result", "Spec", "load", "run", "slices"]


def run(
    spec: Spec | CellSpec | str | Path | Iterable[str | CellSpec],
    directory: str | Path | None = None,
    **options: Any,
) -> Result:
    """Run a spec and return its result. Writes the run to `directory` (default ./runs/<id>).

    `spec`: a Spec, a target such as `"postgresql:tls"`, a CellSpec, a list of targets and CellSpecs, or the path of a TOML file.
    `options`: fields of Spec, and fields of CellSpec for every cell, unless `spec` is a whole Spec or a file:
    `ciphercost.run("postgresql:tls", mode="quick", time="10s", workload="connect", factors={"version": "1.2"})`.
    Raises ciphercost.errors.CiphercostError.
    """
    from ciphercost import api

    return api.run(spec, directory, options)


def load(directory: str | Path) -> Result:
    """Estimate a run again from its slices. `directory`: its directory, its id, or `latest`. Raises ciphercost.errors.UsageError."""
    from ciphercost import api

    return api.load(directory)


def slices(directory: str | Path) -> polars.DataFrame:
    """All raw slices of a run as a data frame; see `ciphercost.report.frames.slices`. Raises ciphercost.errors.UsageError."""
    from ciphercost import api

    return api.slices(directory)


def __getattr__(name: str) -> Any:
    # Import records and errors only on access, so that `ciphercost --help` stays fast.
    if name in ("CellSpec", "Spec"):
        from ciphercost.model import constrained_types

        return getattr(constrained_types, name)
    if name == "errors":
        from ciphercost.model import errors

        return errors
    if name in ("Cell", "Result"):
        from ciphercost import api

        return getattr(api, name)
    raise AttributeError(f"module 'ciphercost' has no attribute '{name}'")
